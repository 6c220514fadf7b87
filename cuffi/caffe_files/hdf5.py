"""HDF5 files of somebody else: nothing but the file itself is read, and each error names it.

HDF5 has three ways to name another file: a dataset's external storage, a virtual dataset, and an external link. Caffe
writes none of them. A stranger's file that has one would read any file of the reader.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ..base import CaffeError, CaffeRuntimeError, CaffeValueError
from ..base.files import to_read
from ..base.shown import shown

if TYPE_CHECKING:
    import numpy

# What h5py raises for a damaged file: HDF5's own errors have many classes.
_DAMAGED = (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError, OverflowError, MemoryError)
# deflate makes at most 1,032 bytes of one. A dataset that says it has more is mostly made of nothing.
_RATIO, _SMALL = 1100, 1 << 26
# How many groups a group may lie in. Caffe's weights lie in two, and Python's own h5py walks by calling itself, too.
_DEEPEST = 64


def package(what: str) -> Any:
    """h5py. CaffeRuntimeError with the command that installs it, if it is missing."""
    try:
        import h5py
    except ImportError:
        raise CaffeRuntimeError(f"{what}: HDF5 files are read by h5py: pip install h5py") from None
    return h5py


@contextlib.contextmanager
def opened(path, what: str = "") -> Generator[Any]:
    """Open an HDF5 file to read. Whatever goes wrong with it in the block is an error that names it.

    Args:
        what: who reads it, for the message.

    Raises:
        CaffeValueError: it is damaged, or it names other files.
        CaffeRuntimeError: h5py is missing.
    """
    named = f"{what}: {path}" if what else str(path)
    h5py = package(named)
    to_read(path).close()
    try:
        with h5py.File(path, "r") as file:
            _check(h5py, file, named)
            yield file
    except CaffeError:
        raise
    except _DAMAGED as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise CaffeValueError(f"{named}: a damaged HDF5 file: {said}") from None


def values(dataset, what: str) -> numpy.ndarray:
    """All values of a dataset. CaffeValueError if it declares many more than the file can have."""
    declared, stored = dataset.size * dataset.dtype.itemsize, dataset.id.get_storage_size()
    if declared > _SMALL and declared > _RATIO * stored:
        raise CaffeValueError(
            f"{what}: dataset {shown(dataset.name)!r} declares {declared:,} bytes, and has {stored:,} in the file"
        )
    return dataset[()]


def _check(h5py, file, named: str) -> None:
    """Refuse a file with a link or a dataset that leads out of it. Each group is seen once; no link is followed.

    HDF5's own visit calls itself for each level: its stack ends before a stranger's groups do.
    """
    seen, groups = set[int](), [b""]
    while groups:
        folder = groups.pop()
        if folder.count(b"/") > _DEEPEST:
            raise CaffeValueError(
                f"{named}: groups lie in more than {_DEEPEST} others: no weights or data do"
            )
        links: list[tuple[bytes, int]] = []
        group = h5py.h5g.open(file.id, folder or b"/")
        group.links.iterate(lambda name, link, to=links: to.append((name, link.type)), info=True)
        for name, kind in links:
            path = folder + b"/" + name
            shown_name = shown(path[1:].decode(errors="backslashreplace"))
            if kind not in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
                raise CaffeValueError(
                    f"{named}: {shown_name!r} is a link to another file: it is not followed"
                )
            if kind == h5py.h5l.TYPE_SOFT:
                continue
            found = h5py.h5o.open(file.id, path)
            if isinstance(found, h5py.h5d.DatasetID) and (how := _outside(h5py, found)):
                raise CaffeValueError(
                    f"{named}: dataset {shown_name!r} has its values in other files ({how}): they are not read"
                )
            if isinstance(found, h5py.h5g.GroupID) and (address := h5py.h5o.get_info(found).addr) not in seen:
                seen.add(address)
                groups.append(path)


def _outside(h5py, dataset) -> str:
    """How a dataset's values lie outside of its file; "" if they do not."""
    made = dataset.get_create_plist()
    if made.get_layout() == h5py.h5d.VIRTUAL:
        return "a virtual dataset"
    contiguous = made.get_layout() == h5py.h5d.CONTIGUOUS
    return "external storage" if contiguous and made.get_external_count() else ""
