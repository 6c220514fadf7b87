"""Find the layers and blobs of a .caffemodel, in one pass over the file.

The file is a serialized NetParameter. Its tags are read here, because protobuf would make a Python object of every
number in a file of 500 MB. The values of blobs are read directly into torch's memory.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..base import CaffeValueError, some
from ..base.files import to_read
from ..base.shown import shown

# Field numbers of caffe.proto, by message: NetParameter, LayerParameter, V1LayerParameter, V0LayerParameter,
# SolverState, BlobProto.
_NET = {"layers": 2, "layer": 100}
_LAYER = {"name": 1, "blobs": 7}
_V1 = {"layer": 1, "name": 4, "blobs": 6}
_V0 = {"name": 1, "blobs": 50}
_STATE = {"iter": 1, "learned_net": 2, "history": 3}
_BLOB = {"data": 5, "shape": 7, "double_data": 8, "raw_data_type": 10, "raw_data": 12}
# NVCaffe's and OpenCV's raw_data_type. OpenCV's shrinkCaffeModel writes halves.
_RAW = {0: torch.float64, 1: torch.float32, 2: torch.float16}
# The first bytes of an HDF5 file.
HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"

_LEGACY = {1: 0, 2: 1, 3: 2, 4: 3}  # num, channels, height, width


@dataclass
class StoredBlob:
    """The position of a blob's values in the file."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: list[tuple[int, int]]  # offset, bytes
    legacy: bool = False  # its shape is num, channels, height, width

    def fits(self, shape) -> bool:
        return fits(shape, self.shape, self.legacy)

    @property
    def count(self) -> int:
        return sum(size for _, size in self.pieces) // self.dtype.itemsize

    def read_into(self, file, tensor: Tensor) -> None:
        """Read the values into a contiguous CPU tensor of this dtype and count."""
        memory = memoryview(tensor.reshape(-1).numpy()).cast("B")
        at = 0
        for offset, size in self.pieces:
            file.seek(offset)
            if file.readinto(memory[at : at + size]) != size:
                raise CaffeValueError(f"{file.name}: the file became shorter while it was read")
            at += size

    def read(self, file) -> Tensor:
        tensor = torch.empty(self.count, dtype=self.dtype)
        if self.count:
            self.read_into(file, tensor)
        return tensor.view(self.shape)


@dataclass
class StoredLayer:
    name: str
    blobs: list[StoredBlob] = field(default_factory=list)
    may_lack: bool = False  # some of the blobs, which another layer has


@dataclass
class StoredState:
    """A SolverState: the number of updates, the file of the weights, and the solver's history."""

    iteration: int = 0
    learned_net: str = ""
    history: list[StoredBlob] = field(default_factory=list)


def stored_layers(path) -> list[StoredLayer]:
    """The layers of a .caffemodel. CaffeValueError with the offset if the file is not one.

    In a name that is not UTF-8, the wrong bytes become escapes.
    """
    return _scanned(path, ".caffemodel", lambda scan, size: scan.net(size))


def blobs_of(path, layer_name: str) -> list[tuple[StoredBlob, Tensor]]:
    """The blobs of the layer of that name, with their values, on the CPU, in the file's precision."""
    layers = stored_layers(path)
    # Training and testing may each have a layer of that name. One of them has the weights.
    same = [layer.blobs for layer in layers if layer.name == layer_name]
    if not same:
        known = ", ".join(some(dict.fromkeys(layer.name for layer in layers)))
        raise CaffeValueError(f"{path}: no layer {layer_name!r}. There are: {known}")
    with to_read(path) as file:
        return [(blob, blob.read(file)) for blob in max(same, key=len)]


def fits(own, stored, legacy: bool) -> bool:
    """Is a stored shape a blob's own, as in Blob::ShapeEquals? Legacy ones have four axes: leading 1s do not count."""
    leading = (1,) * (4 - len(own)) if legacy else ()
    return leading + tuple(own) == tuple(stored)


def stored_blob(path) -> StoredBlob:
    """The blob of a .binaryproto, such as a mean image."""
    return _scanned(path, ".binaryproto", lambda scan, size: scan.blob(0, size))


def mean_image(path) -> Tensor:
    """The mean image of a .binaryproto, [channels, height, width]. The channels have the file's order, mostly BGR."""
    with to_read(path) as file:
        mean = stored_blob(path).read(file)
    if not mean.numel():
        layers = []
        with contextlib.suppress(CaffeValueError):
            layers = stored_layers(path)
        hint = ", but layers, as a .caffemodel has" if layers else ""
        raise CaffeValueError(f"{path}: not a mean image: no values in it{hint}")
    return mean[0] if mean.dim() == 4 and mean.shape[0] == 1 else mean


def stored_state(path) -> StoredState:
    """The content of a .solverstate. CaffeValueError with the offset if the file is not one."""
    return _scanned(path, ".solverstate", lambda scan, size: scan.state(size))


def _scanned(path, kind: str, read):
    with to_read(path) as file:
        size = file.seek(0, 2)
        if not size:
            raise CaffeValueError(f"{path}: not a {kind}: the file is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return read(_Scan(data), size)
            except _Malformed as error:
                raise CaffeValueError(f"{path}: not a {kind}: {_looks_like(data) or error}") from None


# The first bytes of other files that users pass as a .caffemodel.
_MAGIC = {
    HDF5_MAGIC: "it is an HDF5 file, which caffe_net reads as weights",
    b"PK\x03\x04": "it is a zip archive, as torch.save writes them",
    b"\x1f\x8b": "it is a gzip file: unpack it",
    b"\x93NUMPY": "it is a numpy file: numpy.load reads it",
    b"\x89PNG\r\n": "it is a PNG image",
    b"\xff\xd8\xff": "it is a JPEG image",
    b"SQLite format": "it is an SQLite file",
}


def _looks_like(data) -> str:
    """A description of a file that is not a caffemodel, or "". Text may be an error page."""
    for magic, words in _MAGIC.items():
        if data[: len(magic)] == magic:
            return words
    begin = data[:60].decode("latin-1").split("\n")[0].rstrip("\r")
    if re.match(r"\s*<(!doctype|html|\?xml)", begin, re.IGNORECASE):
        return (
            f"it is text, and begins with {begin!r}, a web page: the download gave a page in place of the "
            "file: get the file itself again"
        )
    # A message has control characters in its first bytes: the tags of its fields.
    first = bytes(data[:60])
    is_text = re.fullmatch(rb"[\t\n\r -~]{3,}", first) or re.match(rb"[ -~]{12}[ -~]*[\r\n]", first)
    return f"it is text, and begins with {begin!r}" if is_text else ""


class _Malformed(Exception):
    """The file is malformed. The text has the offset and the reason."""


class _Scan:
    """Reads tags and lengths, and skips other content."""

    def __init__(self, data):
        self.data = data

    def net(self, size: int) -> list[StoredLayer]:
        layers = []
        for number, _, at, end in self.fields(0, size):
            if number == _NET["layer"]:
                layers.append(self.layer(at, end, _LAYER))
            elif number == _NET["layers"]:
                layers.append(self.layer(at, end, _V1))
        if not layers:
            raise _Malformed("no layers in it" + self._or_blob(size))
        return layers

    def _or_blob(self, size: int) -> str:
        """Is it a blob, such as a mean image?"""
        try:
            blob = self.blob(0, size)
        except _Malformed:
            return ""
        return f". It is one blob of shape {list(blob.shape)}, such as a mean image" if blob.count else ""

    def layer(self, at: int, end: int, numbers: dict[str, int]) -> StoredLayer:
        layer, where = StoredLayer(""), at
        for number, wire, start, stop in self.fields(at, end):
            if number == numbers["name"] and wire == 2:
                layer.name = shown(self.data[start:stop].decode(errors="backslashreplace"))
            elif number == numbers["blobs"]:
                layer.blobs.append(self.blob(start, stop))
            elif numbers is _V1 and number == _V1["layer"] and wire == 2:
                inner = self.layer(start, stop, _V0)
                layer.name = inner.name
                layer.blobs += inner.blobs
        if not layer.name and layer.blobs:
            layer.name = f"(layer at offset {where})"
        return layer

    def state(self, size: int) -> StoredState:
        state, has_iteration = StoredState(), False
        for number, wire, start, stop in self.fields(0, size):
            if number == _STATE["iter"] and wire == 0:
                state.iteration, has_iteration = start, True
            elif number == _STATE["learned_net"] and wire == 2:
                state.learned_net = self.data[start:stop].decode(errors="replace")
            elif number == _STATE["history"] and wire == 2:
                state.history.append(self.blob(start, stop))
        if not has_iteration:
            raise _Malformed("no iteration in it")
        return state

    def blob(self, at: int, end: int) -> StoredBlob:
        legacy, shape, has_legacy, raw = [0, 0, 0, 0], None, False, 0
        pieces: dict[int, list[tuple[int, int]]] = {_BLOB[k]: [] for k in ("data", "double_data", "raw_data")}
        for number, wire, start, stop in self.fields(at, end):
            if number in _LEGACY and wire == 0:
                legacy[_LEGACY[number]], has_legacy = start, True
            elif number == _BLOB["shape"] and wire == 2:
                shape = self.dims(start, stop)
            elif number == _BLOB["raw_data_type"] and wire == 0:
                raw = start
            elif number in pieces and wire in (1, 2, 5):
                pieces[number].append((start, stop - start))
        kinds = {"double_data": torch.float64, "data": torch.float32}
        if pieces[_BLOB["raw_data"]]:
            if raw not in _RAW:
                raise _Malformed(f"offset {at}: raw data of type {raw}, not floating-point numbers")
            kinds = {"raw_data": _RAW[raw]} | kinds
        name = next((name for name in kinds if pieces[_BLOB[name]]), "data")
        dtype, chosen = kinds[name], pieces[_BLOB[name]]
        for start, size in chosen:
            if size % dtype.itemsize:
                raise _Malformed(f"offset {start}: {size} bytes, not a whole number of values")
        count = sum(size for _, size in chosen) // dtype.itemsize
        if has_legacy or shape is None:  # legacy sizes win in Caffe
            shape = legacy if has_legacy else [count]
        if not all(0 <= n < 1 << 31 for n in shape) or math.prod(shape) != count:
            raise _Malformed(f"offset {at}: a blob of shape {shape} has {count} values")
        return StoredBlob(tuple(shape), dtype, chosen, has_legacy)

    def dims(self, at: int, end: int) -> list[int]:
        dims = []
        for number, wire, start, stop in self.fields(at, end):
            if number == 1 and wire == 0:
                dims.append(_signed(start))
            elif number == 1 and wire == 2:
                while start < stop:
                    value, start = self.varint(start, stop)
                    dims.append(_signed(value))
            if len(dims) > 32:
                raise _Malformed(f"offset {at}: a blob of more than 32 axes")
        return dims

    def fields(self, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, begin, end) of each field. For a varint, begin is its value."""
        while at < end:
            where = at
            tag, at = self.varint(at, end)
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                value, at = self.varint(at, end)
                yield number, wire, value, at
                continue
            if wire == 2:
                size, at = self.varint(at, end)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise _Malformed(f"offset {where}: a field of wire type {wire}")
            if not number or size > end - at:
                left = f"offset {where}: a field of {size} bytes where {end - at} are left"
                if number and end == len(self.data) and size < 1 << 40:
                    left += f": {size - end + at:,} are missing, as after a download that stopped: get the file again"
                raise _Malformed(left)
            yield number, wire, at, at + size
            at += size

    def varint(self, at: int, end: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 70:
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        raise _Malformed(f"offset {at}: a number without its end")


def _signed(value: int) -> int:
    return struct.unpack("<q", struct.pack("<Q", value & (1 << 64) - 1))[0]
