"""Save a net as a .caffemodel. The values are written to the file directly from torch's memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...base import CaffeValueError
from ...base.files import written_whole
from ..stock import blobs_of
from .phases import TRAIN

if TYPE_CHECKING:
    from .net import CaffeNet  # which saves by this module

LIMIT = (1 << 31) - 1  # protobuf's, of a message


def save(net: CaffeNet, path) -> None:
    """Write a CaffeNet as a NetParameter of today's format: each layer with its name, type, bottoms, tops and blobs."""
    path = Path(path)
    if path.suffix in (".h5", ".hdf5"):
        raise CaffeValueError(
            f"save_caffemodel: {path}: HDF5 is read, and not written: use the suffix .caffemodel"
        )
    phase = net.phases.get(TRAIN) or next(iter(net.phases.values()))
    with written_whole(path) as file:
        file.write(_bytes(1, net.net_name.encode()))
        for step in phase.graph.steps:
            if step.key:
                _layer(file, step.spec, net.get_layer(step.key))
        if file.seekable() and file.tell() > LIMIT:
            warnings.warn(f"{path}: over 2 GB, which Caffe and OpenCV do not read", stacklevel=3)


def save_state(path, iteration: int, learned_net: str, histories: list[Tensor], current_step: int) -> None:
    """Write a SolverState, the content of a .solverstate."""
    with written_whole(path) as file:
        head = _number(1, iteration) + _bytes(2, learned_net.encode()) + _number(4, current_step)
        file.write(head)
        for history in histories:
            _write_blob(file, 3, *_blob(history.detach()))


def _layer(file, spec, module) -> None:
    head = _bytes(1, spec.name.encode()) + _bytes(2, spec.type.encode())
    head += b"".join(_bytes(3, name.encode()) for name in spec.bottoms)
    head += b"".join(_bytes(4, name.encode()) for name in spec.tops)
    blobs = [_blob(blob.detach()) for _, blob in blobs_of(module)]
    size = len(head) + sum(len(_tag(7)) + len(_varint(n)) + n for n, *_ in blobs)
    file.write(_tag(100) + _varint(size) + head)
    for blob in blobs:
        _write_blob(file, 7, *blob)


def _write_blob(file, number: int, total: int, begin: bytes, values: Tensor) -> None:
    file.write(_tag(number) + _varint(total) + begin)
    if values.numel():
        file.write(memoryview(values.numpy()).cast("B"))


def _blob(blob: Tensor) -> tuple[int, bytes, Tensor]:
    """(size of the BlobProto, its bytes before the values, the values)."""
    number, dtype = (8, torch.float64) if blob.dtype == torch.float64 else (5, torch.float32)
    values = blob.to("cpu", dtype).contiguous().reshape(-1)
    dims = b"".join(_varint(n) for n in blob.shape)
    begin = _bytes(7, _bytes(1, dims) if dims else b"")
    size = values.numel() * values.element_size()
    begin += _tag(number) + _varint(size)
    return len(begin) + size, begin, values


def _tag(number: int) -> bytes:
    return _varint(number << 3 | 2)


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _bytes(number: int, content: bytes) -> bytes:
    return _tag(number) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
