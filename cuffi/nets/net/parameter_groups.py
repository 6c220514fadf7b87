"""A net's parameters for a torch optimizer, by the file's lr_mult and decay_mult."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

from torch import Tensor, nn

from ...base import CaffeTypeError, describe
from ..stock import blobs_of

if TYPE_CHECKING:
    from .net import CaffeNet  # whose method calls this


def parameter_groups(net: CaffeNet, lr: float, weight_decay: float) -> list[dict]:
    """See CaffeNet.parameter_groups."""
    for name, value in (("lr", lr), ("weight_decay", weight_decay)):
        if isinstance(value, bool) or not isinstance(value, (numbers.Real, Tensor)):
            raise CaffeTypeError(
                f"{net.path}: parameter_groups: {name}: expected a number, got {describe(value)}"
            )
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    seen: set[int] = set()
    for key, module in net.named_children():
        blobs = [blob for _, blob in blobs_of(module)]
        of_file = list(zip(blobs, net.multipliers.get(key, ()), strict=False))
        # A submodule that the user put here may have parameters that the file does not have.
        for parameter, both in of_file + [(parameter, (1.0, 1.0)) for parameter in module.parameters()]:
            trained = isinstance(parameter, nn.Parameter) and parameter.requires_grad
            if trained and id(parameter) not in seen:
                seen.add(id(parameter))
                groups.setdefault(both, []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": lr * mult,
            "weight_decay": weight_decay * decay,
            "lr_mult": mult,
            "decay_mult": decay,
        }
        for (mult, decay), parameters in groups.items()
    ]
