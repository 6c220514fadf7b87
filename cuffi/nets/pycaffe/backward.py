"""Backward of caffe.Net: the diffs of blobs and parameters, from what a forward recorded."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..net.graph import Graph, Step
from ..net.net import CaffeNet
from .blobs import NetBlob


class Tape(NamedTuple):
    """What a forward recorded: the numbers of its first and last layer, and the values by number."""

    first: int
    last: int
    values: list[Tensor | None]


def differentiate(
    module: CaffeNet,
    graph: Graph,
    steps: list[Step],
    tape: Tape,
    blobs: dict[str, NetBlob],
    force_backward: bool,
) -> None:
    """Write the diffs of the blobs that these steps read, and add those of their parameters.

    A blob that no step reads begins with its own diff. With force_backward Caffe calls every layer's backward, also
    where no gradient arrives.
    """
    names = graph.names
    values = {number: value for number, value in enumerate(tape.values) if value is not None}
    read = {value for step in steps for value in step.bottoms}
    tops = [value for step in steps for value in step.tops if value not in read]
    seeds = [v for v in tops if values[v].requires_grad and (force_backward or blobs[names[v]].has_diff)]
    # A blob's diff is that of its first version in the range, because in-place layers overwrite it.
    versions: dict[str, int] = {}
    for step in steps:
        for value in (*step.bottoms, *step.tops):
            versions.setdefault(names[value], value)
    inner = [value for value in versions.values() if values[value].requires_grad and value not in seeds]
    layers = (module.get_layer(step.key) for step in steps)
    parameters = list(dict.fromkeys(p for layer in layers for p in layer.parameters() if p.requires_grad))
    if not seeds:
        return
    given = [torch.as_tensor(blobs[names[v]].diff).to(values[v]) for v in seeds]
    gradients = torch.autograd.grad(
        [values[v] for v in seeds], [*(values[v] for v in inner), *parameters], given, allow_unused=True
    )
    for value, gradient in zip(inner, gradients, strict=False):
        if gradient is not None:
            blobs[names[value]].diff[...] = gradient.cpu().numpy()
    for parameter, gradient in zip(parameters, gradients[len(inner) :], strict=True):
        if gradient is not None:
            parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
