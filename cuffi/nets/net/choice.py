"""Who computes a layer: the user's function, torch, a ported layer or a Python class. It is decided here."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn

from ...base import CaffeValueError
from ...base.files import named_by
from ...base.shown import command
from ...caffe_files.parameters import SLIP, Unknown, UnknownFieldError, did_you_mean
from ...caffe_files.prototxt import Field, Node, number, quoted, render, unquoted
from ..forks import fork_classes, fork_types, variant_of
from ..stock import StockDefinition, StockLayer, stock_class, stock_types
from .graph import Spec
from .messages import layer_parameter
from .python_layer import python_layer, why_refused
from .registry import Folders, Ported
from .report import Report
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


def by_torch(type_name: str) -> tuple[type[StockLayer], ...]:
    """The classes by which torch computes a type: stock Caffe's, then its variants in forks. Empty if it does not."""
    stock = stock_class(type_name)
    return (*([stock] if stock else []), *fork_classes(type_name))


def torch_types() -> list[str]:
    """The types that torch computes, of stock Caffe and of forks."""
    return [*stock_types(), *fork_types()]


def module_of(spec: Spec, options: Options, report: Report) -> nn.Module | None:
    """The module that computes a layer. None if there is none: then the report says why, or what is left out.

    The first of these that there is, as far as `native` and `choose` allow:

    1. the user's own, of `types`
    2. torch's for the stock type. If the layer has fields, or a number of bottoms or tops, that stock Caffe does not
       take: torch's for a fork that has the fields, or the ported layer
    3. torch's for a fork's type, unless the user has a ported layer of it
    4. a ported layer
    5. a Python layer's class
    """
    if (own := options.types.get(spec.type)) is not None:
        return own(spec)
    kind, find = stock_class(spec.type), options.folders.find
    if kind is not None and options.is_native(spec.type):
        message, unknown = layer_parameter(_with_files(spec.node, report.path))
        strange, ignored = of_forks(kind, unknown, options.ignore)
        report.note_fields(spec, ignored, "is ignored, as told")
        misfit = why_misfit(kind, spec)
        if strange and _takes_fork(spec.type, options):
            return _of_fork(spec, options, report)
        if not (strange or misfit) or find(spec.type) is None:
            for one in strange:
                report.stop(spec, _why_strange(one, spec.type))
            if misfit:
                raise CaffeValueError(f"{misfit}. If a fork's {spec.type} does, port it")
            extra = _extra(kind, unknown)
            return kind(StockDefinition(spec.name, message, len(spec.bottoms), len(spec.tops), extra))
        report.note_fields(spec, strange[:1], f"is not stock Caffe's: {spec.type} runs as ported")
        if misfit:
            report.note(spec, f": stock {spec.type} {misfit}: it runs as ported")
    if _takes_fork(spec.type, options):
        return _of_fork(spec, options, report)
    if (ported := find(spec.type)) is not None:
        return ported_module(spec, ported, report.path)
    if spec.type == "Python" and options.python is not None:
        return python_layer(spec, options.python)
    # A loss may leave out its top. To leave out the loss would change what is trained.
    if spec.type and spec.type != "Python" and not spec.tops and "loss" not in spec.type.lower():
        report.note(spec, f" ({spec.type}) is left out: it has no top")
        return None
    if spec.type and spec.type != "Python":
        report.missing.add(spec.type)
    report.stop(spec, _why_none(spec))
    return None


def _takes_fork(type_name: str, options: Options) -> bool:
    """Does torch compute this fork's type? Not if the user has a ported layer of it, or says no by `native`."""
    kinds = fork_classes(type_name)
    if not kinds or not options.is_native(type_name):
        return False
    is_wanted = not isinstance(options.native, bool) and options.native.get(type_name, False)
    chosen = options.folders.chosen.get(type_name)
    if is_wanted or (chosen is not None and chosen in [kind.variant for kind in kinds]):
        return True
    ported = options.folders.find(type_name)
    on_gpu = {kind.native: kind.native_on_gpu for kind in kinds if kind.native}
    if ported is None or chosen is not None or not ported.is_own or ported.folder.name not in on_gpu:
        return ported is None
    return not (on_gpu[ported.folder.name] and torch.cuda.is_available() and ported.has_gpu_library())


def _of_fork(spec: Spec, options: Options, report: Report) -> nn.Module:
    """The module of a fork's type, by the variant that the layer's fields and blobs fit."""
    words = {word for kind in fork_classes(spec.type) for word in kind.words}
    message, unknown = layer_parameter(spec.node, words)
    stored = options.stored_blobs.get(spec.name)
    counts = len(spec.bottoms), len(spec.tops)
    definition = StockDefinition(spec.name, message, *counts, {}, stored)
    kind = variant_of(spec.type, definition, options.folders.chosen.get(spec.type))
    strange, ignored = of_forks(kind, unknown, options.ignore)
    report.note_fields(spec, ignored, "is ignored, as told")
    for one in strange:
        report.stop(spec, _why_strange(one, spec.type))
    extra = _extra(kind, unknown)
    report.notes.append(f"{spec.type}: torch computes it, as {kind.source} does")
    return kind(definition._replace(extra=extra))


def ported_module(spec: Spec, ported: Ported, path, in_place: bool = False) -> nn.Module:
    """The module of a ported layer. A top in place gets memory of its own, or the layer a copy to compute in."""
    node = spec.node.without("include", "exclude", "type", "bottom", "top", "loss_weight", "phase")
    # The net handles sharing, learning rates and loss weights.
    for weight in spec.node.values("loss_weight"):
        node.add("loss_weight", "1" if number(weight) else "0")
    node = _with_files(node, path)
    tops = tuple(f"{top}'" if top in spec.bottoms and not in_place else top for top in spec.tops)
    try:
        module = ported.module_class()(render(node), bottom=spec.bottoms, top=tops)
        if in_place:
            module.definition.keeps_bottoms = True
        return module
    except UnknownFieldError as error:
        raise CaffeValueError(f"{error}. {_why_another(ported)}") from None


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


def _extra(kind, unknown: list[Unknown]) -> dict[str, str]:
    """The values of forks' fields that a type understands, by path; several values are joined by spaces."""
    found: dict[str, str] = {}
    for one in unknown:
        if one.path in kind.understands:
            if isinstance(one.value, Node):
                raise CaffeValueError(
                    f"line {one.line}: {one.path}: expected a value, got a message in braces"
                )
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
    if not by_torch(spec.type):
        return f"no such layer here{did_you_mean(spec.type, torch_types(), SLIP)}"
    return "native=False, and its type is not ported"
