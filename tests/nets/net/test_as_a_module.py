"""Nets of stock layers with torch's features for modules: autocast, channels_last, DistributedDataParallel."""

import os
import sys

import torch
from support import python_with_torch
from support.nets import NET, batch
from support.root import ROOT
from torch.utils.checkpoint import checkpoint

from cuffi import caffe_net


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
from nets.net.test_as_a_module import NET, same_gradients, step
from cuffi import caffe_net

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
    again = checkpoint(
        lambda data, label: net(data=data, label=label), inputs["data"], inputs["label"], use_reentrant=False
    )
    again.backward()
    torch.testing.assert_close(again.detach(), loss)
    same_gradients({n: p.grad for n, p in net.named_parameters() if p.grad is not None}, gradients, 1e-5)
    average = torch.optim.swa_utils.AveragedModel(net)
    average.update_parameters(net)
    torch.testing.assert_close(average(**inputs), loss)
