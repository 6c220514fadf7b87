"""What a forward returns, its calls in order, and which values each of them may join, overwrite and free."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from google.protobuf.text_format import ParseBool
from torch import nn

from ...base import CaffeValueError, some
from ..stock.activations import ReLU
from ..stock.arithmetic import Eltwise, InnerProduct, Scale
from ..stock.convolutions import Convolution, Deconvolution
from ..stock.normalisation import BatchNorm
from .fused import is_activation, is_fusible
from .graph import Graph, Step, needed


class LayerCall(NamedTuple):
    """One layer's call. Values are numbered."""

    key: str  # the submodule
    bottoms: tuple[int, ...]
    tops: tuple[int, ...]
    cut: tuple[int, ...]  # positions of bottoms that get no gradient
    scale: str | None  # the Scale layer that this BatchNorm also computes
    over: tuple[
        str, ...
    ]  # this ReLU and the layers of its bottom, which it may overwrite if these have no hooks
    # The BatchNorm that this Convolution can also compute, with the Scale and the ReLU after it.
    norm: tuple[str, str | None, str | None] | None
    in_place: bool  # the file has the ReLU in place: then it may overwrite even if a gradient is needed
    last: tuple[int, ...]  # values that no later call reads


class Schedule(NamedTuple):
    """The calls of one kind of forward: its phase, inputs and outputs."""

    calls: tuple[LayerCall, ...]
    count: int  # number of values
    inputs: tuple[tuple[str, int], ...]
    used: tuple[int, ...]  # the input values that are read
    results: tuple[tuple[str, int], ...]
    single: bool  # return one tensor instead of a dict
    norms: tuple[str, ...]  # the submodules that are BatchNorm layers


def results_of(
    path: str, graph: Graph, losses: list[str], end: str | None, blobs: Iterable[str] | Literal[True] | None
) -> tuple[list[str], bool]:
    """The blobs that a call returns (CaffeNet.forward), and whether it returns one tensor.

    Args:
        path: the net's, for messages.
        losses: the blobs that are part of the loss.

    Raises:
        CaffeValueError: the net has no such blob or layer.
    """
    if end is not None:
        names = _tops_of(path, graph, end)
    elif blobs is True:
        names = list(graph.latest)
    elif blobs is not None:
        names = list(blobs)
    else:
        names = [*graph.outputs, *(blob for blob in losses if blob not in graph.outputs)]
        if silenced := not names and [
            b for s in graph.steps if s.spec.type == "Silence" for b in s.spec.bottoms
        ]:
            reads = f"{path}: no outputs: Silence reads {', '.join(some(silenced, 5))}"
            warnings.warn(f"{reads}. Choose one: end={silenced[-1]!r} or blobs=[...]", stacklevel=5)
    for name in names:
        if name not in graph.latest:
            raise CaffeValueError(f"{path}: no blob {name!r}. There are: {', '.join(some(graph.latest))}")
    return names, len(names) == 1 and (end is not None or blobs is None)


def _tops_of(path: str, graph: Graph, end: str) -> list[str]:
    if end in graph.latest:
        return [end]
    for step in graph.steps:
        if step.spec.name == end:
            return list(step.spec.tops)
    raise CaffeValueError(f"{path}: end: no blob or layer {end!r}. Blobs: {', '.join(some(graph.latest))}")


def schedule_of(
    get_layer: Callable[[str], nn.Module], graph: Graph, results: tuple, partly: bool, single: bool
) -> Schedule:
    """The schedule that computes these values. partly: only what they need runs."""
    values = {value for _, value in results}
    steps = needed(graph.steps, values) if partly else graph.steps
    steps = [step for step in steps if step.key]
    modules = {step.key: get_layer(step.key) for step in steps}
    calls = calls_of(modules, steps, values)
    read = {value for call in calls for value in call.bottoms} | values
    return Schedule(
        tuple(calls),
        len(graph.names),
        tuple(graph.inputs.items()),
        tuple([value for value in tuple(graph.inputs.values()) if value in read]),
        results,
        single,
        tuple([call.key for call in calls if isinstance(modules[call.key], BatchNorm)]),
    )


# Types whose tops are new memory. Their gradients do not read it.
_MAKERS = (BatchNorm, Convolution, Deconvolution, InnerProduct, Scale)


def calls_of(modules: dict[str, nn.Module], steps: list[Step], results: set[int]) -> list[LayerCall]:
    """The calls that run these steps. `results` are the values that the net returns.

    torch.compile reads this code, too: that of torch 2.5 knows no Counter, and only plain keys of a dict.
    """
    scales = _scales(modules, steps, results)
    norms = _norms(modules, steps, results, scales)
    merged = {scale.key for scale in scales.values()}
    steps = [step for step in steps if step.key not in merged]
    last = {value: i for i, step in enumerate(steps) for value in step.bottoms}
    readers = _readers(steps)
    makers: dict[int, tuple[str, ...]] = {}
    calls = []
    for i, step in enumerate(steps):
        module, scale = modules[step.key], scales.get(step.key)
        tops = (scale or step).tops
        done = tuple(v for v in dict.fromkeys(step.bottoms) if last[v] == i and v not in results)
        # Another reader's top may share the memory, such as a Reshape's.
        alone = type(module) is ReLU and done and len(readers[done[0]]) == 1
        over = (*makers[done[0]], step.key) if alone and done[0] in makers else ()
        in_place = step.spec.tops == step.spec.bottoms
        if type(module) in _MAKERS or (type(module) is Eltwise and len(step.bottoms) > 1):
            makers.update(dict.fromkeys(tops, (step.key, scale.key) if scale else (step.key,)))
        key = scale.key if scale else None
        norm = norms.get(step.key)
        calls.append(
            LayerCall(step.key, tuple(step.bottoms), tuple(tops), _cut(step), key, over, norm, in_place, done)
        )
    return calls


def _cut(step: Step) -> tuple[int, ...]:
    """The bottoms with propagate_down: false in the file. A ported layer handles them itself."""
    said = step.spec.node.values("propagate_down")
    return tuple(i for i, word in enumerate(said[: len(step.bottoms)]) if not ParseBool(word))


def _norms(
    modules: dict[str, nn.Module], steps: list[Step], results: set[int], scales: dict[str, Step]
) -> dict[str, tuple[str, str | None, str | None]]:
    """The layers that a Convolution can also compute, by its key: a BatchNorm, the Scale and the ReLU after it.

    No other layer may read the values between them.
    """
    readers = _readers(steps)
    norms = {}
    for step in steps:
        after = readers.get(step.tops[0], []) if len(step.tops) == len(step.bottoms) == 1 else []
        if len(after) != 1 or step.tops[0] in results or not is_fusible(modules[step.key]):
            continue
        if type(modules[after[0].key]) is BatchNorm:
            scale = scales.get(after[0].key)
            top = (scale or after[0]).tops[0]
            last = readers.get(top, []) if top not in results else []
            alone = len(last) == 1 and is_activation(modules[last[0].key])
            norms[step.key] = after[0].key, scale.key if scale else None, last[0].key if alone else None
    return norms


def _readers(steps: list[Step]) -> dict[int, list[Step]]:
    """The steps that read each value."""
    readers: dict[int, list[Step]] = {}
    for step in steps:
        for value in step.bottoms:
            readers.setdefault(value, []).append(step)
    return readers


def _scales(modules: dict[str, nn.Module], steps: list[Step], results: set[int]) -> dict[str, Step]:
    """The Scale step that a BatchNorm also computes, by the BatchNorm's key: torch has one operator for both."""
    readers = _readers(steps)
    pairs = {}
    for step in steps:
        module = modules[step.key]
        if not isinstance(module, BatchNorm) or step.tops[0] in results:
            continue
        after = readers.get(step.tops[0], [])
        if len(after) != 1 or _cut(after[0]):
            continue
        scale = modules[after[0].key]
        if (
            isinstance(scale, Scale)
            and scale.own_weight
            and scale.first_axis == 1
            and scale.weight.dim() == 1
        ):
            pairs[step.key] = after[0]
    return pairs
