"""Checks of values on a GPU that wait for nothing: the answer is copied while the GPU works on, and read later.

`refuse_later` notes a check. `raise_if_refused` raises the first that failed, of those that the GPU has computed: each
net calls it before it runs, and each later check does. At the end of the program the rest is printed.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections import deque
from typing import NamedTuple

import torch

from ...base import CaffeValueError


class _Check(NamedTuple):
    computed: torch.cuda.Event
    failed: torch.Tensor  # a bool in pinned memory
    message: str


_open: deque[_Check] = deque()
os.register_at_fork(after_in_child=_open.clear)  # a fork cannot use the GPU


def refuse_later(failed: torch.Tensor, message: str) -> None:
    """Note that a bool on a GPU, once it is computed, means an error. The results of such a call are undefined."""
    raise_if_refused()
    answer = torch.empty((), dtype=torch.bool, pin_memory=True)
    answer.copy_(failed, non_blocking=True)
    computed = torch.cuda.Event()
    computed.record(torch.cuda.current_stream(failed.device))
    _open.append(_Check(computed, answer, message))


def raise_if_refused() -> None:
    """Raise a CaffeValueError for the first check that failed, of those that the GPU has computed."""
    if not _open or torch.cuda.is_current_stream_capturing():
        return
    for message in _failed(wait=False):
        raise CaffeValueError(f"{message} (in an earlier call: this check does not wait for the GPU)")


def _failed(wait: bool):
    """The messages of the checks that failed, in their order. Those that were asked are forgotten."""
    while _open:
        check = _open[0]
        if wait:
            check.computed.synchronize()
        elif not check.computed.query():
            return
        _open.popleft()
        if bool(check.failed):
            yield check.message


@atexit.register
def _print_the_rest() -> None:
    for message in _failed(wait=True) if _open else ():
        print(f"cuffi: {message}, in the last calls of this program", file=sys.stderr)
