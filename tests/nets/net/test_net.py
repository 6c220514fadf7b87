"""A net as a torch module: its submodules, inputs, loss and groups of parameters; copied, compiled and exported."""

import copy
import pickle

import pytest
import torch
from support.nets import INPUT, TRAIN_VAL, conv, images

from cuffi import CaffeTypeError, CaffeValueError, caffe_net


def test_submodules_have_the_layers_names():
    net = caffe_net(INPUT + conv("conv1", "data") + conv("a/b.c", "conv1"))
    assert list(net.state_dict()) == ["conv1.weight", "conv1.bias", "a/b_c.weight", "a/b_c.bias"]
    assert net.layers["a/b.c"] is net.get_submodule("a/b_c")
    assert net.inputs == ["data"] and net.outputs == ["a/b.c"]


def test_a_layer_may_have_the_name_of_something_that_a_module_has():
    net = caffe_net(INPUT + conv("forward", "data") + conv("training", "forward") + conv("path", "training"))
    assert net(images()).shape == (2, 4, 8, 8)
    assert set(net.layers) == {"forward", "training", "path"}
    assert caffe_net(INPUT + conv("forward", "data")).load_state_dict(
        caffe_net(INPUT + conv("forward", "data")).state_dict()
    )


def test_inputs_by_name_or_place_and_of_any_batch_and_size():
    net = caffe_net(INPUT + conv("conv1", "data"))
    x = images(5, 3, 11, 6)
    assert torch.equal(net(x), net(data=x)) and net(x).shape == (5, 4, 11, 6)
    for wrong, said in (
        (lambda: net(image=x), "no input 'image'. There are: data"),
        (lambda: net(x, data=x), "input 'data' came twice"),
        (lambda: net(), "input 'data' is missing; conv1 needs it"),
        (lambda: net(x, x), "2 inputs were given; the net has data"),
        (lambda: net([1]), "input 'data': expected a tensor, got list"),
    ):
        with pytest.raises(CaffeTypeError, match=said):
            wrong()


def test_the_loss_is_weighted():
    net, x, label = caffe_net(TRAIN_VAL), images(), torch.tensor([1, 3])
    outputs = net(x, label)
    assert torch.equal(net.loss(outputs), outputs["loss"] * 0.5)
    with pytest.raises(CaffeValueError, match="makes a loss"):
        caffe_net(INPUT + conv("c", "data")).loss(x)


def test_losses_are_added_up():
    """GoogLeNet does this: its inner classifiers have weight 0.3."""
    again = (
        'layer { name: "again" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "again" loss_weight: 0.25 }'
    )
    text = f"""input: "a" input_shape {{ dim: 2 dim: 3 }} input: "b" input_shape {{ dim: 2 dim: 3 }} {again}
      layer {{ name: "first" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "first" }}
      layer {{ name: "last" type: "Reduction" bottom: "a" top: "last" loss_weight: 2 }}"""
    net, a, b = caffe_net(text, train=True), torch.rand(2, 3), torch.rand(2, 3)
    distance = ((a - b) ** 2).sum() / 4
    torch.testing.assert_close(net.loss(net(a, b)), 1.25 * distance + 2 * a.sum())


def test_parameter_groups_have_the_multipliers():
    net = caffe_net(TRAIN_VAL)
    groups = net.parameter_groups(0.1, 0.01)
    assert [(g["lr"], g["weight_decay"], len(g["params"])) for g in groups] == [(0.1, 0.01, 1), (0.2, 0.0, 1)]


def test_an_error_of_a_call_names_the_layer_and_its_line():
    net = caffe_net(
        INPUT
        + 'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"\n inner_product_param { num_output: 2 } }'
    )
    with pytest.raises(RuntimeError, match=r"line 2: layer 'ip' \(InnerProduct\)"):
        net(images(2, 3, 9, 9))


def test_a_net_is_copied_and_pickled():
    net, x = (
        caffe_net(INPUT + conv("a", "data") + 'layer { name: "n" type: "BatchNorm" bottom: "a" top: "n" }'),
        images(),
    )
    wanted = net(x)
    assert torch.equal(copy.deepcopy(net)(x), wanted)
    assert torch.equal(pickle.loads(pickle.dumps(net))(x), wanted)


def test_a_net_compiles_without_a_break():
    net, x = caffe_net(INPUT + conv("a", "data") + 'layer { name: "n" type: "BatchNorm" bottom: "a" top: "n" }\n'
        'layer { name: "s" type: "Scale" bottom: "n" top: "n" scale_param { bias_term: true } }'), images()  # fmt: skip
    torch._dynamo.reset()  # of the shapes that it has seen, for which torch 2.5 cannot compile this
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(data=x), net(x))
    net.train()
    torch.testing.assert_close(compiled(x), net(x))


def test_a_net_exports():
    net, x = (
        caffe_net(
            INPUT
            + conv("a", "data")
            + 'layer { name: "p" type: "Pooling" bottom: "a" top: "p" pooling_param { kernel_size: 2 stride: 2 } }'
        ),
        images(),
    )
    program = torch.export.export(net, (x,))
    torch.testing.assert_close(program.module()(x), net(x))
