"""A small net for caffe.Net, its blobs by torch, and arrays of random numbers."""

import numpy as np
import torch
from torch.nn import functional

TEXT = """
force_backward: true
input: "data" input_shape { dim: 2 dim: 3 dim: 6 dim: 6 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" }
    bias_filler { type: "constant" value: 0.1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""

LOSS = """
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 2 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" loss_weight: 3 }
"""

OWN = """
import caffe
class Own(caffe.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(1)
    def reshape(self, bottom, top):
        top[0].reshape(1)
    def forward(self, bottom, top):
        pass
    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] = 1 + top[0].diff[0]
"""


def data(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def reference(net, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """The blobs, computed by torch."""
    weights = {name: [torch.from_numpy(p.data.copy()) for p in params] for name, params in net.params.items()}
    weight, bias = weights["conv"]
    blobs = {"data": x, "conv0": functional.conv2d(x, weight, bias)}
    blobs["conv"] = blobs["conv0"].relu()
    blobs["pool"] = functional.avg_pool2d(blobs["conv"], 2)
    blobs["ip"] = functional.linear(blobs["pool"].flatten(1), *weights["ip"])
    return blobs | {"prob": blobs["ip"].softmax(1)}


def assert_close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def image(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(size=shape).astype(np.float32)
