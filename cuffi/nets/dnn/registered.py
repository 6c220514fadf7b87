"""Layers that a script's own class computes: cv2.dnn_registerLayer.

Such a class has `__init__(self, params, blobs)`; `getMemoryShapes(self, inputs)`, which returns the tops' shapes from
the bottoms'; and `forward(self, inputs)`, from arrays to arrays.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ...base import CaffeRuntimeError, CaffeTypeError, describe
from ...caffe_files.prototxt import Node
from ..net.graph import Spec
from ..stock import blobs_of

# The registered classes, by type. As in OpenCV, the last one counts.
registered: dict[str, list[type]] = {}


def registerLayer(layerType: str, layerClass: type) -> None:
    """Compute layers of this type by your own class, in all nets, also in those that were read before.

    Raises:
        CaffeTypeError: the class lacks one of the methods.
    """
    lacks = [name for name in ("getMemoryShapes", "forward") if not hasattr(layerClass, name)]
    if not isinstance(layerType, str) or lacks:
        wanted = "a type's name, and a class with getMemoryShapes and forward"
        raise CaffeTypeError(
            f"registerLayer: expected {wanted}, got {describe(layerType)}, {describe(layerClass)}"
        )
    registered.setdefault(layerType, []).append(layerClass)


def unregisterLayer(layerType: str) -> None:
    """Unregister the last class of this type."""
    if registered.get(layerType):
        registered[layerType].pop()


def newest(layerType: str) -> type | None:
    """The class that computes a type, if one is registered."""
    return next(reversed(registered.get(layerType, ())), None)


class RegisteredLayer(nn.Module):
    """A layer of a script's class. It runs on numpy arrays in the processor's memory, without a gradient.

    Args:
        spec: the layer in the file.
        kind: the class.
        before: the module that it replaces. Its blobs are the class's.
    """

    def __init__(self, spec: Spec, kind: type, before: nn.Module | None = None):
        super().__init__()
        self.layer_name, self.top_count, self.kind, self.before = spec.name, len(spec.tops), kind, before
        blobs = [_array(blob) for _, blob in blobs_of(before)] if before is not None else []
        self.instance = self._call(kind, _params(spec), blobs)

    def _call(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:  # the script's code ran
            said = f"{type(error).__name__}: {error}"
            raise CaffeRuntimeError(
                f"{self.layer_name}: {self.kind.__name__}, as registered: {said}"
            ) from error

    def top_shapes(self, *shapes) -> list[tuple[int, ...]]:
        found = self._call(self.instance.getMemoryShapes, [list(shape) for shape in shapes])
        return [tuple(int(n) for n in shape) for shape in found]

    def forward(self, *bottoms: Tensor):
        self.top_shapes(*(bottom.shape for bottom in bottoms))  # a class may keep what forward needs
        made = self._call(self.instance.forward, [_array(bottom) for bottom in bottoms])
        if len(made) != self.top_count:
            raise CaffeRuntimeError(
                f"{self.layer_name}: {self.kind.__name__}.forward returned {len(made)} arrays for {self.top_count} tops"
            )
        tops = [torch.from_numpy(np.ascontiguousarray(top, np.float32)).to(bottoms[0]) for top in made]
        return tops[0] if len(tops) == 1 else tuple(tops)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().to("cpu", torch.float32).contiguous().numpy()


def _params(spec: Spec) -> dict:
    """The fields of the layer's own message, as OpenCV gives them: numbers and strings, by their names."""
    found = {}
    messages = [entry.value for entry in spec.node.fields if isinstance(entry.value, Node)]
    for message in messages:
        values = [field.name for field in message.fields if not isinstance(field.value, Node)]
        found |= {name: _number(message.value(name)) for name in values}
    return found


def _number(text: str):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": 1, "false": 0}.get(text, text)
