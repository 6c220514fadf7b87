"""Ctrl-C between two iterations, as Caffe's SignalHandler."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator


@contextlib.contextmanager
def deferred() -> Generator[Callable[[], None]]:
    """Let Ctrl-C wait until the block calls the given function, which then raises KeyboardInterrupt.

    A second Ctrl-C does not wait. A program's own handler stays.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: None
        return
    came: list[int] = []

    def note(number: int, frame) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield check
        check()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
