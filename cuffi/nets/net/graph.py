"""The layers of one phase as steps that make and read numbered values.

In Caffe a blob is a name, and an in-place layer writes to an existing blob. Here every write makes a new value, so
that nothing is overwritten and autograd has each version.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...caffe_files.parameters import did_you_mean
from ...caffe_files.prototxt import Node


@dataclass(eq=False)
class Spec:
    """One layer of the file."""

    node: Node
    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]

    @property
    def line(self) -> int:
        return self.node.line

    @staticmethod
    def of(node: Node) -> Spec:
        bottoms, tops = tuple(node.values("bottom")), tuple(node.values("top"))
        return Spec(node, node.value("name"), node.value("type"), bottoms, tops)


@dataclass(eq=False)
class Step:
    """A layer in the graph. Values are numbered."""

    spec: Spec
    bottoms: list[int] = field(default_factory=list)
    tops: list[int] = field(default_factory=list)
    is_complete: bool = True  # does a step make each of its bottoms?
    key: str = ""  # the submodule that computes it


@dataclass
class Graph:
    """The net of one phase."""

    steps: list[Step] = field(default_factory=list)
    sources: list[Spec] = field(default_factory=list)  # the layers whose tops are inputs
    names: list[str] = field(default_factory=list)  # each value's blob
    inputs: dict[str, int] = field(default_factory=dict)  # blob: value
    latest: dict[str, int] = field(default_factory=dict)  # blob: the last value with that name
    outputs: list[str] = field(default_factory=list)

    def value(self, name: str) -> int:
        self.names.append(name)
        self.latest[name] = len(self.names) - 1
        return len(self.names) - 1


def build(specs: list[Spec], is_input, report, elsewhere=frozenset(), left_out=None) -> Graph:
    """The graph of a phase's layers.

    Args:
        specs: in the order of the file, which is the order in which they run.
        is_input: takes a Spec. Are its tops inputs of the net?
        report: called with (spec, reason) for each problem.
        elsewhere: blobs that data layers of the other phase make. If this phase does not make them, they are inputs.
        left_out: what to say of a blob that a layer makes which this net leaves out, by the blob's name.
    """
    graph, unread = Graph(), {}
    made = {top: spec for spec in reversed(specs) for top in spec.tops if top not in spec.bottoms}
    for spec in specs:
        if is_input(spec):
            graph.sources.append(spec)
            for top in spec.tops:
                if top in graph.latest:
                    report(spec, f"top {top!r} is made by another layer, too")
                    continue
                graph.inputs[top] = graph.value(top)
            continue
        step = Step(spec)
        for bottom in spec.bottoms:
            if bottom not in graph.latest and bottom not in made and bottom in elsewhere:
                graph.inputs[bottom] = graph.value(bottom)
            if bottom in graph.latest:
                step.bottoms.append(graph.latest[bottom])
                if spec.tops or spec.type == "Silence":  # else it only writes or shows the blob
                    unread.pop(bottom, None)
                continue
            step.is_complete = False
            later = made.get(bottom)
            where = (left_out or {}).get(bottom) or f"is made by no layer{did_you_mean(bottom, graph.latest)}"
            if later:
                where = f"is made later, by {later.name!r} in line {later.line}"
            report(spec, f"bottom {bottom!r} {where}")
        for i, top in enumerate(spec.tops):
            in_place = i < len(spec.bottoms) and spec.bottoms[i] == top
            if top in graph.latest and not in_place:
                report(spec, f"top {top!r} is made by another layer, too")
            step.tops.append(graph.value(top))
            unread[top] = None
        graph.steps.append(step)
    graph.outputs = sorted(unread)
    return graph


def needed(graph_steps: list[Step], wanted: set[int]) -> list[Step]:
    """The steps that the wanted values depend on."""
    wanted, kept = set(wanted), []
    for step in reversed(graph_steps):
        if wanted.intersection(step.tops):
            wanted.update(step.bottoms)
            kept.append(step)
    return kept[::-1]
