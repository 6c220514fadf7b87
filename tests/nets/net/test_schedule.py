"""Which layer of a net overwrites its bottom, and which Scale a norm computes."""

import pytest
import torch
from support.nets import batch, draw

from cuffi import caffe_net

RELUS = """
input: "data" input_shape { dim: 1 dim: 3 dim: 4 dim: 4 }
layer { name: "first" type: "ReLU" bottom: "data" top: "data" }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
        convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "relu" }
layer { name: "twice" type: "Eltwise" bottom: "conv" bottom: "relu" top: "twice" }
layer { name: "scale" type: "Scale" bottom: "twice" top: "scale" scale_param { filler { value: -1 } } }
layer { name: "flat" type: "Reshape" bottom: "scale" top: "flat" reshape_param { shape { dim: 0 dim: -1 } } }
layer { name: "last" type: "ReLU" bottom: "flat" top: "last" }
layer { name: "out" type: "ReLU" bottom: "scale" top: "out" }
layer { name: "sum" type: "Convolution" bottom: "out" top: "sum"
        convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "end" type: "ReLU" bottom: "sum" top: "end" }
"""


def test_a_relu_writes_over_its_bottom_only_where_nobody_can_see_it():
    """Not the caller's memory, nor a blob that another layer reads, that has two names, or that a hook gets."""
    torch.manual_seed(0)
    net, x = caffe_net(RELUS).eval(), draw(1, 3, 4, 4).float()
    given = x.clone()
    wanted = {name: blob.detach().clone() for name, blob in net(x, blobs=True).items()}
    seen = {}
    with torch.no_grad():
        for names in (
            ["last", "end"],
            ["conv", "relu", "last", "end"],
            ["flat", "end"],
            ["sum", "end"],
            True,
        ):
            for name, blob in net(x, blobs=names).items():
                torch.testing.assert_close(blob, wanted[name], msg=f"{name} of {names}")
        kept = net.get_layer("sum").register_forward_hook(lambda *call: seen.update(sum=call[-1]))
        net(x, blobs=["end"])
        kept.remove()
        memory = net(x, blobs=["end"])["end"]
    assert (wanted["sum"] < 0).any()
    torch.testing.assert_close(seen["sum"], wanted["sum"])
    torch.testing.assert_close(memory, wanted["end"])
    torch.testing.assert_close(x, given)


IN_PLACE = """
input: "data" input_shape { dim: 2 dim: 3 dim: 5 dim: 5 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "x" convolution_param { num_output: 4 kernel_size: 3
        weight_filler { type: "msra" } } }
layer { name: "bn" type: "BatchNorm" bottom: "x" top: "x" }
layer { name: "scale" type: "Scale" bottom: "x" top: "x" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "x" top: "%s" }
layer { name: "sum" type: "Eltwise" bottom: "%s" bottom: "data_" top: "sum" eltwise_param { operation: %s } }
layer { name: "relu2" type: "ReLU" bottom: "sum" top: "sum" }
layer { name: "fc" type: "InnerProduct" bottom: "sum" top: "fc" inner_product_param { num_output: 4
        weight_filler { type: "xavier" } } }
layer { name: "relu3" type: "ReLU" bottom: "fc" top: "fc" }
"""


@pytest.mark.parametrize("operation", ["SUM", "PROD", "MAX"])
def test_a_relu_in_place_writes_over_its_bottom_in_training(operation):
    """If the file has it in place. A hook, of one module or of all, gets the values from before."""
    text = 'input: "data_" input_shape { dim: 2 dim: 4 dim: 3 dim: 3 }\n' + IN_PLACE
    nets = [caffe_net(text % (top, top, operation)).double().train() for top in ("x", "y")]
    nets[1].load_state_dict(nets[0].state_dict())
    x, other = draw(2, 3, 5, 5), draw(2, 4, 3, 3).clamp(min=0.1)
    found = {}
    for name, net in zip(("in place", "apart"), nets, strict=True):
        top = net(data=x, data_=other)
        assert (top == 0).any()
        found[name] = [top, *torch.autograd.grad(top.square().sum(), list(net.parameters()))]
    torch.testing.assert_close(found["in place"], found["apart"])

    for keep in (nets[0].relu.register_forward_hook, torch.nn.modules.module.register_module_forward_hook):
        seen = []
        kept = keep(
            lambda module, given, top, seen=seen: seen.extend(
                (given[0].data_ptr(), top.data_ptr()) for _ in given[:1] if module is nets[0].relu
            )
        )
        nets[0](data=x, data_=other)
        kept.remove()
        assert len(seen) == 1 and seen[0][0] != seen[0][1]
    versions = {}
    after = nets[0].sum.register_forward_pre_hook(
        lambda module, given: versions.update(top=given[0]._version)
    )
    nets[0](data=x, data_=other)
    after.remove()
    assert versions["top"] == 1
    gradients = []
    kept = nets[0].relu.register_full_backward_hook(lambda module, given, top: gradients.append(given[0]))
    nets[0](data=x, data_=other).sum().backward()
    kept.remove()
    assert len(gradients) == 1


def test_a_relu_does_not_write_over_the_bottom_of_a_sum_of_one():
    """Its top is its bottom's memory, which is the caller's."""
    net = caffe_net(
        """input: "x" input_shape { dim: 4 } layer { name: "sum" type: "Eltwise" bottom: "x" top: "sum" }
        layer { name: "relu" type: "ReLU" bottom: "sum" top: "relu" }"""
    )
    x = torch.tensor([-1.0, 2, -3, 4])
    with torch.no_grad():
        assert net(x).tolist() == [0, 2, 0, 4] and x.tolist() == [-1, 2, -3, 4]


def test_a_scale_that_its_norm_computes_is_seen_by_hooks_and_may_be_exchanged(net):
    net.eval()
    wanted = net(**batch(), blobs=["conv1"])["conv1"]
    seen = []
    kept = net.scale1.register_forward_hook(lambda *call: seen.append(call[-1].clamp(min=0)))
    torch.testing.assert_close(net(**batch(), blobs=["conv1"])["conv1"], wanted)
    torch.testing.assert_close(seen, [wanted])
    seen.clear()
    kept.remove()
    # What a hook keeps stays as it was, though the ReLU after it may write over its bottom without gradients.
    kept = net.scale1.register_forward_hook(lambda *call: seen.append(call[-1]))
    with torch.no_grad():
        torch.testing.assert_close(net(**batch(), blobs=["conv1"])["conv1"], wanted)
    assert (seen[0] < 0).any()
    kept.remove()
    # As who folds a norm into its convolution does.
    net.scale1 = torch.nn.Identity()
    net.relu1 = torch.nn.Softplus()
    got = net(**batch(), blobs=["conv1"])["conv1"]
    plain = net.bn1(net.conv1(batch()["data"]))
    torch.testing.assert_close(got, torch.nn.functional.softplus(plain))
