"""A blob for Caffe's Python code: numpy arrays `data` and `diff`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from ...base import CaffeRuntimeError, CaffeTypeError, CaffeValueError, describe


class Blob:
    """`data` and `diff` are arrays of one shape. Code writes to them, and cannot replace them."""

    def __init__(self, data: np.ndarray | None = None, diff: np.ndarray | None = None):
        self._data = np.zeros((), np.float32) if data is None else data
        self._diff = diff

    def _values(self) -> np.ndarray:
        return self._data

    def _gradient(self) -> np.ndarray:
        if self._diff is None or self._diff.shape != self.data.shape:
            self._diff = np.zeros(self.data.shape, self.data.dtype)
        return self._diff

    @property
    def data(self) -> np.ndarray:
        """The values. Write to them: `blob.data[...] = values`. An assignment of another array is a CaffeTypeError."""
        return self._values()

    @data.setter
    def data(self, value):
        self._assign("data", value)

    @property
    def diff(self) -> np.ndarray:
        """The gradient, of the shape and dtype of `data`; zeros until something has computed it."""
        return self._gradient()

    @diff.setter
    def diff(self, value):
        self._assign("diff", value)

    def _assign(self, name: str, value) -> None:
        """`blob.data += x` assigns the same array, which is allowed. Another array is an error, as in pycaffe."""
        if value is not getattr(self, name):
            raise CaffeTypeError(f"blob.{name} cannot be replaced. Write to it: blob.{name}[...] = value")

    def reshape(self, *shape: float) -> None:
        """Change the shape. As in Caffe, the values in memory stay."""
        try:
            shape = tuple(int(size) if isinstance(size, float) else operator.index(size) for size in shape)
        except TypeError:
            raise CaffeTypeError(
                f"blob.reshape: expected sizes, got {', '.join(map(describe, shape))}"
            ) from None
        if any(size < 0 or size >= 1 << 31 for size in shape):
            raise CaffeValueError(f"blob.reshape: {list(shape)}: a size is out of range")
        if shape != self.data.shape:
            old, new = self.data.reshape(-1), np.zeros(shape, self.data.dtype)
            new.reshape(-1)[: old.size] = old[: new.size]
            self._resized(new)

    def _resized(self, new: np.ndarray) -> None:
        self._data = new

    def shared(self) -> torch.Tensor:
        """A tensor of its memory."""
        return torch.from_numpy(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.data.shape

    @property
    def count(self) -> int:
        """The number of elements."""
        return self.data.size

    def _size(axis: int):
        return property(lambda self: self.shape[axis] if axis < len(self.shape) else 1)

    num, channels, height, width = map(_size, range(4))


class Phase(int):
    """TRAIN and TEST: numbers that print as words."""

    def __str__(self) -> str:
        return ("TRAIN", "TEST")[self]

    __repr__ = __str__


class RawBlobVec(list):
    """The bottoms or tops of a layer. Each call gets its own: to assign to it changes nothing in the net."""


class BlobVec(Sequence):
    """The parameters of a layer. An assigned blob is shared: from then on the layer computes with it.

    A Python layer adds blobs in `setup`. Then their number is fixed.
    """

    def __init__(self, blobs: Iterable[Blob] = (), name: str = "blobs", update: Callable | None = None):
        """`update` takes the list of blobs, and returns it as it is now."""
        self._blobs, self._name, self._update = list(blobs), name, update
        self._share: Callable | None = None

    def fix(self, share: Callable[[int, Blob], Blob]) -> None:
        """Fix the number of blobs. `share` lets the layer use a blob in place of number i, and returns it."""
        self._share = share

    def _list(self) -> list[Blob]:
        if self._update is not None:
            self._blobs = self._update(self._blobs)
        return self._blobs

    @property
    def is_fixed(self) -> bool:
        """Can no blob come or go? So it is after `setup`."""
        return self._share is not None

    def __len__(self) -> int:
        return len(self._list())

    def __getitem__(self, i):
        blobs = self._list()
        try:
            return blobs[i]
        except IndexError:
            raise IndexError(f"{self._name}[{i}]: there are {len(blobs)} blobs, of index 0 and up") from None

    def __setitem__(self, i, value) -> None:
        """As in pycaffe: the layer and the owner of the blob share it."""
        places = range(len(self))[i]
        one = isinstance(places, int)
        given = [value] if one else list(value)
        for blob in given:
            if not isinstance(blob, Blob):
                name = f"{self._name}[{places}]" if one else self._name
                raise CaffeTypeError(
                    f"{name}: expected a blob, got {describe(blob)}. To write values: {name}.data[...] = values"
                )
        if not one and len(given) != len(places):
            self._must_grow()
            self._list()[i] = given
            return
        for place, blob in zip([places] if one else places, given, strict=True):
            self._list()[place] = self._share(place, blob) if self._share else blob

    def __delitem__(self, i) -> None:
        self._must_grow()
        del self._list()[i]

    def append(self, blob: Blob) -> None:
        """Add a blob at the end. A CaffeRuntimeError, if the number is fixed."""
        self.extend([blob])

    def extend(self, blobs: Iterable[Blob]) -> None:
        """Add blobs at the end. A CaffeRuntimeError, if the number is fixed."""
        self._must_grow()
        self[len(self) :] = blobs

    def add_blob(self, *shape: int) -> None:
        """Add a blob of zeros of this shape, float32. A CaffeRuntimeError, if the number is fixed."""
        self.append(Blob(np.zeros(shape, np.float32)))

    def _must_grow(self) -> None:
        if self.is_fixed:
            raise CaffeRuntimeError(
                f"{self._name}: the layer computes with {len(self)} blobs: none can come or go"
            )


class Layer:
    """caffe.Layer: the base of Python layers. Bottoms and tops are lists of blobs."""

    type = "Python"
    blobs: BlobVec
    param_str: str
    phase: Phase

    def __init__(self, *_):
        pass

    def __new__(cls, *_):
        layer = super().__new__(cls)
        layer.blobs, layer.param_str, layer.phase = BlobVec(), "", Phase(1)
        return layer

    @property
    def param_str_(self) -> str:
        """The name of `param_str` until 2015."""
        return self.param_str

    def setup(self, bottom, top):
        """Called once, before the first `reshape`. A layer of yours reads `param_str`, and adds blobs."""
