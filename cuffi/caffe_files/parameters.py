"""Make a LayerParameter of a layer's own caffe.proto, from keywords, a dict or prototxt text.

The messages are those of the descriptor beside the layer (`_caffe.desc`, written by caffe_layers/make/proto.py). Each
descriptor has its own pool, because two forks may have different messages of one name.
"""

import numbers
import operator
import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ..base import CaffeRuntimeError, CaffeTypeError, CaffeValueError, some
from ..base.once import once
from ..base.shown import command
from ..installed import has_kernels
from .prototxt import Field, Node, integer, parse, render
from .upgrade import upgraded
from .words import check_word, did_you_mean, unknown_field

DESCRIPTOR = "_caffe.desc"


class UnknownFieldError(CaffeValueError):
    """A prototxt has a field that the layer's messages do not have."""


class Parameters:
    """The messages of the layer in `folder`."""

    def __init__(self, folder: Path):
        self.name, self.path = folder.name, folder / DESCRIPTOR

    def describe(self, type_name: str) -> str:
        """The fields of the layer's own message, for its docstring; "" if the layer is not built yet."""
        if not self.path.is_file():
            return ""
        lines = []
        for field in self._class("LayerParameter").DESCRIPTOR.fields:
            if field.message_type and plain(type_name) in (
                plain(field.name.removesuffix("_param")),
                plain(field.message_type.name.removesuffix("Parameter")),
            ):
                lines += [
                    f"{field.name}:",
                    *(f"    {_described(inner)}" for inner in field.message_type.fields),
                ]
        return "".join(f"\n            {line}" for line in lines)

    def layer_parameter(
        self, type_name: str, prototxt: str | Mapping | None = None, *, bottom=(), top=(), **fields
    ):
        """The LayerParameter, of the layer's protobuf class. Keywords win over the prototxt.

        Args:
            type_name: the layer's type.
            prototxt: text or a dict of fields. Text is `layer { ... }`, or only what its braces hold, or a whole net,
                whose layer of this type is taken. If there are several, the keyword `name` decides.
            bottom, top: names of blobs.
            fields: fields of LayerParameter: numbers, strings, enums by name or number, messages as dicts, lists.
        """
        message = self._class("LayerParameter")()
        if isinstance(prototxt, os.PathLike) or (isinstance(prototxt, str) and _is_path(prototxt)):
            raise CaffeValueError(
                f"{self.name}: prototxt: expected text, got the path {os.fspath(prototxt)!r}: read it, "
                "pathlib.Path(path).read_text()"
            )
        if isinstance(prototxt, str):
            message = self._from_text(type_name, prototxt, fields.get("name"))
        elif isinstance(prototxt, Mapping):
            self._fill(message, prototxt, "")
        elif prototxt is not None:
            raise self._wrong("prototxt", "text or a dict", prototxt)
        self._fill(message, fields, "")
        for name, blobs in (("bottom", bottom), ("top", top)):
            if isinstance(blobs, Tensor) or blobs:
                self._fill(message, {name: blobs}, "")
        if message.type and message.type != type_name:
            raise CaffeValueError(
                f"{self.name}: expected parameters of type {type_name!r}, got {message.type!r}"
            )
        message.type = type_name
        message.name = message.name or self.name
        if missing := message.FindInitializationErrors():
            raise CaffeValueError(f"{self.name}: {', '.join(missing)}: required, but not given")
        return message

    def message(self, name: str):
        """An empty message of these protos."""
        return self._class(name)()

    # ---------------------------------------------------------------------------------------- classes

    def _class(self, name: str):
        if not self.path.is_file():
            raise CaffeRuntimeError(
                f"{self.name}: not built: {self.path} is missing. "
                + (
                    f"Type `{command('make', f'LAYERS={self.name}')}` in the toolkit's folder."
                    if has_kernels()
                    else "Install again: pip install --force-reinstall --no-deps cuffi-nets"
                )
            )
        return _message_class(self.path, self.path.stat().st_mtime_ns, f"caffe.{name}")

    # ----------------------------------------------------------------------------------- from values

    def _fill(self, message, values: Mapping, where: str) -> None:
        known = message.DESCRIPTOR.fields_by_name
        for name, value in values.items():
            if name not in known:
                raise CaffeValueError(
                    f"{self.name}: {where and where + ': '}{unknown_field(name, message.DESCRIPTOR)}"
                )
            self._set(message, known[name], value, f"{where}.{name}" if where else name)

    def _set(self, message, field, value, where: str) -> None:
        if not field.is_repeated:
            if field.message_type is None:
                self._scalar(lambda v: setattr(message, field.name, v), field, value, where)
            else:
                self._fill(getattr(message, field.name), self._mapping(value, where), where)
                getattr(message, field.name).SetInParent()  # so that {} sets the field, too
            return
        message.ClearField(field.name)
        items = getattr(message, field.name)
        single = isinstance(value, str | bytes | Mapping | numbers.Number)
        try:
            values = [value] if single else list(value)
        except TypeError:
            raise self._wrong(where, "a list", value) from None
        for i, item in enumerate(values):
            at = where if single else f"{where}[{i}]"
            if field.message_type is None:
                self._scalar(items.append, field, item, at)
            else:
                self._fill(items.add(), self._mapping(item, at), at)

    def _mapping(self, value, where: str) -> Mapping:
        if not isinstance(value, Mapping):
            raise self._wrong(where, "a dict of fields", value)
        return value

    def _scalar(self, store, field, value, where: str) -> None:
        value = self._converted(field, value, where)
        try:
            store(value)
        except (ValueError, OverflowError):  # protobuf's own: out of the type's range
            raise CaffeValueError(f"{self.name}: {where}: {value!r} is out of range") from None

    def _converted(self, field, value, where: str):
        if field.enum_type is not None:
            return self._enum(field, value, where)
        wanted = _KINDS[field.cpp_type]
        if wanted == "a string" and isinstance(value, str | bytes):
            return value.encode() if field.type == field.TYPE_BYTES and isinstance(value, str) else value
        if wanted == "True or False" and isinstance(value, bool | int) and value in (0, 1):
            return bool(value)
        if wanted == "a number" and isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
        if wanted == "an integer" and not isinstance(value, bool):
            try:
                return operator.index(value)
            except TypeError:
                pass
        raise self._wrong(where, wanted, value)

    def _enum(self, field, value, where: str) -> int:
        by_name = field.enum_type.values_by_name
        if isinstance(value, str) and value in by_name:
            return by_name[value].number
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and value in field.enum_type.values_by_number
        ):
            return value
        if isinstance(value, str | int):
            raise CaffeValueError(
                f"{self.name}: {where}: expected one of {', '.join(by_name)}, got {value!r}"
            )
        raise self._wrong(where, f"one of {', '.join(by_name)}", value)

    def _wrong(self, where: str, wanted: str, value) -> CaffeTypeError:
        got = f"{type(value).__name__} {value!r}"[:80]
        return CaffeTypeError(f"{self.name}: {where}: expected {wanted}, got {got}")

    # ------------------------------------------------------------------------------------- from text

    def _from_text(self, type_name: str, text: str, name: str | None):
        path = f"{self.name}: prototxt"
        root = parse(text, path)
        layers = upgraded(root, path)
        if not layers:
            return self._parsed(root)
        layer = self._chosen(layers, type_name, name)
        if root.nodes("layers"):  # an enumerator, which forks spell differently
            layer = layer.without("type")
        return self._parsed(layer)

    def _chosen(self, layers: list[Node], type_name: str, name: str | None) -> Node:
        if len(layers) == 1:
            return layers[0]
        if name is not None:
            chosen = [layer for layer in layers if layer.value("name") == name]
            what = f"layer named {name!r}"
        else:
            chosen = [layer for layer in layers if plain(layer.value("type")) == plain(type_name)]
            what = f"layer of type {type_name!r}"
        if len(chosen) == 1:
            return chosen[0]
        if chosen and name is None:
            names = ", ".join(some(repr(layer.value("name")) for layer in chosen))
            raise CaffeValueError(
                f"{self.name}: prototxt: more than one {what}: choose by name=..., one of {names}"
            )
        listed = ", ".join(some(f"{layer.value('name')!r} ({layer.value('type')})" for layer in layers))
        raise CaffeValueError(f"{self.name}: prototxt: {len(chosen) or 'no'} {what}. There are: {listed}")

    def _parsed(self, node: Node):
        message = self._class("LayerParameter")()
        try:
            unknown = read_fields(node, message)
        except CaffeValueError as error:
            raise CaffeValueError(f"{self.name}: prototxt, {error}") from None
        for one in unknown:
            where = one.path.rpartition(".")[0]
            raise UnknownFieldError(
                f"{self.name}: prototxt, line {one.line}: {where and where + ': '}{one.hint}"
            )
        return message


# Names at least this similar count as misspellings: num_outputs, Poling; but not ROIPooling or pad_l.
SLIP = 0.9


@dataclass
class Unknown:
    """A field of the text that the message does not have."""

    path: str  # pooling_param.ceil_mode
    message: str  # PoolingParameter
    line: int
    value: str | Node
    hint: str
    near: str  # did_you_mean for misspellings only, because forks have fields with names similar to stock Caffe's


def read_fields(
    node: Node, message, without: tuple[str, ...] = (), words: Container[str] = ()
) -> list[Unknown]:
    """Fill a message from a tree. Returns the fields that the message does not have.

    Args:
        without: names of scalar fields to skip, in all messages.
        words: paths of fields to return instead, whatever their values are.

    Raises:
        CaffeValueError: 'line 3: ...': a value that does not fit its field.
    """
    from google.protobuf import text_format

    unknown: list[Unknown] = []
    known = _with_known_fields(node, message.DESCRIPTOR, "", without, unknown, words)
    placed = render(known)  # with the file's own lines
    text = placed.lstrip("\n")
    try:
        text_format.Parse(text, message)
    except text_format.ParseError as error:
        raise CaffeValueError(_naming_the_field(error, text, node.line, len(placed) - len(text))) from None
    return unknown


def _naming_the_field(error, text: str, line: int, above: int) -> str:
    """protobuf's error with the field's name in place of the text of its line. `above`: lines above the text."""
    said = re.sub(r"^\d+:\d+ : ", "", str(error))
    if not error.GetLine():
        return f"line {line}: {said}"
    of_line = text.split("\n")[error.GetLine() - 1]
    names = re.findall(r"(\w+) ?[:{<]", of_line[: (error.GetColumn() or 0) - 1])
    said = said.removeprefix(f"'{of_line}': ")
    return f"line {error.GetLine() + above}: {names[-1] + ': ' if names else ''}{said}"


def _with_known_fields(
    node: Node, descriptor, path: str, without: tuple[str, ...], unknown: list[Unknown], words: Container[str]
) -> Node:
    kept = Node(node.line)
    for entry in node.fields:
        field = descriptor.fields_by_name.get(entry.name)
        where = f"{path}{entry.name}"
        if entry.name in without and not isinstance(entry.value, Node):
            continue
        if field is None or where in words:
            near = did_you_mean(entry.name, descriptor.fields_by_name, SLIP)
            hint = unknown_field(entry.name, descriptor)
            unknown.append(Unknown(where, descriptor.name, entry.line, entry.value, hint, near))
        elif isinstance(entry.value, Node) and field.message_type is not None:
            inside = _with_known_fields(entry.value, field.message_type, where + ".", without, unknown, words)
            kept.fields.append(Field(entry.name, inside, entry.line))
        elif isinstance(entry.value, Node) or field.message_type is not None:
            wanted = "a message in braces" if field.message_type else _KINDS.get(field.cpp_type, "a name")
            got = "a message in braces" if isinstance(entry.value, Node) else entry.value[:40]
            raise CaffeValueError(f"line {entry.line}: {where}: expected {wanted}, got {got}")
        elif field.cpp_type in _FLOATS and entry.value.lstrip("-").isdecimal():
            kept.fields.append(Field(entry.name, _decimal(entry.name, entry.value, entry.line), entry.line))
        else:
            check_word(entry, field, where)
            kept.fields.append(entry)
    return kept


_FLOATS = (5, 6)  # FieldDescriptor's CPPTYPE_DOUBLE and CPPTYPE_FLOAT


def _decimal(name: str, text: str, line: int) -> str:
    """An integer for a float field. Caffe's protobuf reads 017 as octal here; Python's refuses it."""
    try:
        return str(integer(text))
    except ValueError:
        raise CaffeValueError(f"line {line}: {name}: expected a number, got {text}") from None


# Descriptions by FieldDescriptor.cpp_type.
_KINDS = dict.fromkeys((1, 2, 3, 4), "an integer") | {
    5: "a number",
    6: "a number",
    7: "True or False",
    9: "a string",
}


@once
def _message_class(path: Path, changed: int, full_name: str):
    """The class of a message. `changed` is the file's time, so that a rebuilt layer is read again."""
    from google.protobuf import descriptor_pb2

    messages: Any = descriptor_pb2  # protobuf makes its classes at run time
    (file,) = messages.FileDescriptorSet.FromString(path.read_bytes()).file
    return message_class(file.SerializeToString(), full_name)


def message_class(file: bytes, full_name: str):
    """The class of a message. `file` is the serialized FileDescriptorProto with its description."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool(file).FindMessageTypeByName(full_name))


@once
def _pool(file: bytes):
    # Imported here, because native layers run without protobuf.
    from google.protobuf import descriptor_pool

    pools: Any = descriptor_pool  # which DescriptorPool it has is decided at run time
    pool = pools.DescriptorPool()
    pool.AddSerializedFile(file)
    return pool


def _is_path(text: str) -> bool:
    """Is this the path of a file, and not its text?"""
    endings = (".prototxt", ".pbtxt", ".pt", ".txt")
    return not re.search(r"""[{}<>"'\n#]""", text) and ("/" in text or text.rstrip().endswith(endings))


def plain(name: str) -> str:
    """The same text for SmoothL1Loss, smooth_l1_loss and SMOOTH_L1_LOSS."""
    return name.replace("_", "").lower()


def _described(field) -> str:
    if field.enum_type is not None:
        kind, default = " | ".join(field.enum_type.values_by_name), None
        if field.has_default_value:
            default = field.enum_type.values_by_number[field.default_value].name
    elif field.message_type is not None:
        kind, default = field.message_type.name, None
    else:
        kind = _KINDS[field.cpp_type].split()[-1].replace("False", "bool")
        default = field.default_value if field.has_default_value else None
        default = f"{default:.6g}" if isinstance(default, float) else default
    kind = f"list of {kind}" if field.is_repeated else kind
    required = ", required" if field.is_required else ""
    return f"{field.name}: {kind}{required}" + (f" = {default}" if default is not None else "")
