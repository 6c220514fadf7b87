"""The diffs of a caffe.Net's blobs and parameters: autograd's gradients for a range of layers."""

from __future__ import annotations

import torch

from ..net.apart import remembered
from .net_state import NetState
from .ranges import call_back, run


def backward(net: NetState, last: int, first: int) -> None:
    """Compute the diffs of the layers with these numbers, `last` first."""
    for i in range(last, first - 1, -1):
        call_back(net, "before_backward", i)
    if net.tape is None or not (net.tape.first <= first and last <= net.tape.last):
        now = remembered(net.module)
        net.bring_back()
        try:
            run(net, 0, last, record=True, again=True)  # later layers may not accept this size
        finally:
            now()
    _differentiate(net, first, last)
    for i in range(last, first - 1, -1):
        call_back(net, "after_backward", i)


def _differentiate(net: NetState, first: int, last: int) -> None:
    tape, net.tape = net.tape, None
    assert tape is not None  # backward, which calls this, has run the layers if nobody had
    values, names, steps = tape.values, net.graph.names, net.between(first, last)
    read = {value for step in steps for value in step.bottoms}
    tops = [value for step in steps for value in step.tops if value not in read]
    # With force_backward Caffe calls every layer's backward, also where no gradient arrives.
    seeds = [
        v for v in tops if values[v].requires_grad and (net.force_backward or net.blobs[names[v]].has_diff)
    ]
    # A blob's diff is that of its first version in the range, because in-place layers overwrite it.
    versions: dict[str, int] = {}
    for step in steps:
        for value in (*step.bottoms, *step.tops):
            versions.setdefault(names[value], value)
    wanted = [value for value in versions.values() if values[value].requires_grad and value not in seeds]
    own = [p for step in steps for p in net.module.get_layer(step.key).parameters() if p.requires_grad]
    own = list(dict.fromkeys(own))
    if not seeds:
        return
    given = [torch.as_tensor(net.blobs[names[v]].diff).to(values[v]) for v in seeds]
    found = torch.autograd.grad(
        [values[v] for v in seeds], [*(values[v] for v in wanted), *own], given, allow_unused=True
    )
    for value, gradient in zip(wanted, found, strict=False):
        if gradient is not None:
            net.blobs[names[value]].diff[...] = gradient.cpu().numpy()
    for parameter, gradient in zip(own, found[len(wanted) :], strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
