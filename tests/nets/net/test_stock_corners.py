"""Special cases of stock layers: replaced buffers, zeros and axes."""

import numpy as np
import pytest
import torch
from support.nets import draw, one_layer, same

from cuffi import caffe_net


@pytest.mark.parametrize("way", ["replaced", "written"])
@pytest.mark.parametrize("name", ["mean", "variance", "factor"])
def test_batch_norm_follows_each_of_its_blobs(name, way):
    net, x = one_layer('type: "BatchNorm" batch_norm_param { eps: 0.5 }', (2, 3, 4)).eval(), draw(2, 3, 4)
    blobs = {
        "mean": draw(3, seed=1),
        "variance": draw(3, seed=2).abs(),
        "factor": torch.tensor([2.0]).double(),
    }

    def wanted():
        mean, variance = (blobs[n][:, None] / blobs["factor"] for n in ("mean", "variance"))
        return (x - mean) / (variance + 0.5).sqrt()

    for blob, value in blobs.items():
        getattr(net.L, blob).copy_(value)
    for _ in range(2):
        same(net(x), wanted())
    blobs[name] = blobs[name] * 3 + 1
    if way == "replaced":
        setattr(net.L, name, blobs[name].clone())
    else:
        getattr(net.L, name).copy_(blobs[name])
    for _ in range(2):
        same(net(x), wanted())
    net.L.factor.zero_()
    same(net(x), x / 0.5**0.5)


@pytest.mark.parametrize("training", [False, True])
def test_a_stochastic_window_of_zeros(training):
    net = one_layer(
        'type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }', (1, 2, 4, 4)
    )
    x = draw(1, 2, 4, 4).abs()
    x[:, :, :2, :2] = 0
    top = net.train(training)(x)
    assert (top[:, :, 0, 0] == 0).all() and (top.flatten()[1:4] > 0).all()


@pytest.mark.parametrize("axis", [1, 2, -1, -2, -3])
@pytest.mark.parametrize("kind", ["SoftmaxWithLoss", "InfogainLoss"])
def test_by_how_many_a_loss_is_divided(kind, axis):
    """BATCH_SIZE: the count before the axis, as Caffe's outer_num_."""
    shape = (3, 4, 5, 2)
    classes, rest = shape[axis], [n for i, n in enumerate(shape) if i != axis % 4]
    param = "softmax_param" if kind == "SoftmaxWithLoss" else "infogain_loss_param"
    matrix = [] if kind == "SoftmaxWithLoss" else [(classes, classes)]
    losses = {}
    for mode in ("BATCH_SIZE", "NONE", "FULL", "VALID"):
        text = f'type: "{kind}" {param} {{ axis: {axis} }} loss_param {{ normalization: {mode} ignore_label: 1 }}'
        net = one_layer(text, shape, tuple(rest), *matrix)
        labels = torch.arange(int(np.prod(rest))).reshape(rest) % 2
        losses[mode] = net(draw(*shape), labels.double(), *(torch.eye(classes).double() for _ in matrix))
    count = int(np.prod(rest))
    outer = int(np.prod(shape[: axis % 4]))
    for mode, divisor in (("BATCH_SIZE", outer), ("FULL", count), ("VALID", (count + 1) // 2)):
        same(losses[mode], losses["NONE"] / divisor)


def test_groups_of_parameters_have_each_once_and_none_that_rests():
    text = """input: "x" input_shape { dim: 2 dim: 3 }
        layer { name: "a" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 3 }
            param { name: "w" lr_mult: 2 decay_mult: 3 } param { lr_mult: 4 } }
        layer { name: "b" type: "InnerProduct" bottom: "y" top: "z" inner_product_param { num_output: 3 }
            param { name: "w" lr_mult: 2 decay_mult: 3 } param { lr_mult: 0 } }
        layer { name: "c" type: "InnerProduct" bottom: "z" top: "v" inner_product_param { num_output: 1 } }"""
    net = caffe_net(text)
    net.c.bias.requires_grad_(False)
    groups = {(g["lr"], g["weight_decay"]): g["params"] for g in net.parameter_groups(1.0, 1.0)}
    assert {key: len(params) for key, params in groups.items()} == {(2, 3): 1, (4, 1): 1, (1, 1): 1}
    assert groups[2, 3][0] is net.a.weight and groups[1, 1][0] is net.c.weight
