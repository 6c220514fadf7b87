"""Which layers of a prototxt belong to a phase: the rules include and exclude, by phase, level and stage."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...caffe_files.prototxt import Node
from .messages import message_of

TRAIN, TEST = "TRAIN", "TEST"
_PHASES = (TRAIN, TEST)  # by Caffe's numbers


@dataclass(frozen=True)
class State:
    """Caffe's NetState. A level that is not given is 0."""

    phase: str
    level: int | None = None
    stages: frozenset[str] = frozenset()

    def over(self, state: Node | None) -> State:
        """This state merged over the NetState of a file: `state` of a net, `train_state` or `test_state` of a solver.

        Its stages are added, and its level counts if this state has none, as in Caffe's Solver. Its phase is ignored,
        because the caller chooses the phase. A solver's net is `State(TRAIN).over(train_state).over(state)`.
        """
        if state is None:
            return self
        said = message_of(state, "NetState")
        level = said.level if self.level is None and said.HasField("level") else self.level
        return replace(self, level=level, stages=self.stages.union(said.stage))


def included(layer: Node, state: State) -> bool:
    """Is the layer part of the net in that state? CaffeValueError for an empty rule."""
    include, exclude = layer.nodes("include"), layer.nodes("exclude")
    if include and exclude:
        raise layer.wrong(layer.line, f"layer {layer.value('name')!r} has both include and exclude")
    if include:
        return any(_meets(rule, state) for rule in include)
    return not any(_meets(rule, state) for rule in exclude)


def why_left_out(layer: Node, state: State) -> str:
    """Which stage or level has a layer that is not part of the net in that state. "": the other phase has it."""
    rules = [message_of(node, "NetStateRule") for node in layer.nodes("include")]
    here = [rule for rule in rules if not rule.HasField("phase") or _PHASES[rule.phase] == state.phase]
    if rules and not here:
        return ""
    for rule in here:
        if lacking := [stage for stage in rule.stage if stage not in state.stages]:
            wanted = sorted({*state.stages, *rule.stage})
            return f"which is only in the stage {', '.join(map(repr, lacking))}: stages={wanted!r}"
        if rule.HasField("min_level") and (state.level or 0) < rule.min_level:
            return f"which is only from level {rule.min_level} on: level={rule.min_level}"
    stages = {stage for rule in here for stage in rule.not_stage}
    stages |= {stage for node in layer.nodes("exclude") for stage in message_of(node, "NetStateRule").stage}
    against = ", ".join(map(repr, sorted(stages & state.stages)))
    return f"which the stage {against} leaves out" if against else ""


def _meets(node: Node, state: State) -> bool:
    rule, level = message_of(node, "NetStateRule"), state.level or 0
    if rule.HasField("phase") and _PHASES[rule.phase] != state.phase:
        return False
    if rule.HasField("min_level") and level < rule.min_level:
        return False
    if rule.HasField("max_level") and level > rule.max_level:
        return False
    return state.stages.issuperset(rule.stage) and state.stages.isdisjoint(rule.not_stage)
