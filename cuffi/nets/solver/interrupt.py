"""Ctrl-C and a closed terminal between two iterations, as Caffe's SignalHandler."""

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


@contextlib.contextmanager
def hang_up_deferred(act: Callable) -> Generator[Callable[[], None]]:
    """Let SIGHUP, of a closed terminal, wait until the block calls the given function, which then calls `act`.

    A program's own handler stays, and so does nohup's.
    """
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    is_main = threading.current_thread() is threading.main_thread()
    if number is None or not is_main or signal.getsignal(number) is not signal.SIG_DFL:
        yield lambda: None
        return
    came: list[int] = []

    def check() -> None:
        if came:
            came.clear()
            act()

    signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield check
    finally:
        signal.signal(number, signal.SIG_DFL)
