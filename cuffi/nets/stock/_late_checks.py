"""Checks of values on a GPU that wait for nothing: what they ask for is copied while the GPU works on, and read later.

`refuse_later` notes a tensor, and what its values must be within. Several are copied together, because a copy costs a
call as much as a kernel. `raise_if_refused` raises the first check that failed, of those that have arrived: each net
calls it before it runs, and each later check does. At the end of the program the rest is printed.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import NamedTuple

import torch

from ...base import CaffeValueError

TOGETHER = 32  # checks
SECONDS = 0.05  # after which a check is copied without others


class _Check(NamedTuple):
    values: torch.Tensor
    above: float
    below: float
    message: str


class _Copied(NamedTuple):
    arrived: torch.cuda.Event
    values: torch.Tensor  # those of all checks, in pinned memory
    checks: list[_Check]


_noted: list[_Check] = []
_copied: list[_Copied] = []
_last_copy = 0.0


def _forget() -> None:
    _noted.clear()
    _copied.clear()


os.register_at_fork(after_in_child=_forget)  # a fork cannot use the GPU


def refuse_later(values: torch.Tensor, above: float, below: float, message: str) -> None:
    """Note that values on a GPU, [n], must be above one number and below another, and that nothing changes them."""
    if _copied:
        raise_if_refused()
    if _noted and (_noted[0].values.device, _noted[0].values.dtype) != (values.device, values.dtype):
        _copy()
    _noted.append(_Check(values, above, below, message))
    if len(_noted) >= TOGETHER or time.monotonic() - _last_copy > SECONDS:
        _copy()


def raise_if_refused(wait: bool = False) -> None:
    """Raise a CaffeValueError for the first check that failed, of those that have arrived. wait: of all."""
    if not (_copied or (wait and _noted)) or torch.cuda.is_current_stream_capturing():
        return
    for message in _failed(wait):
        raise CaffeValueError(f"{message} (in an earlier call: this check does not wait for the GPU)")


def _copy() -> None:
    global _last_copy
    _last_copy = time.monotonic()
    if not _noted:
        return
    checks = _noted.copy()
    _noted.clear()
    values = torch.cat([check.values for check in checks])
    arriving = torch.empty(len(values), dtype=values.dtype, pin_memory=True)
    arriving.copy_(values, non_blocking=True)
    arrived = torch.cuda.Event()
    arrived.record(torch.cuda.current_stream(values.device))
    _copied.append(_Copied(arrived, arriving, checks))


def _failed(wait: bool):
    """The messages of the checks that failed, in their order. Those that were asked are forgotten."""
    if wait:
        _copy()
    while _copied:
        first = _copied[0]
        if wait:
            first.arrived.synchronize()
        elif not first.arrived.query():
            return
        _copied.remove(first)
        parts = first.values.split([len(check.values) for check in first.checks])
        for check, values in zip(first.checks, parts, strict=True):
            if not bool(((values > check.above) & (values < check.below)).all()):  # NaN is wrong, too
                yield check.message


@atexit.register
def _print_the_rest() -> None:
    for message in _failed(wait=True) if _noted or _copied else ():
        print(f"cuffi: {message}, in the last calls of this program", file=sys.stderr)
