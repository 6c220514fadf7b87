"""The times of the parts of our call: each part alone, beginning with the C function."""

import torch
from cuffi.round import layer, round_ste

from cuffi.runtime import backend_of

from . import _machine
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, loop
from .call import CALLS, ELEMENTS

GROUP = "call"


def measure(settings: Settings) -> Report:
    report = Report(f"The parts of round_ste on {ELEMENTS} floats, each measured alone")
    for device in _machine.devices():
        plain = torch.rand(ELEMENTS, device=device)
        wanting = plain.clone().requires_grad_()
        timers = {name: loop(*part, CALLS, device) for name, part in parts(plain, wanting, device).items()}
        times = in_turns(timers, seconds=1.0 if settings.quick else 3.0, least=30, most=400)
        for name in timers:
            us, least = times.median(name) * 1e6, times.least(name) * 1e6
            report.row(on=device, part=name, us=us, least=least, spread=times.spread(name))
    report.notes.append(
        "C function: wrapper, dispatch and launch, addresses given. Launcher: with checks, stream, addresses."
    )
    return report


def parts(plain: torch.Tensor, wanting: torch.Tensor, device: str) -> dict[str, tuple]:
    """name -> (function, arguments)."""
    top = torch.empty_like(plain)
    library = layer.library(backend_of(torch.device(device)).name)
    stream = torch.cuda.current_stream().cuda_stream if device == GPU else 0
    addresses = (plain.data_ptr(), top.data_ptr(), plain.numel(), library.codes[plain.dtype], stream)
    return {
        "nothing (the loop itself)": (lambda x: None, (plain,)),
        "torch.empty_like": (torch.empty_like, (plain,)),
        "layer.empty_like": (layer.empty_like, (plain,)),
        "C function": (library.lib.round_forward_ffi, addresses),
        "launcher: layer.round_forward": (layer.round_forward, (plain, top, plain.numel())),
        "allocation + launch: the layer's own function": (round_ste.operator.function, (plain,)),
        "careful way without grad": (round_ste.operator.careful, (plain,)),
        "short way without grad: the builtin": (round_ste.operator.short, (plain,)),
        "whole call without grad": (round_ste, (plain,)),
        "autograd node: apply": (round_ste.operator.apply, (wanting,)),
        "whole call with grad": (round_ste, (wanting,)),
    }
