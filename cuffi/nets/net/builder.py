"""Build a CaffeNet from a prototxt: rules, graph, a module for each layer, shapes, parameters. Errors are collected."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from ...base import CaffeError, CaffeValueError, some
from ...base.files import named_by
from ...base.shown import command
from ...caffe_files.parameters import SLIP, Unknown, UnknownFieldError, did_you_mean, read_fields
from ...caffe_files.prototxt import Field, Node, filled_in, number, parse, quoted, read_text, render, unquoted
from ...caffe_files.upgrade import upgraded
from ..known import known_classes, known_types, variant_of
from ..stock import StockDefinition, StockLayer, blobs_of, stock_class, stock_types
from ..stock.crop import Crop
from .coordinates import crop_offsets
from .graph import Graph, Spec, Step, build
from .inputs import check_names, input_shapes, is_input
from .messages import STOCK, layer_parameter, message_of
from .net import CaffeNet, Phase
from .phases import TRAIN, State, included
from .python_layer import python_layer, why_refused
from .registry import Folders, Ported, is_ported
from .sharing import view
from .weights import stored_counts

# Stock types that do not compute on tensors, and are left out.
NO_COMPUTATION = ("HDF5Output",)


@dataclass
class Options:
    """The options of caffe_net."""

    native: bool | dict[str, bool] = True
    folders: Folders = field(default_factory=Folders)
    ignore: tuple[str, ...] = ()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    crop: str | None = None
    weights: list[str] = field(default_factory=list)  # weights files that will be loaded
    # Imports a Python layer's module by its name. None: python_layers is False.
    python: Callable | None = None
    types: dict[str, Callable[[Spec], nn.Module]] = field(default_factory=dict)  # the user's own layers

    @functools.cached_property
    def stored_blobs(self) -> dict[str, int]:
        """The number of blobs in the weights files, by layer."""
        return stored_counts(self.weights)

    def is_native(self, type_name: str) -> bool:
        return self.native if isinstance(self.native, bool) else self.native.get(type_name, True)

    def takes_known(self, type_name: str) -> bool:
        """Does torch compute this fork's type? Not if the user has a ported layer of that type, or says no by
        `native`.
        """
        kinds = known_classes(type_name)
        if not kinds or not self.is_native(type_name):
            return False
        is_wanted = not isinstance(self.native, bool) and self.native.get(type_name, False)
        chosen = self.folders.chosen.get(type_name)
        if is_wanted or (chosen is not None and chosen in [kind.variant for kind in kinds]):
            return True
        ported = self.folders.find(type_name)
        on_gpu = {kind.native: kind.native_on_gpu for kind in kinds if kind.native}
        if ported is None or chosen is not None or not ported.is_own or ported.folder.name not in on_gpu:
            return ported is None
        return not (on_gpu[ported.folder.name] and torch.cuda.is_available() and ported.has_gpu_library())


class Problems:
    """The problems that were found, by layer."""

    def __init__(self, path):
        self.path = path
        self.found: dict[tuple[int, str], tuple[Spec | None, list[str]]] = {}
        self.missing: set[str] = set()  # types that nobody has, to be ported

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, spec: Spec, reason: str, phase: str = "") -> None:
        """Add a problem of a layer, in one phase or in all."""
        _, phases = self.found.setdefault((spec.line, reason), (spec, []))
        if phase not in phases:
            phases.append(phase)

    def of_phase(self, phase: str) -> list[tuple[Spec, str]]:
        """(layer, reason) of those in this phase."""
        return [(spec, reason) for (_, reason), (spec, phases) in self.found.items() if phase in phases]

    def error(self, phases: int) -> CaffeValueError:
        lines = []
        for (line, reason), (spec, in_phases) in sorted(self.found.items(), key=lambda item: item[0][0]):
            alone = (
                f" (only in phase {in_phases[0]})" if len(in_phases) < phases and "" not in in_phases else ""
            )
            lines.append(f"  line {line}: {spec.name!r} ({spec.type}): {reason}{alone}")
        text = f"{self.path}: {len(lines)} problem{'s' * (len(lines) > 1)}:\n"
        text += "\n".join(some(lines))
        if self.missing:
            types = " ".join(sorted(self.missing)[:50])  # the next error names the others
            port = command("make", "port", "CAFFE=/path/to/the/fork", f"TYPE={types}")
            text += f"\nTo port what is missing: {port}"
            text += (
                f"\nTo write it with torch: caffe_net(..., types={{{min(self.missing)!r}: your function}})"
            )
        return CaffeValueError(text)


class Builder:
    """Builds one net."""

    def __init__(self, text: str, path, options: Options):
        self.path, self.options = path, options
        self.root, self.notes = parse(text, path), []
        self.specs = [Spec.of(node) for node in upgraded(self.root, path, self.notes)]
        if not self.specs and not self.root.has("input"):
            solves = self.root.value("net") or self.root.value("train_net")
            hint = f". It is a solver file, whose net is {solves!r}" if solves else ""
            raise CaffeValueError(f"{path}: not a net: no `layer` and no `layers`{hint}")
        message_of(self.root.without("layer", "layers"), "NetParameter", options.ignore)
        check_names(options.shapes, self.root, self.specs, self._is_input, path)
        if self.root.value("debug_info") == "true":
            line = next(f.line for f in self.root.fields if f.name == "debug_info")
            self._warn(line, "debug_info: the sizes of blobs and diffs are not logged")
        self.problems = Problems(path)
        self.modules: dict[Spec, nn.Module | None] = {}
        self.keys: dict[Spec, str] = {}
        # The tops' shapes, by a module and its bottoms' shapes.
        self.shapes: dict[tuple, list[tuple[int, ...]]] = {}
        self.reasons: dict[Spec, list[str]] = {}  # problems that a layer has in every phase

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
        if self.problems:
            raise self.problems.error(len(states))

    def _over(self, states: list[State]) -> list[State]:
        states = [state.over(self.root.node("state")) for state in states]
        self.states = {state.phase: state for state in states}
        return states

    def build(self, states: list[State]) -> CaffeNet:
        if any(known_classes(spec.type) for spec in self.specs):
            self.options.stored_blobs  # noqa: B018 - a damaged file is one problem, and not one of each known layer
        states = self._over(states)
        phases = {state.phase: Phase(self._graph(state)) for state in states}
        self._leave_out_a_phase(phases)
        net = CaffeNet(self.root.value("name"), str(self.path), phases)
        self.net = net
        for made in phases.values():
            for step in made.graph.steps:
                self._make(net, step)
        for phase, made in phases.items():
            with self._in_phase(net, phase):
                self._infer(net, made, phase)
        for phase, made in phases.items():
            for step in made.graph.steps:
                for reason in self.reasons.get(step.spec, ()):
                    self.problems.add(step.spec, reason, phase)
        if self.problems:
            raise self.problems.error(len(phases))
        self._share(net)
        for made in phases.values():
            for step in made.graph.steps:
                step.key = self.keys.get(step.spec, "")
            self._loss_weights(made)
        net.notes = list(dict.fromkeys(self.notes))
        return net

    def _leave_out_a_phase(self, phases: dict) -> None:
        """If one phase of two has blobs that no layer makes, the file is a net only of the other phase."""
        lacking = {phase: self.problems.of_phase(phase) for phase in phases}
        without = [phase for phase, reasons in lacking.items() if reasons]
        if len(phases) != 2 or len(without) != 1:
            return
        (phase,) = without
        spec, reason = lacking[phase][0]
        self.problems.found.clear()
        del phases[phase]
        self.notes.append(f"no {phase}: line {spec.line}: {spec.name!r} ({spec.type}): {reason}")

    def _graph(self, state: State) -> Graph:
        named = [self._with_automatic_tops(spec) for spec in self._in(state.phase)]
        inputs = [self._input_spec(i, name) for i, name in enumerate(self.root.values("input"))]
        return build(
            inputs + named,
            self._is_input,
            lambda spec, reason: self.problems.add(spec, reason, state.phase),
            {top for spec in self.specs if self._is_input(spec) for top in spec.tops},
        )

    def _is_input(self, spec: Spec) -> bool:
        runs_python = self.options.python is not None
        return is_input(spec, self.options.folders, runs_python, self.options.types)

    def _in(self, phase: str) -> list[Spec]:
        return [spec for spec in self.specs if included(spec.node, self.states[phase])]

    def _input_spec(self, i: int, name: str) -> Spec:
        return Spec(Node(1), name, "Input", (), (name,))

    def _with_automatic_tops(self, spec: Spec) -> Spec:
        """Give a loss without tops its top, as Caffe does."""
        kind = stock_class(spec.type) or next(iter(known_classes(spec.type)), None)
        is_loss = kind.is_loss if kind else spec.type.endswith("Loss")
        if is_loss and spec.bottoms and not spec.tops:
            spec.tops = (spec.name or "(automatic)",)
        return spec

    # --------------------------------------------------------------------------------------- modules

    def _make(self, net: CaffeNet, step: Step) -> None:
        spec = step.spec
        if spec in self.modules:
            return
        self.modules[spec] = None
        if spec.type in NO_COMPUTATION:
            self._warn(
                spec.line, f"{spec.name!r} ({spec.type}) writes no file here. Read {', '.join(spec.bottoms)}"
            )
            return
        for reason in _miscounted(spec):
            self._stop(spec, reason)
        try:
            module = self._module(spec)
        except (CaffeError, ValueError, TypeError) as error:
            self._stop(spec, _reason(error, spec))
            return
        if module is None:
            return
        key = self._key(net, spec)
        self.modules[spec], self.keys[spec] = module, key
        net.add_module(key, module)
        net.specs[key] = spec
        if spec.node.has("phase"):
            net.fixed[key] = spec.node.value("phase") in (TRAIN, "0")
        net.keys.setdefault(spec.name, []).append(key)

    def _stop(self, spec: Spec, reason: str) -> None:
        self.reasons.setdefault(spec, []).append(reason)

    def _module(self, spec: Spec) -> nn.Module | None:
        """The module that computes the layer: the stock type's, or the ported one. None if there is neither."""
        if (own := self.options.types.get(spec.type)) is not None:
            return own(spec)
        kind, find = stock_class(spec.type), self.options.folders.find
        if kind is not None and self.options.is_native(spec.type):
            message, unknown = layer_parameter(_with_files(spec.node, self.path))
            strange, ignored = of_forks(kind, unknown, self.options.ignore)
            self._note(spec, ignored, "is ignored, as told")
            misfit = why_misfit(kind, spec)
            if strange and self.options.takes_known(spec.type):
                return self._known(spec)
            if not (strange or misfit) or find(spec.type) is None:
                for one in strange:
                    self._stop(spec, _why_strange(one, spec.type))
                if misfit:
                    raise CaffeValueError(f"{misfit}. If a fork's {spec.type} does, port it")
                extra = _extra(kind, unknown)
                return kind(StockDefinition(spec.name, message, len(spec.bottoms), len(spec.tops), extra))
            self._note(spec, strange[:1], f"is not stock Caffe's: {spec.type} runs as ported")
            if misfit:
                self.notes.append(
                    f"line {spec.line}: {spec.name!r}: stock {spec.type} {misfit}: it runs as ported"
                )
        if self.options.takes_known(spec.type):
            return self._known(spec)
        if (ported := find(spec.type)) is not None:
            return self._ported(spec, ported)
        if spec.type == "Python" and self.options.python is not None:
            return python_layer(spec, self.options.python)
        # A loss may leave out its top. To leave out the loss would change what is trained.
        if spec.type and spec.type != "Python" and not spec.tops and "loss" not in spec.type.lower():
            self.notes.append(f"line {spec.line}: {spec.name!r} ({spec.type}) is left out: it has no top")
            return None
        if spec.type and spec.type != "Python":
            self.problems.missing.add(spec.type)
        self._stop(spec, _why_none(spec))
        return None

    def _known(self, spec: Spec) -> nn.Module:
        """The module of a known type."""
        words = {word for kind in known_classes(spec.type) for word in kind.words}
        message, unknown = layer_parameter(spec.node, words)
        stored = self.options.stored_blobs.get(spec.name)
        counts = len(spec.bottoms), len(spec.tops)
        definition = StockDefinition(spec.name, message, *counts, {}, stored)
        kind = variant_of(spec.type, definition, self.options.folders.chosen.get(spec.type))
        strange, ignored = of_forks(kind, unknown, self.options.ignore)
        self._note(spec, ignored, "is ignored, as told")
        for one in strange:
            self._stop(spec, _why_strange(one, spec.type))
        extra = _extra(kind, unknown)
        self.notes.append(f"{spec.type}: torch computes it, as {kind.source} does")
        return kind(definition._replace(extra=extra))

    def _note(self, spec: Spec, fields: list[Unknown], what: str) -> None:
        self.notes += [f"line {one.line}: {spec.name!r}: {one.path} {what}" for one in fields]

    def _ported(self, spec: Spec, ported: Ported, in_place: bool = False) -> nn.Module:
        """The module of a ported layer. A top in place gets memory of its own, or the layer a copy to compute in."""
        node = spec.node.without("include", "exclude", "type", "bottom", "top", "loss_weight", "phase")
        # The net handles sharing, learning rates and loss weights.
        for weight in spec.node.values("loss_weight"):
            node.add("loss_weight", "1" if number(weight) else "0")
        node = _with_files(node, self.path)
        tops = tuple(f"{top}'" if top in spec.bottoms and not in_place else top for top in spec.tops)
        try:
            module = ported.module_class()(render(node), bottom=spec.bottoms, top=tops)
            if in_place:
                module.definition.keeps_bottoms = True
            return module
        except UnknownFieldError as error:
            raise CaffeValueError(f"{error}. {_why_another(ported)}") from None

    def _key(self, net: CaffeNet, spec: Spec) -> str:
        base = spec.name.replace(".", "_") or f"layer_{spec.line}"
        if hasattr(type(net), base) or base in net.__dict__:
            base += "_"
        key, number = base, 2
        while hasattr(net, key):
            key, number = f"{base}_{number}", number + 1
        return key

    # ---------------------------------------------------------------------------------------- shapes

    @contextlib.contextmanager
    def _in_phase(self, net: CaffeNet, phase: str):
        for key, module in net.named_children():
            module.train(net.fixed.get(key, phase == TRAIN))
        yield
        for module in net.children():
            module.train(True)

    def _infer(self, net: CaffeNet, phase: Phase, name: str) -> None:
        """Infer the shapes of all blobs. This also creates the parameters."""
        shapes = self._input_shapes(phase.graph, name)
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        known: dict[int, tuple[int, ...]] = {}
        for blob, value in phase.graph.inputs.items():
            if blob in shapes:
                known[value] = phase.shapes[blob] = shapes[blob]
        for step in phase.graph.steps:
            module = self.modules.get(step.spec)
            if (
                step.spec in self.reasons
                or module is None
                or not step.known
                or any(v not in known for v in step.bottoms)
            ):
                continue
            bottoms = [known[v] for v in step.bottoms]
            try:
                tops = self._top_shapes(step, module, bottoms, phase.graph, fake)
            except Exception as error:  # a layer may raise any error about its shapes
                reason = _reason(error, step.spec) + self._guess(step, phase.graph)
                if getattr(module, "is_set_up", True):  # the shapes are wrong only in this phase
                    self.problems.add(step.spec, reason, name)
                else:
                    self._stop(step.spec, reason)
                continue
            if len(tops) != len(step.tops):
                self.problems.add(step.spec, f"makes {len(tops)} tops, the file names {len(step.tops)}", name)
            for value, blob, shape in zip(step.tops, step.spec.tops, tops, strict=False):
                known[value] = phase.shapes[blob] = shape

    def _guess(self, step: Step, graph: Graph) -> str:
        """A hint for an error of a layer that reads a data layer's top, whose shape is a guess."""
        said = {*self.options.shapes, *self.root.values("input")}
        said |= {top for spec in self.specs if spec.type in ("Input", "DummyData") for top in spec.tops}
        for blob in step.spec.bottoms:
            if graph.inputs.get(blob) in step.bottoms and blob not in said:
                return f". The shape of input {blob!r} was guessed from its data layer: shapes={{{blob!r}: (...)}}"
        return ""

    def _input_shapes(self, graph: Graph, phase: str) -> dict[str, tuple[int, ...]]:
        shapes = input_shapes(self.root, self._in(phase), self.path, self.options.shapes, self.specs)
        read = {value for step in graph.steps for value in step.bottoms}
        for blob, value in graph.inputs.items():
            if blob not in shapes and value in read:
                makers = [spec for spec in (*self._in(phase), *self.specs) if blob in spec.tops]
                spec = makers[0] if makers else self._input_spec(0, blob)
                self.problems.add(spec, self._why_unknown(spec, blob), phase)
        return shapes

    def _why_unknown(self, spec: Spec, blob: str) -> str:
        from ..data.loader import why_unread  # imported here, because it imports numpy

        if spec.type == "Python":
            return f"{why_refused(spec)}. To give its blobs yourself: shapes={{{blob!r}: (...)}}"
        why = why_unread(spec, self.path)
        said = f", and its source cannot be read: {why}. Without it" if why else ""
        return f"the shape of input {blob!r} is not in the file{said}: shapes={{{blob!r}: (...)}}"

    def _top_shapes(
        self, step: Step, module: nn.Module, bottoms, graph: Graph, fake
    ) -> list[tuple[int, ...]]:
        if not isinstance(module, StockLayer):
            return self._ported_top_shapes(step.spec, module, bottoms)
        if not module.is_set_up:
            if isinstance(module, Crop):
                self._crop(step, module, graph)
            module.agree(*bottoms)
            module.setup(*bottoms)
            module.is_set_up = True
        if (known := module.top_shapes(*bottoms)) is not None:
            return known
        # A stock layer's shapes are the same in both phases.
        key = (module, *bottoms)
        if key not in self.shapes:
            # Autocast would keep the fake casts of the parameters, and use them in real calls.
            plain = torch.autocast(torch.get_default_device().type, enabled=False)
            with fake, torch.no_grad(), plain, _quiet():
                tops = module(*(torch.empty(shape) for shape in bottoms))
                module.reset()
            tops = (tops,) if isinstance(tops, torch.Tensor) else tops
            self.shapes[key] = [tuple(top.shape) for top in tops]
        return self.shapes[key]

    def _ported_top_shapes(self, spec: Spec, module: nn.Module, bottoms) -> list[tuple[int, ...]]:
        """By the layer's own SetUp and Reshape. If it fails though the file computes it in place, it is tried so."""
        try:
            return module.top_shapes(*bottoms)
        except CaffeError:
            ported = self.options.folders.find(spec.type)
            if ported is None or not (is_ported(module) and module.definition.apart):
                raise
            other = self._ported(spec, ported, in_place=True).train(module.training)
            with contextlib.suppress(CaffeError):
                shapes = other.top_shapes(*bottoms)
                self.modules[spec] = other
                self.net.add_module(self.keys[spec], other)
                return shapes
            raise

    def _crop(self, step: Step, module, graph: Graph) -> None:
        is_stock = type(module) is Crop
        if module.says_offsets or (self.options.crop == "stock" and is_stock):
            return
        offsets = crop_offsets(graph, step, self.modules)
        if offsets is not None:
            module.offsets = offsets
            if any(offsets) and is_stock:
                self.notes.append(
                    f"line {step.spec.line}: {step.spec.name!r} has no offset: {offsets} by the geometry of the "
                    f"net, as in Caffe before 2016. Today's Caffe cuts at 0: crop='stock'"
                )

    # ------------------------------------------------------------------------------------- parameters

    def _share(self, net: CaffeNet) -> None:
        """Share parameters: blobs with the same `param { name }`, and a layer's submodules for training and testing."""
        owners: dict[str, tuple[Spec, torch.Tensor]] = {}
        for key, module in net.named_children():
            spec = net.specs[key]
            blobs, params = blobs_of(module), spec.node.nodes("param")
            if len(params) > len(blobs):
                self.problems.add(spec, f"{len(params)} `param` for {len(blobs)} blobs")
            for param, (attribute, blob) in zip(params, blobs, strict=False):
                if not param.value("name"):
                    continue
                owner, own = owners.setdefault(param.value("name"), (spec, blob))
                if own.shape == blob.shape:
                    setattr(module, attribute, own)
                elif _is_permissive(param, blob, own) and isinstance(module, StockLayer):
                    view(module, attribute, own)
                else:
                    self.problems.add(spec, _why_unshared(param, blob, owner, own))
        for keys in net.keys.values():
            first = net.get_layer(keys[0])
            for key in keys[1:]:
                module = net.get_layer(key)
                for attribute, blob in blobs_of(module):
                    own = getattr(first, attribute, None)
                    if isinstance(own, torch.Tensor) and own.shape == blob.shape:
                        setattr(module, attribute, own)
        self._learning(net)
        if self.problems:
            raise self.problems.error(len(net.phases))

    def _learning(self, net: CaffeNet) -> None:
        """Each blob's multipliers. Layers of a phase that share a blob must give the same multipliers, or none."""
        known: dict[int, list[float | None]] = {}
        for phase in net.phases.values():
            of_phase: dict[int, list[float | None]] = {}
            for spec in (step.spec for step in phase.graph.steps if step.spec in self.keys):
                module = self.modules[spec]
                blobs = [blob for _, blob in blobs_of(module)]
                for said, blob in zip(_multipliers(spec, module), blobs, strict=False):
                    if id(blob) not in known:
                        both = of_phase.setdefault(id(blob), [None, None])
                        for i, what in enumerate(("lr_mult", "decay_mult")):
                            if both[i] is not None and said[i] not in (None, both[i]):
                                reason = (
                                    f"{what} {said[i]:g} of a shared parameter for which another layer says"
                                )
                                self.problems.add(spec, f"{reason} {both[i]:g}")
                            both[i] = said[i] if both[i] is None else both[i]
            known.update(of_phase)
        for key, module in net.named_children():
            both = [known.get(id(blob), (None, None)) for _, blob in blobs_of(module)]
            net.multipliers[key] = [tuple(1.0 if m is None else m for m in mults) for mults in both]
            for (mult, _), (_, blob) in zip(net.multipliers[key], blobs_of(module), strict=True):
                if isinstance(blob, nn.Parameter) and mult == 0:
                    blob.requires_grad_(False)

    def _loss_weights(self, phase: Phase) -> None:
        for step in phase.graph.steps:
            weights = [number(w) for w in step.spec.node.values("loss_weight")]
            module = self.modules.get(step.spec)
            is_loss = module.is_loss if isinstance(module, StockLayer) else step.spec.type.endswith("Loss")
            if not weights and is_loss and step.spec.tops:
                weights = [1.0]
            for blob, weight in zip(step.spec.tops, weights, strict=False):
                if weight:
                    phase.loss_weights[blob] = weight


def _with_files(layer: Node, path) -> Node:
    """The layer, with the paths of the files that its messages name replaced by those that exist (`named_by`)."""

    def field(entry: Field) -> Field:
        if isinstance(entry.value, Node):
            fields = [field(inner) for inner in entry.value.fields]
            return Field(entry.name, Node(entry.value.line, fields, entry.value.path), entry.line)
        if entry.value[:1] in ("'", '"') and re.search(r"[./]", entry.value):
            name = unquoted(entry.value)
            if (found := named_by(path, name)) not in (None, name):
                return Field(entry.name, quoted(found), entry.line)
        return entry

    fields = [field(entry) if isinstance(entry.value, Node) else entry for entry in layer.fields]
    return Node(layer.line, fields, layer.path)


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


def _multipliers(spec: Spec, module: nn.Module) -> list[tuple[float | None, float | None]]:
    """lr_mult and decay_mult of each blob; None: not given. A ported layer's SetUp may have changed them."""
    names = ("lr_mult", "decay_mult")
    found = []
    for node in spec.node.nodes("param"):
        param = STOCK.message("ParamSpec")
        read_fields(node, param)
        found.append([getattr(param, name) if param.HasField(name) else None for name in names])
    for i in range(len(blobs_of(module))) if not isinstance(module, StockLayer) else ():
        found += [[None, None]] * (i >= len(found))
        for j, name in enumerate(names):
            values = getattr(module, name, ())
            if i < len(values) and values[i] != (1 if found[i][j] is None else found[i][j]):
                found[i] = [values[i] if j == k else found[i][k] for k in range(2)]
    return found


def _is_permissive(param: Node, blob: torch.Tensor, own: torch.Tensor) -> bool:
    """May blobs of two shapes be shared? Caffe then compares their counts."""
    said = param.value("share_mode") in ("PERMISSIVE", "1")
    return (
        said
        and own.numel() == blob.numel()
        and isinstance(blob, nn.Parameter)
        and isinstance(own, nn.Parameter)
    )


def _why_unshared(param: Node, blob: torch.Tensor, owner: Spec, own: torch.Tensor) -> str:
    what = "with share_mode PERMISSIVE, which a ported layer and a buffer do not support"
    what = what if _is_permissive(param, blob, own) else "with another shape"
    return f"shares {param.value('name')!r} with {owner.name!r} {what}: {list(blob.shape)}, {list(own.shape)}"


@contextlib.contextmanager
def _quiet():
    """Turn off torch's log of wrong shapes, which become an error that names the layer."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


def read_net(prototxt, replace: dict | None) -> tuple[str, str]:
    """(text, name) of a prototxt, given by its path or as text that contains `{`."""
    if isinstance(prototxt, str) and ("{" in prototxt or "\n" in prototxt):
        return filled_in(prototxt, replace or {}, "prototxt"), "prototxt"
    return read_text(prototxt, replace), str(prototxt)


def check_inputs(prototxt, replace: dict | None, states: list[State], options: Options) -> None:
    """Check a net's graph and its inputs, which needs no layer: CaffeValueError, as building it would raise."""
    builder = Builder(*read_net(prototxt, replace), options)
    builder.check_inputs(states)


def _extra(kind, unknown: list[Unknown]) -> dict[str, str]:
    """The values of forks' fields that a type understands, by path; several values are joined by spaces."""
    found: dict[str, str] = {}
    for one in unknown:
        if one.path in kind.understands:
            found[one.path] = (
                f"{found[one.path]} {unquoted(one.value)}" if one.path in found else unquoted(one.value)
            )
    return found


def of_forks(kind: type[StockLayer], unknown: list[Unknown], ignore) -> tuple[list[Unknown], list[Unknown]]:
    """The fields that the stock type does not understand: those that matter, and those to be ignored."""
    strange: list[Unknown] = []
    ignored: list[Unknown] = []
    for one in unknown:
        if one.path not in kind.understands:
            is_ignored = any(one.path == name or one.path.startswith(name + ".") for name in ignore)
            (ignored if is_ignored else strange).append(one)
    return strange, ignored


def why_misfit(kind: type[StockLayer], spec: Spec) -> str:
    tops = len(spec.tops) or int(kind.is_loss)  # a loss's top may be left out
    return kind.misfit(len(spec.bottoms), tops)


def _why_strange(field: Unknown, type_name: str) -> str:
    return (
        f"line {field.line}: {field.path} is a field that stock Caffe does not have{field.near or '.'} If it does not "
        f"matter: ignore=({field.path!r},). If it does, port the fork's {type_name}"
    )


def _why_another(ported: Ported) -> str:
    port = command("make", "port", "CAFFE=/path/to/the/fork", f"TYPE={ported.type}", "LAYERS_DIR=/new/folder")
    return (
        f"It ran {ported.folder}, which may be of another fork than the net's. To run the fork's own: "
        f"{port}, build it, and give "
        "layers=['/new/folder']"
    )


def _why_none(spec: Spec) -> str:
    """The reason why no module computes a layer."""
    if not spec.type:
        return "has no type"
    if spec.type == "Python":
        return why_refused(spec)
    if stock_class(spec.type) is None and not known_classes(spec.type):
        return f"no such layer here{did_you_mean(spec.type, [*stock_types(), *known_types()], SLIP)}"
    return "native=False, and its type is not ported"


def _reason(error: Exception, spec: Spec) -> str:
    return str(error).removeprefix(f"{spec.name}: ").strip() or type(error).__name__
