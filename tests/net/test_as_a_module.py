"""Nets of stock layers under what torch offers every module: autocast, channels_last, DistributedDataParallel."""

import os
import sys

import pytest
import torch
from conftest import ROOT
from support import python_with_torch
from support.nets import draw

from layers import caffe_net

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


@pytest.fixture
def net():
    torch.manual_seed(0)
    return caffe_net(NET)


def batch() -> dict:
    return {"data": draw(2, 3, 13, 11).float(), "label": torch.tensor([1.0, 4.0])}


def step(net, **options) -> tuple[torch.Tensor, dict]:
    """The loss of one training step, and each parameter's gradient."""
    net.zero_grad()
    loss = net(**batch(), **options)
    loss.backward()
    return loss.detach(), {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}


def same_gradients(got: dict, wanted: dict, tolerance: float) -> None:
    assert set(got) == set(wanted)
    for name, gradient in wanted.items():
        torch.testing.assert_close(
            got[name], gradient, rtol=tolerance, atol=tolerance * gradient.abs().max().item(), msg=name
        )


def test_channels_last_stays_as_it_is(net):
    """No layer copies its bottom to another layout, and the results are the same."""
    wanted = net(**batch(), blobs=True)
    _, gradients = step(net)
    net.to(memory_format=torch.channels_last)
    inputs = batch() | {"data": batch()["data"].contiguous(memory_format=torch.channels_last)}
    got = net(**inputs, blobs=True)
    for name in ("conv1", "pool1", "conv2", "sum", "both", "pool2"):
        assert got[name].is_contiguous(memory_format=torch.channels_last), name
        torch.testing.assert_close(got[name], wanted[name], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got["loss"], wanted["loss"], rtol=1e-4, atol=1e-5)
    same_gradients(step(net)[1], gradients, 1e-4)


def test_autocast(net):
    """Convolutions and inner products in bfloat16, the loss in float."""
    loss, gradients = step(net)
    with torch.autocast("cpu", torch.bfloat16):
        blobs = net(**batch(), blobs=True)
        cast_loss, cast_gradients = step(net)
    assert blobs["conv2"].dtype == blobs["fc"].dtype == torch.bfloat16 and cast_loss.dtype == torch.float32
    torch.testing.assert_close(cast_loss, loss, rtol=0.02, atol=0.02)
    assert all(g.dtype == torch.float32 for g in cast_gradients.values())
    same_gradients(cast_gradients, gradients, 0.1)


def test_built_and_called_under_autocast(net):
    """Autocast keeps its casts of parameters: those that the net's shapes were inferred with are fake tensors."""
    with torch.autocast("cpu", torch.bfloat16):
        wanted = net(**batch())
        built = caffe_net(NET)
        built.load_state_dict(net.state_dict())
        loss = built(**batch())
    assert type(loss) is torch.Tensor and torch.equal(loss, wanted)


# In a process that ends at once: gloo's thread and a net that is given back may wait for each other.
PARALLEL = """
import os, sys
import torch
import torch.distributed as dist
from net.test_as_a_module import NET, same_gradients, step
from layers import caffe_net

torch.manual_seed(0)
net = caffe_net(NET)
loss, gradients = step(net)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=0, world_size=1)
parallel_loss, found = step(torch.nn.parallel.DistributedDataParallel(net))
torch.testing.assert_close(parallel_loss, loss)
same_gradients({name.removeprefix("module."): g for name, g in found.items()}, gradients, 1e-6)
print("the same", flush=True)
os._exit(0)
"""


def test_distributed_data_parallel(tmp_path):
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests")))
    command = [sys.executable, "-c", PARALLEL, tmp_path]
    done = python_with_torch.run(command, env=os.environ | {"PYTHONPATH": paths}, timeout=120)
    assert done.stdout == "the same\n", done.stderr


def test_checkpointing_and_a_copy_for_averaging(net):
    """What fine-tuning scripts do: recompute a forward, and keep an average of the weights."""
    loss, gradients = step(net)
    net.zero_grad()
    inputs = batch()
    again = torch.utils.checkpoint.checkpoint(
        lambda data, label: net(data=data, label=label), inputs["data"], inputs["label"], use_reentrant=False
    )
    again.backward()
    torch.testing.assert_close(again.detach(), loss)
    same_gradients({n: p.grad for n, p in net.named_parameters() if p.grad is not None}, gradients, 1e-5)
    average = torch.optim.swa_utils.AveragedModel(net)
    average.update_parameters(net)
    torch.testing.assert_close(average(**inputs), loss)


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
    """It spares the caller's memory, and a blob that another layer reads, has two names, or that a hook sees."""
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
    """Where the file says so. A hook, of one module or of all, sees what was there before."""
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
