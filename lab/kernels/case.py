"""A case: a kernel of a public repository, and a check of what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    file: str  # below the folder of the repositories
    kernel: str
    check: Callable  # (call) -> (shapes, [(what the kernel wrote, the reference)])
    tolerance: float = 1e-5


CASES: list[Case] = []


def case(file: str, *kernels: str, tolerance: float = 1e-5):
    """A check for one kernel, or for several that compute the same."""

    def add(check):
        CASES.extend(Case(file, kernel, check, tolerance) for kernel in kernels)
        return check

    return add
