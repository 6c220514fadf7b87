"""The time of one operator inside torch.compile's code, beside a trivial implementation by torch.library.

The compiled function is a chain of operators, so that what torch does for a call of the whole is divided among them.
"""

from collections.abc import Callable

import torch
from cuffi.depthwise_conv import depthwise_conv2d
from cuffi.sigmoid import sigmoid
from torch import Tensor

from . import _machine
from ._report import Report, Settings
from ._timing import in_turns, loop

GROUP = "call"
CHAIN = 20  # operators in the compiled function
CALLS = 20  # of that function, between two waits for the GPU
TRIVIAL, OURS = "trivial Library.impl", ("sigmoid", "depthwise_conv2d")
MOST = 1.25  # to reach: ours / trivial


def measure(settings: Settings) -> Report:
    report = Report(f"One operator in torch.compile's code, of a chain of {CHAIN}, without a gradient")
    library = trivial()
    for device in _machine.devices():
        with torch.no_grad():
            timers = {
                name: loop(compiled(function, bottom), (bottom,), CALLS, device)
                for name, (function, bottom) in operators(device).items()
            }
            times = in_turns(timers, seconds=1.0 if settings.quick else 3.0, least=30, most=400)
        for name in timers:
            us, least = (seconds * 1e6 / CHAIN for seconds in (times.median(name), times.least(name)))
            report.row(on=device, operator=name, us=us, least=least, spread=times.spread(name))
            if name in OURS:
                ratio = times.least(name) / times.least(TRIVIAL)
                report.figure(f"compiled, {name} / {TRIVIAL}", _machine.here(device), ratio, MOST)
    library._destroy()
    return report


def trivial() -> torch.library.Library:
    """An operator that only allocates: what a call of an implementation in Python costs at least."""
    library = torch.library.Library("layers_benchmark", "FRAGMENT")
    library.define("like(Tensor x) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,))
    for key in ("CPU", "CUDA"):
        library.impl("like", torch.empty_like, key)
    torch.library.register_fake("layers_benchmark::like", torch.empty_like, lib=library)
    return library


def operators(device: str) -> dict[str, tuple[Callable, Tensor]]:
    """name -> (function, input)."""
    plane, weight = torch.rand(1, 4, 4, 4, device=device), torch.rand(4, 1, 3, 3, device=device)
    vector = torch.rand(64, device=device)
    return {
        TRIVIAL: (torch.ops.layers_benchmark.like, vector),
        "torch.cumsum": (lambda x: torch.cumsum(x, 0), vector),
        "sigmoid": (sigmoid, vector),
        "depthwise_conv2d": (lambda x: depthwise_conv2d(x, weight, padding=1), plane),
    }


def compiled(function: Callable, bottom: Tensor) -> Callable:
    """The compiled chain, after the calls that compile it and make plans."""

    def chain(x):
        for _ in range(CHAIN):
            x = function(x)
        return x

    made = torch.compile(chain, fullgraph=True)
    for _ in range(3):
        made(bottom)
    return made
