"""Read an LMDB's file: keys and values in order. It is mapped, and every place in it is checked.

The package lmdb opens a file once per process, which a script may have done, and liblmdb crashes on a damaged file. The
format: pages with a head of 16 bytes; two meta pages, of which the one with the greater transaction counts; a B+ tree
of branch and leaf pages; values that do not fit into a page in pages of their own.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

from ...base.files import to_read

_MAGIC, _VERSIONS = 0xBEEFC0DE, (1, 999)
_BRANCH, _LEAF, _OVERFLOW, _META = 1, 2, 4, 8
_BIG, _SUB = 1, 6  # flags of a node: its value has pages of its own; it is a database or has duplicates
_HEAD, _NODE, _NONE = 16, 8, (1 << 64) - 1
_DEEPEST = 32


class LMDBError(ValueError):
    """The file is not an LMDB, or is damaged."""


class LMDBFile:
    """The main database of an LMDB, as a sequence of (key, value).

    Args:
        path: the folder with data.mdb, or the file.
    """

    def __init__(self, path: str):
        self.file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
        with to_read(self.file) as file:
            size = os.fstat(file.fileno()).st_size
            if size < 2 * 4096:
                raise LMDBError(f"{self.file} is cut off: it has {size} bytes")
            self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.page_size, self.root, self.count = self._newest()

    def _newest(self) -> tuple[int, int, int]:
        """(size of a page, root, number of entries) by the newer meta page."""
        metas, size = [], self._unpack("<I", _HEAD + 24)[0]
        if size < 256 or size & (size - 1):
            raise LMDBError(f"{self.file} is not an LMDB")
        for at in (0, size):
            flags = self._unpack("<H", at + 10)[0]
            magic, version = self._unpack("<II", at + _HEAD)
            if flags & _META and magic == _MAGIC and version in _VERSIONS:
                entries, root = self._unpack("<QQ", at + _HEAD + 24 + 48 + 32)
                last, transaction = self._unpack("<QQ", at + _HEAD + 24 + 96)
                metas.append((transaction, last, root, entries))
        if not metas:
            raise LMDBError(f"{self.file} is not an LMDB")
        _, last, root, entries = max(metas)
        if (last + 1) * size > len(self.map):
            raise LMDBError(f"{self.file} is cut off: it has {len(self.map)} bytes of {(last + 1) * size}")
        return size, root, entries

    def _unpack(self, form: str, at: int) -> tuple:
        try:
            return struct.unpack_from(form, self.map, at)
        except (struct.error, OverflowError):
            raise LMDBError(f"{self.file} is damaged at byte {at}") from None

    def _nodes(self, page: int, kinds: int) -> tuple[int, list[int]]:
        """(flags, places of the nodes) of a page."""
        at = page * self.page_size
        flags, lower = self._unpack("<HH", at + 10)
        count = (lower - _HEAD) // 2
        if not flags & kinds or not 0 <= count <= self.page_size // 2:
            raise LMDBError(f"{self.file} is damaged: page {page}")
        return flags, [at + offset for offset in self._unpack(f"<{count}H", at + _HEAD)]

    def places(self) -> Iterator[int]:
        """The places of all entries, in the order of their keys."""
        yield from self._below(self.root, 0) if self.root != _NONE else ()

    def _below(self, page: int, depth: int) -> Iterator[int]:
        if depth > _DEEPEST:
            raise LMDBError(f"{self.file} is damaged: its tree has no end")
        flags, nodes = self._nodes(page, _BRANCH | _LEAF)
        if flags & _LEAF:
            yield from nodes
            return
        for node in nodes:
            low, high, top = self._unpack("<HHH", node)
            yield from self._below(low | high << 16 | top << 32, depth + 1)

    def key(self, place: int) -> bytes:
        (size,) = self._unpack("<H", place + 6)
        return self.map[place + _NODE : place + _NODE + size]

    def value(self, place: int) -> bytes:
        size, flags, key = self._unpack("<IHH", place)  # a size is two halves, the lower one first
        begin = place + _NODE + key
        if flags & _SUB:
            raise LMDBError(f"{self.file}: key {self.key(place)!r}: not a plain value")
        if flags & _BIG:
            page = self._unpack("<Q", begin)[0] * self.page_size
            if not self._unpack("<H", page + 10)[0] & _OVERFLOW:
                raise LMDBError(f"{self.file} is damaged: page {page // self.page_size}")
            begin = page + _HEAD
        if begin + size > len(self.map):
            raise LMDBError(f"{self.file} is damaged at byte {place}")
        return self.map[begin : begin + size]
