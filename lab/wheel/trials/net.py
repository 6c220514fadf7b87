"""A net with types of forks, forward and backward; its weights, as a file for the scripts beside this one.

The numbers are those of the definitions: one box of the size of its prior, of which the net is sure by 3 to 1.
"""

import math
import sys

import numpy as np
import torch

from cuffi import caffe_net, dnn

prototxt, weights = sys.argv[1:]
net = caffe_net(prototxt, phase="TEST")
with torch.no_grad():
    for name, numbers in {"loc": [0.0] * 4, "conf": [0.0, math.log(3)]}.items():
        layer = net.get_layer(name)
        layer.weight.zero_()
        layer.bias.copy_(torch.tensor(numbers))
net.save_caffemodel(weights)
expected = np.array([[0, 1, 0.75, 0.3, 0.3, 0.7, 0.7]])

image = torch.ones(1, 3, 10, 10, requires_grad=True)
np.testing.assert_allclose(net(image).detach().reshape(-1, 7), expected, atol=1e-6)
net(image, blobs=["softmax"])["softmax"][0, 1].backward()
assert math.isclose(net.get_layer("conf").bias.grad[1], 0.75 * 0.25, rel_tol=1e-5)

of_opencv = dnn.readNetFromCaffe(prototxt, weights)
of_opencv.setInput(image.detach().numpy())
np.testing.assert_allclose(of_opencv.forward()[0, 0], expected, atol=1e-6)
print(f"{len(of_opencv.getLayerNames())} layers; a box of {of_opencv.forward()[0, 0, 0, 2]:.2f}")
