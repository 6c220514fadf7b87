"""Blobs of a .caffemodel, which is a serialized NetParameter. Only the few fields that hold weights are looked at."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ._runtime import CaffeValueError

# Field numbers: NetParameter's layers by their age, and in them name and blobs.
_LAYER, _V1_LAYER = 100, 2
_NAME_AND_BLOBS = {_LAYER: (1, 7), _V1_LAYER: (4, 6)}
_V0_LAYER = 1  # in a V1LayerParameter
_LEGACY_SHAPE, _DATA, _SHAPE, _DOUBLE_DATA = (1, 2, 3, 4), 5, 7, 8  # in a BlobProto
_DIM = 1  # in a BlobShape
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def blobs_of(path, layer_name: str) -> list[Tensor]:
    """The blobs of the layer of that name, on the CPU, in the file's precision.

    Blobs of old files have four axes (num, channels, height, width), whatever the layer's own have.
    """
    try:
        found = list(_layers(memoryview(Path(path).read_bytes())))
        # The same name may stand for a layer in training and one in testing, of which one has the weights.
        same = [blobs for name, blobs in found if name == layer_name]
        if same:
            return [_blob(blob) for blob in max(same, key=len)]
    except (ValueError, IndexError) as error:
        raise CaffeValueError(f"{Path(path)}: not a .caffemodel: {error}") from None
    known = ", ".join(dict.fromkeys(name for name, _ in found)) or "none"
    raise CaffeValueError(f"{Path(path)}: no layer {layer_name!r}. There are: {known}")


def _layers(net: memoryview) -> Iterator[tuple[str, list[memoryview]]]:
    for number, kind, value in _fields(net):
        if number in _NAME_AND_BLOBS and kind == _BYTES:
            name_field, blob_field = _NAME_AND_BLOBS[number]
            name, blobs = "", []
            for inner, inner_kind, field in _fields(value):
                if inner == name_field and inner_kind == _BYTES:
                    name = bytes(field).decode(errors="replace")
                elif inner == blob_field and inner_kind == _BYTES:
                    blobs.append(field)
                elif number == _V1_LAYER and inner == _V0_LAYER:
                    raise ValueError(
                        "it is of Caffe's first format: let Caffe's upgrade_net_proto_binary convert it"
                    )
            yield name, blobs


def _blob(blob: memoryview) -> Tensor:
    shape, legacy = None, {}
    values = {_DATA: bytearray(), _DOUBLE_DATA: bytearray()}
    for number, kind, value in _fields(blob):
        if number in values and kind in (_BYTES, _FIXED32, _FIXED64):
            values[number] += value
        elif number == _SHAPE and kind == _BYTES:
            shape = list(_dims(value))
        elif number in _LEGACY_SHAPE and kind == _VARINT:
            legacy[number] = value
    number = _DATA if values[_DATA] else _DOUBLE_DATA
    dtype = torch.float32 if values[_DATA] else torch.float64
    flat = torch.frombuffer(values[number], dtype=dtype) if values[number] else torch.empty(0)
    if shape is None:
        shape = [legacy.get(axis, 0) for axis in _LEGACY_SHAPE]
    if torch.Size(shape).numel() != flat.numel():
        raise ValueError(f"a blob of shape {shape} has {flat.numel()} values")
    return flat.view(shape)


def _dims(shape: memoryview) -> Iterator[int]:
    for number, kind, value in _fields(shape):
        if number != _DIM:
            continue
        if kind == _VARINT:
            yield value
        else:
            at = 0
            while at < len(value):
                dim, at = _varint(value, at)
                yield dim


def _fields(message: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """(number, wire type, value) of each field."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
        elif kind in (_FIXED32, _FIXED64, _BYTES):
            size = {_FIXED32: 4, _FIXED64: 8}.get(kind)
            if size is None:
                size, at = _varint(message, at)
            if at + size > len(message):
                raise ValueError("it ends within a field")
            value, at = message[at : at + size], at + size
        else:
            raise ValueError(f"it has a field of wire type {kind}")
        yield number, kind, value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("it has a number of more than 64 bits")
