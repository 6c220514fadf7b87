"""Every type of a fork compiled, exported, under autocast, in half types and channels_last, on each device.

What cannot hold for a type is in EXCEPT, with the reason.
"""

import functools

import pytest
import torch
from support.fork_cases import CASES
from support.nets import one_layer, randomised

from cuffi.nets.forks import fork_classes, fork_types

CLASSES = {kind.__name__: kind for name in fork_types() for kind in fork_classes(name)}
DRAWS = "it draws regions until there are enough: how often depends on values"
EXCEPT = {("ProposalTarget", mode): DRAWS for mode in ("compiled", "exported")}
# What torch 2.5 cannot do, and says so: tensors whose shape depends on values, while_loop, constants of a layer.
OLD = "torch before 2.6 refuses it"
OLD_TORCH = {
    "compiled": "BoxGroupOutput BoxOutput DetectionEvaluate DetectionOutput FrcnnOutput OfCascadeRCNN ScaleRoute "
    "YoloDetectionOutput Yolov3DetectionOutput",
    "exported": "BboxAccuracy BoxGroupOutput BoxOutput DecodeBBox DetectionAccuracy DetectionEvaluate "
    "DetectionGroupAccuracy DetectionGroupLoss DetectionLoss DetectionOutput FrcnnOutput MarginInnerProduct "
    "OfCascadeRCNN PriorBox PriorBoxClustered RegionLoss YoloDetectionOutput Yolov3 Yolov3DetectionOutput",
    "half": "MultiBoxLoss",
}
if torch.__version__ < "2.6":
    EXCEPT |= {(name, mode): OLD for mode, names in OLD_TORCH.items() for name in names.split()}


def test_each_type_has_a_case():
    assert set(CASES) == set(CLASSES)
    assert {name: type(net_of(name).L) for name in CASES} == CLASSES


def net_of(name, dtype=torch.double, device="cpu"):
    case = CASES[name]
    shapes, native = [b.shape for b in case.bottoms], {case.layer.partition(" ")[0]: True}
    torch.manual_seed(1)
    net = randomised(one_layer(case.text, *shapes, tops=case.tops, native=native))
    return net.to(device, dtype).train(case.train)


def learning(case, dtype=torch.double, device="cpu"):
    """The bottoms of a case. Those with a gradient require it."""
    bottoms = [bottom.to(device, dtype, copy=True) for bottom in case.bottoms]
    return [bottom.requires_grad_(i in case.learn) for i, bottom in enumerate(bottoms)]


def tops_of(case, made):
    return [made] if isinstance(made, torch.Tensor) else [made[f"y{i}"] for i in range(case.tops)]


def results(case, call, bottoms):
    """The tops of a call, and the gradients of the bottoms."""
    tops = tops_of(case, call(*bottoms))
    if case.learn:
        weights = [torch.linspace(1, 2, top.numel(), device=top.device).view_as(top) for top in tops]
        sum((top.double() * w).sum() for top, w in zip(tops, weights, strict=True)).backward()
    return *tops, *(b.grad for b in bottoms if b.requires_grad)


@functools.cache
def expected(name):
    """In double, by eager calls on the processor."""
    return results(CASES[name], net_of(name), learning(CASES[name]))


def same(got, wanted, tolerance=1e-9):
    """Relative to the largest value of each."""
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        size = other.abs().max().clamp(min=1e-3) if other.numel() else 1
        torch.testing.assert_close(
            one.detach().cpu().double() / size, other.detach() / size, rtol=0, atol=tolerance
        )


def eager(name, case, device):
    same(results(case, net_of(name, device=device), learning(case, device=device)), expected(name))


def compiled(name, case, device):
    torch._dynamo.reset()
    call = torch.compile(net_of(name, device=device), backend="aot_eager", fullgraph=True)
    same(results(case, call, learning(case, device=device)), expected(name))


def exported(name, case, device):
    bottoms = tuple(b.detach() for b in learning(case, device=device))
    program = torch.export.export(net_of(name, device=device), bottoms)
    same(tops_of(case, program.module()(*bottoms)), expected(name)[: case.tops])


def channels_last(name, case, device):
    layouts = [torch.channels_last if b.dim() == 4 else torch.preserve_format for b in case.bottoms]
    bottoms = zip(learning(case, device=device), layouts, strict=True)
    bottoms = [b.detach().to(memory_format=f).requires_grad_(b.requires_grad) for b, f in bottoms]
    same(results(case, net_of(name, device=device), bottoms), expected(name))


def autocast(name, case, device):
    with torch.autocast(device, torch.bfloat16):
        got = results(case, net_of(name, torch.float, device), learning(case, torch.float, device))
    same(got, expected(name), 5e-2)


def half(name, case, device, dtype=torch.half, tolerance=2e-2):
    """The bottoms and the parameters are rounded, and the expected values are those of the rounded ones."""
    rounded = case._replace(bottoms=tuple(b.to(dtype).double() for b in case.bottoms))
    wanted = results(rounded, net_of(name, dtype).double(), learning(rounded))
    same(results(case, net_of(name, dtype, device), learning(case, dtype, device)), wanted, tolerance)


def bfloat16(name, case, device):
    half(name, case, device, torch.bfloat16, 1e-1)


MODES = [eager, compiled, exported, channels_last, autocast, half, bfloat16]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.__name__)
def test_a_fork_type(mode, name, device):
    if reason := EXCEPT.get((name, mode.__name__)):
        pytest.skip(reason)
    mode(name, CASES[name], device)
