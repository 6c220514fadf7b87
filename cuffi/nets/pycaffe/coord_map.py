"""caffe.coord_map: the position of a top of a NetSpec in another, and the Crop that aligns the two."""

from __future__ import annotations

from types import SimpleNamespace

from ...base import CaffeValueError
from ..net.coordinates import Map, map_between
from .net_spec import Function, Top
from .net_spec import layers as L

_AXIS = 2  # the first spatial axis


def _geometry(fn: Function) -> SimpleNamespace:
    """The attributes of a layer's module that _net.coordinates reads, from a NetSpec's parameters."""
    given = dict(fn.params)
    for name in ("convolution_param", "pooling_param", "crop_param"):
        given |= given.get(name, {})

    def both(name: str, default: int) -> tuple[int, int]:
        value = given.get(name, default)
        value = list(value) if isinstance(value, list | tuple) else [value]
        short = name.partition("_")[0]
        return given.get(f"{short}_h", value[0]), given.get(f"{short}_w", value[-1])

    offset = given.get("offset", ())
    return SimpleNamespace(
        is_set_up=True, kernel=both("kernel_size", 1), stride=both("stride", 1), pad=both("pad", 0),
        dilation=both("dilation", 1), whole=given.get("global_pooling", False),
        offsets=2 * list(offset) if isinstance(offset, list | tuple) and len(offset) == 1 else offset,
    )  # fmt: skip


def _maps(top_from: Top, top_to: Top) -> list[Map]:
    makers, modules, waiting = {}, {}, [top_from, top_to]
    while waiting:
        fn = waiting.pop().fn
        if fn not in modules:
            modules[fn] = _geometry(fn)
            makers.update(dict.fromkeys(fn.tops, SimpleNamespace(spec=fn, bottoms=fn.inputs)))
            waiting += fn.inputs
    found = [map_between(top_from, top_to, makers, modules, axis) for axis in (0, 1)]
    if None in found:
        raise CaffeValueError(
            "crop: no top that both tops are computed from by layers whose geometry is known"
        )
    return found


def coord_map_from_to(top_from: Top, top_to: Top) -> tuple[int, list[float], list[float]]:
    """(axis, scales, shifts): `x_to = scale * x_from + shift`, along both axes of an image, which follow `axis`."""
    maps = _maps(top_from, top_to)
    return _AXIS - 1, [float(scale) for scale, _ in maps], [float(shift) for _, shift in maps]


def crop(top_from: Top, top_to: Top) -> Top:
    """A Crop of `top_from` to the size and the place of `top_to`.

    Raises:
        CaffeValueError: their scales differ, or the position is not a whole number of elements inside `top_from`.
    """
    offsets = []
    for scale, shift in _maps(top_from, top_to):
        if scale != 1 or shift.denominator != 1 or shift > 0:
            raise CaffeValueError(
                f"crop: expected a scale of 1 and a shift that is whole and at most 0, got {scale} and {shift}"
            )
        offsets.append(int(-shift))
    return L.Crop(top_from, top_to, crop_param=dict(axis=_AXIS, offset=offsets))
