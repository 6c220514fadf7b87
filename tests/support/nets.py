"""Shared by the tests of whole nets."""

import numpy as np
import torch

from cuffi import caffe_net
from cuffi.nets.stock import StockLayer


def one_layer(layer: str, *shapes, tops: int = 1, **options):
    """A net of one layer named L, for bottoms x0, x1, ... of these shapes; its tops are y0, y1, ..."""
    inputs = "".join(
        f'input: "x{i}" input_shape {{ {" ".join(f"dim: {d}" for d in shape)} }}\n'
        for i, shape in enumerate(shapes)
    )
    bottoms = "".join(f'bottom: "x{i}" ' for i in range(len(shapes)))
    names = "".join(f'top: "y{i}" ' for i in range(tops))
    net = caffe_net(f'{inputs}layer {{ name: "L" {bottoms}{names}{layer} }}', **options).double()
    # A caffemodel has a layer's blobs, and no others.
    if isinstance(net.L, StockLayer):
        assert set(net.L.state_dict()) == set(net.L.present_blobs())
    return net


def randomised(net: torch.nn.Module):
    """The net with random parameters."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.normal_()
    return net


def gradients_are_right(function, *tensors) -> bool:
    return torch.autograd.gradcheck(
        function, tuple(t.detach().clone().requires_grad_() for t in tensors), fast_mode=True
    )


def same(got, wanted, tolerance=1e-9):
    torch.testing.assert_close(
        got.detach(), torch.as_tensor(np.asarray(wanted)), rtol=tolerance, atol=tolerance
    )


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels(classes, *shape, seed=0):
    return torch.randint(0, classes, shape, generator=torch.Generator().manual_seed(seed)).double()


INPUT = 'input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }\n'


def conv(name, bottom, top=None, more="", outputs=4):
    return (
        f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{top or name}" {more}\n'
        f"  convolution_param {{ num_output: {outputs} kernel_size: 3 pad: 1 weight_filler {{ type: "
        f'"gaussian" std: 0.1 }} }} }}\n'
    )


def images(*shape):
    return torch.randn(shape or (2, 3, 8, 8), generator=torch.Generator().manual_seed(0))


TRAIN_VAL = """
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { crop_size: 8 mean_value: 1 mean_value: 2 mean_value: 3 } data_param { batch_size: 4 source: "x" } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { crop_size: 8 } data_param { batch_size: 2 source: "x" } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5
  weight_filler { type: "xavier" } } param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" loss_weight: 0.5 }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
"""


NET = """
input: "data" input_shape { dim: 2 dim: 3 dim: 13 dim: 11 }
input: "label" input_shape { dim: 2 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
        convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
        pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
        convolution_param { num_output: 8 kernel_size: 1 group: 2 weight_filler { type: "xavier" } } }
layer { name: "sum" type: "Eltwise" bottom: "pool1" bottom: "conv2" top: "sum" }
layer { name: "both" type: "Concat" bottom: "sum" bottom: "pool1" top: "both" }
layer { name: "pool2" type: "Pooling" bottom: "both" top: "pool2" pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool2" top: "fc"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }
"""


def batch() -> dict:
    return {"data": draw(2, 3, 13, 11).float(), "label": torch.tensor([1.0, 4.0])}
