"""Blobs of a .caffemodel, which is a serialized NetParameter."""

import array
import math
from pathlib import Path

import torch
from torch import Tensor

from .._runtime import CaffeValueError
from .parameters import Parameters


def blobs_of(parameters: Parameters, path, layer_name: str) -> list[Tensor]:
    """The blobs of the layer of that name, on the CPU, in the file's precision.

    Blobs of old files have four axes (num, channels, height, width), whatever the layer's own have.
    """
    from google.protobuf.message import DecodeError

    path = Path(path)
    layers = []
    try:
        net = parameters.net_parameter(path.read_bytes())
        layers = [_named(layer) for layer in (*net.layer, *getattr(net, "layers", ()))]
        # The same name may stand for a layer in training and one in testing, of which one has the weights.
        same = [layer.blobs for layer in layers if _name(layer) == layer_name]
        if same:
            return [_blob(blob) for blob in max(same, key=len)]
    except (DecodeError, ValueError) as error:
        raise CaffeValueError(f"{path}: not a .caffemodel: {error}") from None
    known = ", ".join(dict.fromkeys(map(_name, layers))) or "none"
    raise CaffeValueError(f"{path}: no layer {layer_name!r}. There are: {known}")


def _named(layer):
    """What has the name and the blobs: in Caffe's first format a message within the layer."""
    inner = "layer" in layer.DESCRIPTOR.fields_by_name and layer.HasField("layer")
    return layer.layer if inner else layer


def _name(layer) -> str:
    """A name in another encoding than UTF-8 comes as bytes: those that are no ASCII are shown as \\xff."""
    return layer.name if isinstance(layer.name, str) else layer.name.decode("ascii", "backslashreplace")


def _blob(blob) -> Tensor:
    double = not blob.data and "double_data" in blob.DESCRIPTOR.fields_by_name
    values = array.array("d", blob.double_data) if double else array.array("f", blob.data)
    dtype = torch.float64 if double else torch.float32
    flat = torch.frombuffer(values, dtype=dtype) if values else torch.empty(0, dtype=dtype)
    new = "shape" in blob.DESCRIPTOR.fields_by_name and blob.HasField("shape")
    shape = list(blob.shape.dim) if new else [blob.num, blob.channels, blob.height, blob.width]
    # Not by torch: its product of sizes may wrap around.
    if not all(0 <= size < 1 << 31 for size in shape) or math.prod(shape) != flat.numel():
        raise ValueError(f"a blob of shape {shape} has {flat.numel()} values")
    return flat.view(shape)
