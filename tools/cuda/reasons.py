"""Why a kernel stays as it is: each pass raises Unclear where it decides, and returns a Reason to who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .outline import Function
    from .source import Source


class Reason(NamedTuple):
    """The words say what is there; the place is where it stands."""

    path: str
    line: int
    why: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.why}"


class Unclear(Exception):
    """A pass ends: the words say what is there, `at` is its offset in the source; None: the kernel as a whole."""

    def __init__(self, why: str, at: int | None = None):
        super().__init__(why)
        self.why, self.at = why, at

    def reason(self, source: Source, function: Function) -> Reason:
        at = function.at if self.at is None else self.at
        return Reason(source.path, source.lexed.position(at)[0], self.why)


def check(body, clear: bool, why: str, at: Any = None):
    """
    Args:
        body: the Body of the kernel.
        at: a node of it, or an offset in the source.

    Raises:
        Unclear: it is not clear.
    """
    if not clear:
        raise Unclear(why, body.place(at)[0] if hasattr(at, "start_byte") else at)


class Way(NamedTuple):
    """How a kernel runs on the processor."""

    kernel: str
    path: str
    line: int
    mode: str  # of cuda_host::run (include/host/cuda_launch.h), such as kPhases
    reasons: tuple[Reason, ...]  # why no pass before this one has taken it
