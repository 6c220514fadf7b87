"""Warn about a layer that keeps values in its members, when its calls overlap.

Overlapping calls each have a C++ object. So a moving average or a counter in a member does not follow the order of the
calls.
"""

import warnings

import torch
from torch import Tensor

from ...runtime import CaffeError
from . import services
from .instance import Definition, Instance, Site

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-12}


def warn_of_state(
    definition: Definition, site: Site, mode: str, bottoms, blobs, shapes, iteration: int
) -> None:
    """Warn if the tops depend on what an earlier call left in the object.

    Two new objects compute these tops, with the same random numbers. One of them has computed others before.

    Args:
        shapes: the shapes of the bottoms at set up.
    """
    wanted = [False] * (len(bottoms) + len(blobs))

    def tops_after(*calls):
        instance = Instance(definition, site, mode, shapes, iteration)
        for inputs in calls:
            with services.replaying({}):
                inputs, copies = [b.clone() for b in inputs], [b.clone() for b in blobs]
                tops = instance.forward(mode, iteration, inputs, copies, wanted)
        return [t.clone() for t in tops or ()]

    try:
        with services.replaying({}):
            first, second = tops_after(bottoms), tops_after(_others(bottoms), bottoms)
    except (CaffeError, torch.OutOfMemoryError):
        return
    if len(first) == len(second) and all(map(same, first, second)):
        return
    warnings.warn(
        f"{definition.name}: {definition.type} keeps values in its members, and calls of this module overlap: one "
        "began before the backward of another. Each has a C++ object of its own, so these values do not follow the "
        "order of the calls. Run each call's backward, or drop its result, before the next call",
        stacklevel=2,
    )


def same(one: Tensor, other: Tensor) -> bool:
    """Are these the results of one computation?"""
    tolerance = TOLERANCES[one.dtype]
    return one.shape == other.shape and torch.allclose(one, other, tolerance, tolerance, equal_nan=True)


def _others(bottoms: list[Tensor]) -> list[Tensor]:
    """Other values that the layer accepts: the batch's first item, repeated."""
    return [b[:1].expand_as(b).contiguous() if b.dim() else b for b in bottoms]
