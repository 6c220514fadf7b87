"""The time of an eager call on 1024 floats, with its output's allocation: ours, the same by pybind11, and torch's."""

from collections.abc import Callable

import torch
from cuffi.round import round_ste

from . import _machine, _peer
from ._machine import GPU
from ._report import Report, Settings
from ._timing import Times, in_turns, loop

GROUP = "call"
ELEMENTS = 1024
CALLS = 250  # between two waits for the GPU
OURS, PEER = "round_ste", "pybind11"
# (contender, with a gradient?) -> the target of ours / contender. Only for GPUs, because calls on a CPU launch nothing.
TARGETS = {(PEER, False): 0.85, (PEER, True): 0.85, ("torch.relu", True): 1.15}


def measure(settings: Settings) -> Report:
    report = Report(f"One eager call, {ELEMENTS} floats, output allocated (forward)")
    extension = None
    if reason := _peer.absent():
        report.notes.append(f"The peer is absent: {reason}.")
    else:
        extension = _peer.load_kept(settings.out)

    def contenders(bottom: torch.Tensor, grad: bool) -> dict[str, Callable]:
        found = {OURS: round_ste, "torch.relu": torch.relu, "torch.round": torch.round}
        if extension is not None:
            # Without a gradient users call the extension itself, with a gradient a Function around it.
            found[PEER] = _peer.function(extension) if grad else extension.round_forward
            if not torch.equal(round_ste(bottom), found[PEER](bottom)):
                raise RuntimeError("the peer computes something else")
        return found

    measure_calls(report, settings, contenders, add)
    return report


def measure_calls(report: Report, settings: Settings, contenders: Callable, add: Callable) -> None:
    """Measure `contenders(bottom, grad)` on every device, with a gradient and without."""
    for device in _machine.devices():
        for grad in (False, True):
            bottom = torch.randn(ELEMENTS, device=device, requires_grad=grad)
            calls = contenders(bottom, grad)
            timers = {name: loop(call, (bottom,), CALLS, device) for name, call in calls.items()}
            times = in_turns(timers, seconds=1.0 if settings.quick else 3.0, least=30, most=400)
            add(report, times, device, grad)
    report.notes.append(f"Medians over turns of {CALLS} calls each; spread: half of the turns lie within it.")


def add(report: Report, times: Times, device: str, grad: bool) -> None:
    report.calls(times, OURS, device, grad)
    for name in times:
        if name != OURS:
            target = TARGETS.get((name, grad)) if device == GPU else None
            what = f"eager call {'with' if grad else 'without'} grad, {OURS} / {name}"
            report.figure(what, _machine.here(device), times.ratio(OURS, name), target)
