"""Build a CaffeNet from a prototxt: its phases and their graphs, a module for each layer, and what the inputs are."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator

from ...base import CaffeError, CaffeValueError
from ...caffe_files.prototxt import Node, filled_in, parse, read_text
from ...caffe_files.upgrade import upgraded
from ..forks import fork_classes
from .blob_shapes import infer_shapes
from .choice import NO_COMPUTATION, Options, by_torch, module_of
from .graph import Graph, Spec, build
from .inputs import Items, check_names, input_shapes, is_data, is_input
from .messages import message_of
from .net import CaffeNet, Phase
from .phases import TRAIN, State, included, why_left_out
from .python_layer import why_refused
from .report import Report, reason_of
from .sharing import set_loss_weights, set_multipliers, share


class Builder:
    """Builds one net."""

    def __init__(self, text: str, path, options: Options):
        self.path, self.options = path, options
        self.root, self.report = parse(text, path), Report(path)
        self.specs = [Spec.of(node) for node in upgraded(self.root, path, self.report.notes)]
        if not self.specs and not self.root.has("input"):
            solves = self.root.value("net") or self.root.value("train_net")
            hint = f". It is a solver file, whose net is {solves!r}: cuffi train takes it" if solves else ""
            raise CaffeValueError(f"{path}: not a net: no `layer` and no `layers`{hint}")
        message_of(self.root.without("layer", "layers"), "NetParameter", options.ignore)
        check_names(options.shapes, self.root, self.specs, self._is_input, path)
        if self.root.value("debug_info") == "true":
            line = next(f.line for f in self.root.fields if f.name == "debug_info")
            self._warn(line, "debug_info: the sizes of blobs and diffs are not logged")

    def _warn(self, line: int, what: str) -> None:
        """Say once what the file asks for and nothing here does."""
        warnings.warn(f"{self.path}, line {line}: {what}", stacklevel=3)

    # ---------------------------------------------------------------------------------------- phases

    def check_inputs(self, states: list[State]) -> None:
        """Raise CaffeValueError for problems that can be found before there are modules."""
        graphs = {state.phase: self._graph(state) for state in self._over(states)}
        self._leave_out_a_phase(graphs)
        for phase, graph in graphs.items():
            self._input_shapes(graph, phase)
        self._raise(self.states)

    def _over(self, states: list[State]) -> list[State]:
        states = [state.over(self.root.node("state")) for state in states]
        self.states = {state.phase: state for state in states}
        return states

    def build(self, states: list[State]) -> CaffeNet:
        if any(fork_classes(spec.type) for spec in self.specs):
            self.options.stored_blobs  # noqa: B018 - a damaged file is one problem, and not one of each layer of a fork
        states = self._over(states)
        phases = {state.phase: Phase(self._graph(state)) for state in states}
        self._leave_out_a_phase(phases)
        net = CaffeNet(self.root.value("name"), str(self.path), phases)
        for spec in dict.fromkeys(step.spec for made in phases.values() for step in made.graph.steps):
            self._make(net, spec)
        inputs = {phase: self._input_shapes(made.graph, phase) for phase, made in phases.items()}
        infer_shapes(net, inputs, self._inputs_with_shape(), self.options, self.report)
        for phase, made in phases.items():
            self.report.add_always(phase, (step.spec for step in made.graph.steps))
        self._raise(phases)
        share(net, self.report)
        set_multipliers(net, self.report)
        self._raise(phases)
        set_loss_weights(net)
        keys = {spec: key for key, spec in net.specs.items()}
        for made in phases.values():
            for step in made.graph.steps:
                step.key = keys.get(step.spec, "")
        net.notes = list(dict.fromkeys(self.report.notes))
        return net

    def _raise(self, phases: dict) -> None:
        if self.report:
            raise self.report.error(len(phases))

    def _leave_out_a_phase(self, phases: dict) -> None:
        """If one phase of two has blobs that no layer makes, the file is a net only of the other phase."""
        lacking = {phase: self.report.of_phase(phase) for phase in phases}
        without = [phase for phase, reasons in lacking.items() if reasons]
        if len(phases) != 2 or len(without) != 1:
            return
        (phase,) = without
        spec, reason = lacking[phase][0]
        self.report.problems.clear()
        del phases[phase]
        self.report.notes.append(f"no {phase}: line {spec.line}: {spec.name!r} ({spec.type}): {reason}")

    def _graph(self, state: State) -> Graph:
        named = [self._with_automatic_tops(spec) for spec in self._in(state.phase)]
        inputs = [self._input_spec(i, name) for i, name in enumerate(self.root.values("input"))]
        return build(
            inputs + named,
            self._is_input,
            lambda spec, reason: self.report.add(spec, reason, state.phase),
            {top for spec in self.specs if self._is_input(spec) for top in spec.tops},
            self._left_out(state.phase),
        )

    def _left_out(self, phase: str) -> dict[str, str]:
        """What to say of blobs of layers that this net leaves out."""
        state, said = self.states[phase], {}
        for spec in self.specs:
            if not included(spec.node, state) and (why := why_left_out(spec.node, state)):
                said.update(dict.fromkeys(spec.tops, f"is made by {spec.name!r} in line {spec.line}, {why}"))
        return said

    def _is_input(self, spec: Spec) -> bool:
        runs_python = self.options.python is not None
        return is_input(spec, self.options.folders, runs_python, self.options.types)

    def _in(self, phase: str) -> list[Spec]:
        return [spec for spec in self.specs if included(spec.node, self.states[phase])]

    def _input_spec(self, i: int, name: str) -> Spec:
        return Spec(Node(1), name, "Input", (), (name,))

    def _with_automatic_tops(self, spec: Spec) -> Spec:
        """Give a loss without tops its top, as Caffe does."""
        kind = next(iter(by_torch(spec.type)), None)
        is_loss = kind.is_loss if kind else spec.type.endswith("Loss")
        if is_loss and spec.bottoms and not spec.tops:
            spec.tops = (spec.name or "(automatic)",)
        return spec

    # --------------------------------------------------------------------------------------- modules

    def _make(self, net: CaffeNet, spec: Spec) -> None:
        """Make the module of a layer, and put it into the net."""
        if spec.type in NO_COMPUTATION:
            self._warn(
                spec.line, f"{spec.name!r} ({spec.type}) writes no file here. Read {', '.join(spec.bottoms)}"
            )
            return
        for reason in _miscounted(spec):
            self.report.stop(spec, reason)
        try:
            module = module_of(spec, self.options, self.report)
        except (CaffeError, ValueError, TypeError) as error:
            self.report.stop(spec, reason_of(error, spec))
            return
        if module is None:
            return
        key = self._key(net, spec)
        net.add_module(key, module)
        net.specs[key] = spec
        if spec.node.has("phase"):
            net.fixed[key] = spec.node.value("phase") in (TRAIN, "0")
        net.keys.setdefault(spec.name, []).append(key)

    def _key(self, net: CaffeNet, spec: Spec) -> str:
        base = spec.name.replace(".", "_") or f"layer_{spec.line}"
        if hasattr(type(net), base) or base in net.__dict__:
            base += "_"
        key, number = base, 2
        while hasattr(net, key):
            key, number = f"{base}_{number}", number + 1
        return key

    # ---------------------------------------------------------------------------------------- inputs

    def _input_shapes(self, graph: Graph, phase: str) -> dict[str, tuple[int, ...]]:
        specs, given = self._in(phase), self.options.shapes
        shapes = input_shapes(self.root, specs, self.path, given, self.specs, self._first_items)
        read = {value for step in graph.steps for value in step.bottoms}
        for blob, value in graph.inputs.items():
            if blob not in shapes and value in read:
                makers = [spec for spec in (*specs, *self.specs) if blob in spec.tops]
                spec = makers[0] if makers else self._input_spec(0, blob)
                self.report.add(spec, self._why_unknown(spec, blob), phase)
        return shapes

    @functools.cached_property
    def _first_items(self) -> Items:
        """What the data layers read first, where their data are there."""
        if not any(is_data(spec.type) and spec.type not in ("Input", "DummyData") for spec in self.specs):
            return {}
        from ..data.loader import first_items  # imported here, because it imports numpy

        return first_items(self.specs, self.path)

    def _inputs_with_shape(self) -> set[str]:
        """The input blobs whose shape the user or the file says."""
        written = (spec for spec in self.specs if spec.type in ("Input", "DummyData"))
        return {*self.options.shapes, *self.root.values("input"), *(top for s in written for top in s.tops)}

    def _why_unknown(self, spec: Spec, blob: str) -> str:
        from ..data.loader import why_unread  # imported here, because it imports numpy

        if spec.type == "Python":
            return f"{why_refused(spec)}. To give its blobs yourself: shapes={{{blob!r}: (...)}}"
        why = why_unread(spec, self.path)
        said = f", and its source cannot be read: {why}. Without it" if why else ""
        return f"the shape of input {blob!r} is not in the file{said}: shapes={{{blob!r}: (...)}}"


def _miscounted(spec: Spec) -> Iterator[str]:
    """Problems of fields that each bottom or top must have, and of values that nobody reads."""
    for name, what, count in (
        ("loss_weight", "tops", len(spec.tops)),
        ("propagate_down", "bottoms", len(spec.bottoms)),
    ):
        if (said := len(spec.node.values(name))) not in (0, count):
            yield f"{said} {name} for {count} {what}"
    if spec.node.has("blobs"):
        yield "blobs in a prototxt are not read: pass them as weights"


def read_net(prototxt, replace: dict | None) -> tuple[str, str]:
    """(text, name) of a prototxt, given by its path or as text that contains `{`."""
    if isinstance(prototxt, str) and ("{" in prototxt or "\n" in prototxt):
        return filled_in(prototxt, replace or {}, "prototxt"), "prototxt"
    return read_text(prototxt, replace), str(prototxt)


def check_inputs(prototxt, replace: dict | None, states: list[State], options: Options) -> None:
    """Check a net's graph and its inputs, which needs no layer: CaffeValueError, as building it would raise."""
    builder = Builder(*read_net(prototxt, replace), options)
    builder.check_inputs(states)
