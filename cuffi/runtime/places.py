"""Where C finds what torch keeps for each tensor, so that it need not ask torch in each call.

Nothing here is taken from torch's headers. torch says a value, and the value must lie at one place, and at no other, in
tensors of several kinds; else C asks torch.
"""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Sequence

import torch
from torch import Tensor

SIZE = 176  # the bytes of a TensorImpl in torch 2.13
BEHIND = 32  # the bytes of what a pointer in it leads to
VERSIONS = (0, 3, 257, 1031)


class _Memory:
    """This process's memory. An address without memory gives no bytes, instead of ending the process."""

    def __enter__(self) -> _Memory:
        self.file = os.open("/proc/self/mem", os.O_RDONLY)
        return self

    def __exit__(self, *error) -> None:
        os.close(self.file)

    def words(self, address: int, size: int, letter: str) -> tuple[int, ...]:
        try:
            content = os.pread(self.file, size, address)
        except (OSError, OverflowError):
            return ()
        return (
            struct.unpack(f"<{size // struct.calcsize(letter)}{letter}", content)
            if len(content) == size
            else ()
        )


@functools.cache
def version_counter() -> tuple[int, int] | None:
    """(the offset in a TensorImpl of its version counter's address, the offset in the counter of its number, a uint32).

    The address is 0 for an inference tensor. None: C asks torch.
    """
    tensors = [_written(times) for times in VERSIONS]
    tensors += [
        tensors[2][1:],
        tensors[3].view(torch.int32),
        torch.nn.Parameter(torch.empty(1, device="cpu")),
    ]
    tensors += [torch.empty(3, 4, device="meta")]
    with torch.inference_mode():
        of_inference = torch.empty(2, device="cpu")
    try:
        with _Memory() as memory:
            versions, rows = [one._version for one in tensors], _rows(memory, [*tensors, of_inference])
            places = [
                (8 * column, 4 * at)
                for column, addresses in enumerate(zip(*rows, strict=True))
                if addresses[-1] == 0
                for at in _numbers_at(memory, addresses[:-1], versions)
            ]
    except (AttributeError, OSError, RuntimeError, TypeError):  # another torch, or no such file
        return None
    return places[0] if len(places) == 1 else None


def _written(times: int) -> Tensor:
    """A tensor that was written to so often."""
    tensor = torch.empty(2, device="cpu")
    torch._C._increment_version((tensor,) * times)
    return tensor


def _rows(memory: _Memory, tensors: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """The words of each tensor's TensorImpl."""
    return [memory.words(one._cdata, SIZE, "Q") for one in tensors]


def _numbers_at(memory: _Memory, addresses: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """The places, counted in uint32, at which each address has its number."""
    found = [memory.words(address, BEHIND, "I") for address in addresses]
    if not all(found):
        return []
    return [
        at
        for at in range(BEHIND // 4)
        if all(words[at] == number for words, number in zip(found, numbers, strict=True))
    ]


@functools.cache
def autograd_place() -> int | None:
    """The offset in a TensorImpl of a word that is 0 only if the tensor wants no gradient. None: C asks torch."""
    real = torch.empty(3, 3, device="cpu", requires_grad=True)
    wanting = [real, torch.nn.Parameter(torch.empty(2, device="cpu"))]
    with torch.enable_grad():
        wanting += [real * 2, real[1]]
    plain = [torch.empty(3, device="cpu"), torch.empty(2, dtype=torch.int64, device="cpu")]
    plain += [torch.empty(2, device="meta"), torch.zeros(3, 3, dtype=torch.half, device="cpu")]
    try:
        with _Memory() as memory:
            columns = zip(*_rows(memory, wanting), strict=True), zip(*_rows(memory, plain), strict=True)
        pairs = enumerate(zip(*columns, strict=True))
        places = [8 * column for column, (some, none) in pairs if all(some) and not any(none)]
    except (AttributeError, OSError, RuntimeError):
        return None
    return places[0] if len(places) == 1 else None
