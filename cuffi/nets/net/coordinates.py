"""The offset of a Crop layer whose file has none. Caffe before 2016 computed it from the geometry of the layers above.

Along an axis each layer maps a coordinate of its top to one of its bottom: x_bottom = scale * x_top + shift. Both
bottoms of the Crop depend on a common blob. The crop begins where coordinate 0 of its second bottom lies in the first,
by the maps to that blob.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .graph import Graph, Step

Map = tuple[Fraction, Fraction]
# Types that do not move values.
_IN_PLACE = (
    "AbsVal", "BatchNorm", "Bias", "BNLL", "Clip", "Concat", "Dropout", "Eltwise", "ELU", "Exp", "Log", "LRN", "Power",
    "PReLU", "ReLU", "Scale", "Sigmoid", "Softmax", "Split", "Swish", "TanH", "Threshold",
)  # fmt: skip
_CROPS = ("Crop", "AutoCrop")


def crop_offsets(graph: Graph, crop: Step, modules: dict) -> tuple[int, int] | None:
    """The offsets along both image axes; None if the geometry does not determine them."""
    makers = {value: step for step in graph.steps for value in step.tops}
    offsets = []
    for axis in range(2):
        found = map_between(*crop.bottoms, makers, modules, axis)
        if found is None or found[0] != 1 or found[1].denominator != 1 or found[1] > 0:
            return None
        offsets.append(int(-found[1]))
    return offsets[0], offsets[1]


def map_between(value, other, makers: dict, modules: dict, axis: int) -> Map | None:
    """The map from a value's coordinates to another's, through the nearest value that both are computed from."""
    first, second = (_ancestors(one, makers, modules, axis) for one in (value, other))
    common = next((one for one in first if one in second), None)
    if common is None:
        return None
    (scale, shift), (other_scale, other_shift) = first[common], second[common]
    return scale / other_scale, (shift - other_shift) / other_scale


def _ancestors(value, makers: dict, modules: dict, axis: int) -> dict[Any, Map]:
    """The value and the values that it is computed from, nearest first, each with its map from the value's
    coordinates.
    """
    found: dict[Any, Map] = {value: (Fraction(1), Fraction(0))}
    waiting = [value]
    while waiting:
        current = waiting.pop(0)
        step = makers.get(current)
        if step is None or (own := map_of(step, modules, axis)) is None:
            continue
        scale, shift = found[current]
        for bottom in step.bottoms[:1] if step.spec.type in _CROPS else step.bottoms:
            if bottom not in found:
                found[bottom] = (own[0] * scale, own[0] * shift + own[1])
                waiting.append(bottom)
    return found


def map_of(step: Step, modules: dict, axis: int) -> Map | None:
    module, kind = modules.get(step.spec), step.spec.type
    if kind in _IN_PLACE:
        return Fraction(1), Fraction(0)
    if kind in _CROPS and module is not None and module.is_set_up and len(module.offsets) >= 2:
        return Fraction(1), Fraction(module.offsets[-2 + axis])
    if kind not in ("Convolution", "Deconvolution", "Pooling") or module is None or not module.is_set_up:
        return None
    if kind == "Pooling" and module.whole:
        return None
    if len(module.kernel) != 2:
        return None
    dilation = getattr(module, "dilation", (1, 1))[axis]
    extent = dilation * (module.kernel[axis] - 1) + 1
    stride, centre = module.stride[axis], Fraction(extent - 1, 2) - module.pad[axis]
    if kind == "Deconvolution":  # the inverse of the convolution's map
        return Fraction(1, stride), -centre / stride
    return Fraction(stride), centre
