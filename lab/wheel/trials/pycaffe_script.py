"""A script of pycaffe."""

import sys

import caffe
import numpy as np

caffe.set_mode_cpu()
net = caffe.Net(sys.argv[1], sys.argv[2], caffe.TEST)
net.blobs["data"].data[...] = 1
found = net.forward()["found"]
np.testing.assert_allclose(found.reshape(-1, 7), [[0, 1, 0.75, 0.3, 0.3, 0.7, 0.7]], atol=1e-6)
print(f"{len(net.params)} layers with parameters")
