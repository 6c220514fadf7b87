"""caffe.coord_map: the position of a top of a NetSpec in another, and the Crop that aligns the two."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ...base import CaffeRuntimeError, CaffeValueError
from ..net.coordinates import Map, map_between
from .net_spec import Function, Top
from .net_spec import layers as L

_AXIS = 2  # the first spatial axis


_SIZES = {"kernel_size": 1, "stride": 1, "pad": 0, "dilation": 1, "offset": 0}


def _given(fn: Function) -> dict:
    given = dict(fn.params)
    for name in ("convolution_param", "pooling_param", "crop_param"):
        given |= given.get(name, {})
    return given


def _axes(fns) -> int:
    """The number of axes that the layers' parameters tell apart; 0 if each has one number for all."""
    lengths = [0]
    for given in map(_given, fns):
        lengths += [
            len(given[n]) for n in _SIZES if isinstance(given.get(n), list | tuple) and len(given[n]) > 1
        ]
        lengths += [2 for name in given if name.endswith(("_h", "_w"))]
    return max(lengths)


def _geometry(fn: Function, axis: int) -> SimpleNamespace:
    """The attributes of a layer's module that _net.coordinates reads, as along one axis."""
    given = _given(fn)

    def twice(name: str) -> tuple[int, int]:
        value = given.get(name, _SIZES[name])
        value = list(value) if isinstance(value, list | tuple) else [value]
        side = f"{name.partition('_')[0]}_{'hw'[axis : axis + 1]}"
        return 2 * (given.get(side, value[axis if len(value) > 1 else 0]),)

    return SimpleNamespace(
        is_set_up=True, kernel=twice("kernel_size"), stride=twice("stride"), pad=twice("pad"),
        dilation=twice("dilation"), whole=given.get("global_pooling", False),
        offsets=twice("offset") if "offset" in given else (),
    )  # fmt: skip


def _maps(top_from: Top, top_to: Top) -> tuple[int, list[Map]]:
    """(number of axes that differ, or 0; the map along each)."""
    makers, fns, waiting = {}, {}, [top_from, top_to]
    while waiting:
        fn = waiting.pop().fn
        if fn not in fns:
            fns[fn] = None
            makers.update(dict.fromkeys(fn.tops, SimpleNamespace(spec=fn, bottoms=fn.inputs)))
            waiting += fn.inputs
    axes = _axes(fns)
    found: list[Map] = []
    for axis in range(max(axes, 1)):
        modules = {fn: _geometry(fn, axis) for fn in fns}
        if (along := map_between(top_from, top_to, makers, modules, 0)) is None:
            raise CaffeRuntimeError(
                "coord_map: no top that both tops are computed from by layers whose geometry is known"
            )
        found.append(along)
    return axes, found


def coord_map_from_to(top_from: Top, top_to: Top) -> tuple:
    """(axis, scale, shift): `x_to = scale * x_from + shift` along the axes of an image, which follow `axis`.

    Scale and shift are numbers, or arrays of a number for each axis if the layers' parameters have several.
    """
    axes, maps = _maps(top_from, top_to)
    scales, shifts = (np.array([float(each[i]) for each in maps]) for i in range(2))
    return (_AXIS - 1, scales, shifts) if axes else (_AXIS - 1, float(scales[0]), float(shifts[0]))


class CropError(CaffeValueError, AssertionError):
    """A crop that cannot be: pycaffe's was an AssertionError."""


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop of `top_from` to the size and the place of `top_to`.

    Raises:
        CropError: their scales differ, or the position is not a whole number of elements inside `top_from`.
    """
    offsets = []
    for scale, shift in _maps(top_from, top_to)[1]:
        if scale != 1 or shift.denominator != 1 or shift > 0:
            raise CropError(
                f"crop: expected a scale of 1 and a shift that is whole and at most 0, got {scale} and {shift}"
            )
        offsets.append(int(-shift))
    return L.Crop(top_from, top_to, crop_param=dict(axis=_AXIS, offset=offsets))
