"""Convolution, BatchNorm and Scale as one convolution: the same answer as one by one, where nobody can tell."""

import copy

import pytest
import torch

from cuffi import caffe_net
from cuffi.backends import DEVICES
from cuffi.nets.net import fused

TEXT = """
input: "data" input_shape { dim: 2 dim: 4 dim: 6 dim: 6 }
layer { name: "conv" type: "%s" bottom: "data" top: "x" convolution_param { num_output: 4 kernel_size: 3
        pad: 1 group: %d bias_term: %s weight_filler { type: "msra" } } }
layer { name: "bn" type: "BatchNorm" bottom: "x" top: "x" %s }
%s
layer { name: "relu" type: "%s" bottom: "x" top: "x" }
layer { name: "fc" type: "Convolution" bottom: "x" top: "fc" convolution_param { num_output: 3 kernel_size: 1
        weight_filler { type: "msra" } } }
"""
SCALE = 'layer { name: "scale" type: "Scale" bottom: "x" top: "x" scale_param { bias_term: true } }'


def made(type_name="Convolution", group=1, bias="true", norm="", scale=SCALE, device="cpu", relu="ReLU"):
    torch.manual_seed(0)
    net = caffe_net(TEXT % (type_name, group, bias, norm, scale, relu)).double().to(device)
    for parameter in net.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    net.bn.mean.uniform_(-2, 2)
    net.bn.variance.uniform_(0.5, 4)
    net.bn.factor.fill_(2)
    return net.eval().fuse(), torch.randn(2, 4, 6, 6, dtype=torch.float64, device=device)


def one_by_one(net, x):
    """A call with a gradient uses no fused weights."""
    with torch.enable_grad():
        return net(x).detach()


@pytest.fixture
def norms(monkeypatch):
    """The calls of a norm's own operator."""
    calls, own = [], torch.nn.functional.batch_norm
    monkeypatch.setattr(
        torch.nn.functional, "batch_norm", lambda *given, **named: calls.append(1) or own(*given, **named)
    )
    return calls


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"bias": "false"},
        {"scale": ""},
        {"type_name": "DepthwiseConvolution", "group": 4, "bias": "false"},
        {"scale": SCALE.replace("bias_term: true", "")},
    ],
    ids=str,
)
def test_the_answer_is_that_of_the_layers_one_by_one(norms, parts):
    net, x = made(**parts)
    rounded = x.float().double()
    wanted, other = one_by_one(net, x), one_by_one(net, rounded)
    norms.clear()
    with torch.inference_mode():
        torch.testing.assert_close(net(x), wanted, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(net(rounded), other, rtol=1e-10, atol=1e-10)
    assert not norms
    with torch.no_grad():
        torch.testing.assert_close(net(x), wanted, rtol=1e-10, atol=1e-10)
    assert not norms
    net.fuse(False)
    with torch.inference_mode():
        assert torch.equal(net(x), wanted)
    assert len(norms) == 1


@pytest.mark.parametrize(
    "mode",
    [torch.inference_mode(), torch.no_grad(), torch.enable_grad()],
    ids=lambda mode: type(mode).__name__,
)
def test_a_write_without_a_trace(mode):
    """A mean of weights that training keeps is often written through `blob.data`. Only `fuse` may keep anything."""
    net, x = made()
    net.fuse(False)
    before = mode(net)(x)
    for name, blob in [*net.named_parameters(), *net.named_buffers()]:
        blob.data.mul_(1.5).add_(0.25)
        after = mode(net)(x)
        assert not torch.allclose(before, after), name
        torch.testing.assert_close(after, mode(copy.deepcopy(net))(x), rtol=1e-12, atol=1e-12)
        before = after
    net.fuse()
    mode(net)(x)
    net.conv.weight.data.mul_(2)
    net.bn.mean.numpy()[...] = 3
    net.fuse()
    torch.testing.assert_close(mode(net)(x), one_by_one(net, x), rtol=1e-10, atol=1e-10)


BLOBS = ["conv.weight", "conv.bias", "bn.mean", "bn.variance", "bn.factor", "scale.weight", "scale.bias"]


@pytest.mark.parametrize("name", BLOBS)
@pytest.mark.parametrize("way", ["in place", "data", "loaded"])
def test_it_follows_each_blob(name, way):
    net, x = made()
    run = torch.inference_mode()(net)
    before = run(x)
    with torch.no_grad():
        blob = dict(net.named_parameters()) | dict(net.named_buffers())
        value = blob[name] * 1.5 + 0.25
        if way == "in place":
            blob[name].copy_(value)
        elif way == "data":
            blob[name].data = value.detach()
        else:
            net.load_state_dict(net.state_dict() | {name: value})
    after = run(x)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, one_by_one(net, x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(after, one_by_one(copy.deepcopy(net), x), rtol=1e-10, atol=1e-10)


def test_only_where_nobody_can_tell(norms):
    """With a gradient, by the batch's statistics, with a hook, or where the top in between is wanted: one by one."""
    net, x = made()

    def counted(call) -> int:
        norms.clear()
        with torch.inference_mode():
            call()
        return len(norms)

    assert counted(lambda: net(x)) == 0
    assert counted(lambda: net(x, blobs=True)) == 0  # the last value of "x" is the ReLU's
    norms.clear()
    one_by_one(net, x)
    assert len(norms) == 1
    assert counted(lambda: net(x, end="conv")) == 0
    assert counted(lambda: torch.func.vmap(net)(x[None])) == 1
    net.bn.train()
    assert counted(lambda: net(x)) == 1
    net.bn.eval()
    for name in ("conv", "bn", "scale"):
        seen = []
        kept = net.get_layer(name).register_forward_hook(lambda *call, seen=seen: seen.append(call[-1]))
        assert counted(lambda: net(x)) == (name != "scale") or seen
        kept.remove()
        assert len(seen) == 1
    by_batch, _ = made(norm="batch_norm_param { use_global_stats: false }")
    assert counted(lambda: by_batch(x)) == 1
    torch.nn.utils.parametrizations.weight_norm(net.conv)
    torch.testing.assert_close(net(x).detach(), one_by_one(net, x))
    assert counted(lambda: net(x)) == 1


def test_in_other_precisions_and_in_a_copy():
    net, x = made()
    wanted, single = one_by_one(net, x), x.float()
    with torch.inference_mode():
        net(x)
    other = copy.deepcopy(net)
    with torch.inference_mode():
        torch.testing.assert_close(other(x), wanted)
    net.float()
    with torch.inference_mode():
        torch.testing.assert_close(net(single), wanted.float(), rtol=1e-4, atol=1e-4)
        with torch.autocast("cpu", torch.bfloat16):
            assert net(single).dtype == torch.bfloat16
            torch.testing.assert_close(net(single).double(), wanted, rtol=0.1, atol=0.1)
        torch.testing.assert_close(net(single), wanted.float(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(net(single).detach(), wanted.float(), rtol=1e-4, atol=1e-4)


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """A device on which depthwise ones are the toolkit's own kernel. On a CPU torch's would be faster."""
    native = pytest.importorskip("cuffi.depthwise_conv.provides_depthwise_convolution")
    if request.param == "cpu":
        monkeypatch.setattr(
            fused, "_operator", lambda device_type: (native.depthwise_conv, native.activation_number)
        )
    return request.param


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"bias": "false"},
        {"scale": ""},
        {"relu": "ReLU6"},
        {"relu": "TanH"},
        {"type_name": "ConvolutionDepthwise"},
    ],
    ids=str,
)
def test_a_depthwise_one_computes_its_relu_too(norms, device, parts):
    net, x = made(**{"type_name": "DepthwiseConvolution", "group": 4} | parts, device=device)
    if parts.get("relu") == "ReLU6":
        net.bn.variance.mul_(1e-3)  # so that many are above 6
    net.eval()
    for change in (lambda: None, lambda: net.conv.weight.mul_(-2), lambda: net.bn.mean.add_(1)):
        with torch.no_grad():
            change()
        wanted, between = (
            one_by_one(net, x),
            one_by_one_until(net, x, "scale" if net.layers.get("scale") else "bn"),
        )
        norms.clear()
        with torch.inference_mode():
            torch.testing.assert_close(net(x), wanted, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(net(x, end="relu"), net(x, blobs=["x"])["x"])
        assert not norms
        seen = []
        kept = net.relu.register_forward_hook(
            lambda layer, bottoms, top, seen=seen: seen.append(bottoms[0].clone())
        )
        with torch.inference_mode():
            torch.testing.assert_close(net(x), wanted, rtol=1e-10, atol=1e-10)
        kept.remove()
        torch.testing.assert_close(seen[0], between, rtol=1e-10, atol=1e-10)


def one_by_one_until(net, x, layer):
    """A layer's own top."""
    tops = []
    kept = net.get_layer(layer).register_forward_hook(lambda *call: tops.append(call[-1].detach().clone()))
    one_by_one(net, x)
    kept.remove()
    return tops[0]


@pytest.mark.gpu
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_depthwise_one_is_our_own_kernel_on_a_gpu(layout):
    net, x = made("Convolution", group=4, bias="false", device="cuda")
    x = x.contiguous(memory_format=layout)
    wanted = one_by_one(net, x)
    with torch.inference_mode():
        torch.testing.assert_close(net(x), wanted, rtol=1e-10, atol=1e-10)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            net(x)
            torch.cuda.synchronize()
    assert any("depthwise" in event.key for event in profile.key_averages())
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        with torch.cuda.graph(graph):
            top = net(x)
        net.conv.weight.mul_(2)
    graph.replay()
    torch.testing.assert_close(top, one_by_one(net, x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_on_a_processor_layers_run_in_channels_last(mode):
    """Where a fused call may; what comes out of a contiguous input is contiguous."""
    net, x = made()
    seen = []
    net.fc.register_forward_pre_hook(lambda module, bottoms: seen.append(bottoms[0]))
    with mode():
        tops = net(x, blobs=True)
        wanted = net.fuse(False)(x, blobs=True)
    assert seen[0].is_contiguous(memory_format=torch.channels_last) == (mode is not torch.enable_grad)
    assert seen[1].is_contiguous()
    for name, top in tops.items():
        assert top.is_contiguous(), name
        torch.testing.assert_close(top, wanted[name], rtol=1e-12, atol=1e-12)


def test_channels_last_inputs_stay_so():
    net, x = made()
    with torch.no_grad():
        assert net(x.contiguous(memory_format=torch.channels_last)).is_contiguous(
            memory_format=torch.channels_last
        )
