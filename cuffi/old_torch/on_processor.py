"""The processor stands in for a GPU, for a script that needs one (ext_front.py). Only in a process that calls this."""

import contextlib
import re

import torch
from torch.overrides import TorchFunctionMode

from .ffi import processor

GPU = re.compile(r"cuda(:\d+)?$")


class _OnProcessor(TorchFunctionMode):
    """`device="cuda"` means the processor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        named = {name: _moved(value) for name, value in (kwargs or {}).items()}
        return func(*map(_moved, args), **named)


def _moved(value):
    if isinstance(value, str) and GPU.match(value):
        return "cpu"
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


class _Event:
    """torch.cuda.Event. The processor's work is done when a call returns."""

    def __init__(self, *_, **__):
        self._at = 0.0

    def record(self, *_) -> None:
        import time

        self._at = time.perf_counter()

    def elapsed_time(self, other: "_Event") -> float:
        return (other._at - self._at) * 1000

    def query(self) -> bool:
        return True

    def synchronize(self, *_) -> None:
        pass

    wait = synchronize


def stand_in() -> None:
    """`.cuda()` and device="cuda" give tensors of the processor, and torch.cuda says that there is a GPU."""
    processor.stand_in("cuffi.ext")
    cuda = torch.cuda
    vars(cuda).update(
        get_device_capability=lambda *_, **__: (9, 0),
        get_device_name=lambda *_, **__: "the processor",
        reset_peak_memory_stats=lambda *_, **__: None,
        get_rng_state=lambda *_, **__: torch.get_rng_state(),
        set_rng_state=lambda new_state, *_, **__: torch.set_rng_state(new_state),
        Event=_Event,
    )
    for name in ("device", "device_of"):
        setattr(cuda, name, lambda *_, **__: contextlib.nullcontext())
    for name in ("max_memory_allocated", "memory_allocated"):
        setattr(cuda, name, lambda *_, **__: 0)
    torch.version.cuda = torch.version.cuda or "13.0"
    _OnProcessor().__enter__()
    run_backward = torch.autograd._engine_run_backward

    def in_mode(*args, **kwargs):
        """Within a function that a mode was asked about, such as Tensor.backward, the mode is off."""
        with _OnProcessor():
            return run_backward(*args, **kwargs)

    vars(torch.autograd)["_engine_run_backward"] = in_mode
