"""Which layers of a prototxt belong to a phase: the rules include and exclude, by phase, level and stage."""

from __future__ import annotations

from dataclasses import dataclass

from .._caffe.prototxt import Node
from .._runtime import CaffeValueError

TRAIN, TEST = "TRAIN", "TEST"


@dataclass(frozen=True)
class State:
    """Caffe's NetState."""

    phase: str
    level: int = 0
    stages: frozenset[str] = frozenset()


def included(layer: Node, state: State, path) -> bool:
    """Is the layer part of the net in that state?"""
    include, exclude = layer.nodes("include"), layer.nodes("exclude")
    if include and exclude:
        raise CaffeValueError(
            f"{path}, line {layer.line}: layer {layer.value('name')!r} has both include and exclude"
        )
    if include:
        return any(_meets(rule, state, path) for rule in include)
    return not any(_meets(rule, state, path) for rule in exclude)


def _meets(rule: Node, state: State, path) -> bool:
    phase = rule.value("phase")
    phase = {"0": TRAIN, "1": TEST}.get(phase, phase)
    if phase and phase not in (TRAIN, TEST):
        raise CaffeValueError(f"{path}, line {rule.line}: phase: expected TRAIN or TEST, got {phase!r}")
    if phase and phase != state.phase:
        return False
    if rule.has("min_level") and state.level < _level(rule, "min_level", path):
        return False
    if rule.has("max_level") and state.level > _level(rule, "max_level", path):
        return False
    return state.stages.issuperset(rule.values("stage")) and state.stages.isdisjoint(rule.values("not_stage"))


def _level(rule: Node, name: str, path) -> int:
    try:
        return int(rule.value(name), 0)
    except ValueError:
        raise CaffeValueError(
            f"{path}, line {rule.line}: {name}: expected an integer, got {rule.value(name)!r}"
        ) from None
