"""Run a range of a caffe.Net's layers on its blobs."""

from __future__ import annotations

import torch
from torch import Tensor

from ..net.apart import apart, remembered
from ..net.graph import Step
from ..net.python_layer import PythonLayer
from ..net.running import run_named
from ..net.schedule import calls_of
from . import mode
from .feeds import fill_dummies, read_data
from .net_state import NetState, Tape


def forward(net: NetState, first: int, last: int) -> float:
    """Run the layers with these numbers. Returns the loss."""
    # Layers that change in a forward, such as TRAIN's BatchNorm, are not run again for backward.
    record = net.force_backward or net.phase == mode.TRAIN
    if net.callbacks["before_forward"] or net.callbacks["after_forward"]:
        _run_one_by_one(net, first, last)
    else:
        run(net, first, last, record)
    tops = {top for spec in net.specs[first : last + 1] for top in spec.tops}
    weights = net.module.phase.loss_weights
    return sum(float(net.blobs[top].data.sum()) * weights[top] for top in weights if top in tops)


def _run_one_by_one(net: NetState, first: int, last: int) -> None:
    """With callbacks, which may read and write the blobs around each layer."""
    for i in range(first, last + 1):
        call_back(net, "before_forward", i)
        run(net, i, i)
        call_back(net, "after_forward", i)
    net.tape = None  # backward runs the layers again


def call_back(net: NetState, when: str, layer: int) -> None:
    for function in net.callbacks[when]:
        function(layer)


def run(net: NetState, first: int, last: int, record: bool = False, again: bool = False) -> None:
    """Run a range of layers, and store their results.

    Args:
        record: keep what backward needs.
        again: use the values that the last call read. Layers without bottoms do not run.
    """
    net.is_stale, net.tape = False, None
    net.to_device()
    if first == 0 and not again:
        fill_dummies(net)
        read_data(net)
    if not again:
        net.bring_back = remembered(net.module)
    steps = [step for step in net.between(first, last) if step.bottoms or not again]
    values: list[Tensor | None] = [None] * len(net.graph.names)
    _enter(net, steps, values, record, again)
    if (first, last, record, again) not in net.calls:
        every = {value for step in steps for value in (*step.bottoms, *step.tops)}
        results = every if record else set(net.graph.latest.values())
        modules = dict(net.module.named_children())
        net.calls[first, last, record, again] = calls_of(modules, steps, results)
    calls = net.calls[first, last, record, again]
    with torch.enable_grad() if record else torch.no_grad():
        run_named(net.module, calls, values)
    net.tape = Tape(first, last, values) if record else None
    for step in steps:
        for value in step.tops:
            if (made := values[value]) is not None:
                net.blobs[net.graph.names[value]].take(made)


def _enter(net: NetState, steps: list[Step], values: list, record: bool, again: bool) -> None:
    """The values of earlier layers, as bottoms. An input has a gradient if the file has force_backward."""
    made = {value for step in steps for value in step.tops}
    before = net.entered if again else {}
    net.entered = {}
    for value in {value for step in steps for value in step.bottoms if value not in made}:
        name = net.graph.names[value]
        entered = before[value] if value in before else net.blobs[name].tensor().detach()
        if net.graph.latest[name] in made:  # an in-place layer overwrites the blob
            entered = entered.detach().clone()
        if record and (net.force_backward or name not in net.graph.inputs):
            entered.requires_grad_(entered.is_floating_point())
        values[value] = net.entered[value] = entered


def settle(net: NetState) -> None:
    """Reshape all blobs before one is read, if an input has another shape than at the last call.

    A twin runs, so that states, statistics and random numbers stay. Python layers are the net's own.
    """
    if not net.is_stale:
        return
    own, calls, net.entered = net.module, net.calls, {}
    users = [module for module in own.children() if isinstance(module, PythonLayer)]
    with apart(own, evaluated=False, kept=users) as twin:
        net.module, net.calls = twin, {}
        try:
            run(net, 0, len(net.specs) - 1, again=True)
        finally:
            net.module, net.calls = own, calls
