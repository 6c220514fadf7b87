"""An operator with every kind of parameter."""

from collections.abc import Sequence
from typing import Optional

from torch import Tensor

from cuffi.runtime import operator


def scaled(layer):
    """An operator with every kind of parameter; a tensor may be None by its annotation, not by its default."""

    @operator(layer)
    def scale(x: Tensor, factor: Optional[Tensor], shift: Tensor | None, sizes: Sequence[int]) -> Tensor:  # noqa: UP045
        top = x * 1 if factor is None else x * factor
        return top if shift is None else top + shift

    return scale


class Labelled(Tensor):
    pass
