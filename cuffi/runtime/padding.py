"""A kernel that writes just beside a tensor on the processor.

glibc's malloc gives torch some bytes more than it asks for, and keeps each block's size in the 8 bytes before it. A
write by one element too far or too early lands there: nobody sees it, or Python ends much later. So the first call of
each function on the host fills and compares these bytes, and mends the sizes. That does not check every access, and
later calls are not watched. AddressSanitizer sees all.
"""

import ctypes
import functools
import os

import torch
from torch import Tensor

from ..backends import CPU

_MOST = 64  # bytes behind a tensor that are compared
_FILLED = b"\x9d"  # with this, which few kernels write: what memory held before may be what a kernel writes
_SIZE = 8  # bytes of a block's size
_FLAGS = 7  # the lowest bits of a size; malloc changes the first when a neighbour is freed
_IS_USED, _IS_MAPPED, _NEVER_SET = 1, 2, 8


@functools.cache
def _usable_size():
    """glibc's malloc_usable_size, if torch's memory has its form; None otherwise."""
    try:
        function = ctypes.CDLL(None).malloc_usable_size
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_size_t
    held = [torch.empty(size, dtype=torch.uint8) for size in (16, 100, 1000)]
    more = [function(t.data_ptr()) - t.numel() for t in held]
    in_form = all((t.numel() + extra) % 16 == 8 for t, extra in zip(held, more, strict=True))
    return function if in_form and all(0 <= extra < 256 for extra in more) else None


class _Beside:
    """The bytes beside one tensor's memory."""

    def __init__(self, tensor: Tensor):
        storage = tensor.untyped_storage()
        usable = _usable_size()(storage.data_ptr())
        self.start, self.end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        self.size = _size_at(self.start)
        self.behind = _FILLED * min(usable - storage.nbytes(), _MOST)
        ctypes.memmove(self.end, self.behind, len(self.behind))
        # A block of its own pages has no neighbour. The size of another's changes as malloc likes, to a possible one.
        self.next = self.start + usable + _SIZE if not self.size & _IS_MAPPED else 0
        self.next_size = _size_at(self.next) if self.next else 0

    def changed(self) -> str:
        """Where it was written, in words, or "". Sizes are mended, or free() would end Python."""
        if _size_at(self.start) | _FLAGS != self.size | _FLAGS:
            _put_size(self.start, self.size)
            return "before its memory's beginning"
        if self.next and _is_possible(self.next_size) and not _is_possible(_size_at(self.next)):
            _put_size(self.next, self.next_size)
            return "behind its memory's end"
        return (
            "behind its memory's end" if ctypes.string_at(self.end, len(self.behind)) != self.behind else ""
        )


class Padding:
    """The bytes beside the tensors that a call on the host writes to.

    Args:
        tensors: by name, tensors whose memory C writes to. Those on other devices, and memory that torch did not
            allocate, are left out.
    """

    def __init__(self, tensors: dict[str, Tensor]):
        self._beside = {name: _Beside(tensor) for name, tensor in tensors.items() if _is_of_malloc(tensor)}

    def changed(self) -> tuple[str, str] | None:
        """The name of the first tensor that was written beside, and the place in words. All sizes are mended."""
        places = [(name, place) for name, beside in self._beside.items() if (place := beside.changed())]
        return places[0] if places else None


def _is_of_malloc(tensor: Tensor) -> bool:
    if tensor.device.type != CPU or not tensor.numel() or _usable_size() is None:
        return False
    storage = tensor.untyped_storage()
    return storage.resizable() and not storage.is_shared() and not _may_be_pinned(tensor)


def _may_be_pinned(tensor: Tensor) -> bool:
    """Is its memory CUDA's, before which no size stands? In a fork of a process with a GPU torch cannot say."""
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    except OSError:  # the driver is not in this process
        return torch.version.hip is not None
    try:
        return tensor.is_pinned()
    except RuntimeError:
        return True


def _is_possible(size: int) -> bool:
    return size & (_IS_USED | _NEVER_SET) == _IS_USED and 16 <= size < 2**44


def _size_at(start: int) -> int:
    """The size, with its flags, of the block whose memory begins at an address."""
    return int.from_bytes(ctypes.string_at(start - _SIZE, _SIZE), "little")


def _put_size(start: int, size: int) -> None:
    ctypes.memmove(start - _SIZE, size.to_bytes(_SIZE, "little"), _SIZE)
