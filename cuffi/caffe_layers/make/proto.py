"""The messages of one Caffe layer: caffe/proto/caffe.pb.h for C++, and a descriptor for Python.

    python -m cuffi.caffe_layers.make.proto --layer-dir layers/foo --include-dir build/foo/include
                                --descriptor layers/foo/_caffe.desc

protoc parses the messages. Their source depends on the .proto files in the layer's folder:

    a .proto with `message LayerParameter {`   a fork's whole caffe.proto, taken as it is
    one whose LayerParameter has no `type`     an excerpt of such a file, which forks publish with a few layers. Fields
                                               that stock Caffe's messages lack are additions
    other .proto files                         additions to stock Caffe's messages:
                                                 message NormalizeParameter { optional bool across = 1; }
                                                 extend LayerParameter { optional NormalizeParameter n_param = 206; }
                                               without the `extend`, the field would be called normalize_param
    none                                       stock Caffe's messages, cuffi/caffe_layers/core/proto/caffe.proto

In additions, `syntax`, `import "caffe.proto"` and `package caffe` may be left out. Extensions become plain fields. The
result is one file of messages in package and namespace caffe, as if caffe.proto had been edited.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)

from tools import files

from .proto_cpp import UNUSED, header

STOCK = Path(__file__).resolve().parents[1] / "core" / "proto" / "caffe.proto"
PACKAGE = re.compile(r"\bpackage\s+([\w.]+)\s*;")
# The fields of any tree's messages that the toolkit's headers (filler.hpp) read, by message.
HEADERS_READ = {"FillerParameter": {"type", "value", "min", "max", "mean", "std", "sparse", "variance_norm"}}
# Messages and enums that the toolkit's headers name.
HEADERS_NAME = frozenset(
    (
        "BlobProto",
        "BlobShape",
        "Datum",
        "FillerParameter",
        "NetParameter",
        "ParamSpec",
        "Phase",
        "TransformationParameter",
    )
)
# The fields of any layer's LayerParameter that the core reads, with the numbers that it uses (core/layer.cpp).
CORE_READS = {
    "name": 1, "type": 2, "bottom": 3, "top": 4, "loss_weight": 5, "param": 6, "blobs": 7, "phase": 10,
}  # fmt: skip
# A field of a message in an excerpt. Groups: the text before the number, the name in it, the number, the rest.
FIELD = re.compile(r"(\s*\b(?:optional|repeated|required)\s+[\w.]+\s+(\w+)\s*=\s*)(\d+)([^;]*;)")
# Added to a field's number if another field of stock Caffe has the same number.
FREE = 100_000
FORWARD = '#include "caffe/proto/caffe.pb.h"\n'


class ProtoError(Exception):
    """An error in a .proto. The text has the line, and what to do."""


def without_comments(text: str) -> str:
    """The text with blanks for comments, so that everything keeps its place."""
    return re.sub(
        r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or blank(m[0]), text, flags=re.S
    )


def blank(text: str) -> str:
    """A text of blanks with the same lines."""
    return re.sub(r"[^\n]", " ", text)


def read(path: Path) -> str:
    return files.read(path, "utf-8").replace("\r\n", "\n")


def declarations(bare: str) -> Iterator[re.Match]:
    """The messages and enums that are not inside others. Groups: "message" or "enum", the name, the body."""
    body = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
    return re.finditer(rf"\b(message|enum)\s+(\w+)\s*\{{({body})\}}", bare)


def names_in(body: str) -> set[str]:
    return set(re.findall(r"(\w+)\s*=\s*\d", body))


def with_aliases(text: str) -> str:
    """The text with allow_alias in enums that have two names for one number. No line moves.

    protoc requires this option; its older versions do not.
    """
    bare = without_comments(text)
    at, parts = 0, []
    for enum in re.finditer(r"\benum\s+\w+\s*\{([^{}]*)\}", bare):
        numbers = [int(n, 0) for n in re.findall(r"\w\s*=\s*(-?(?:0[xX][0-9a-fA-F]+|\d+))\s*[;\[]", enum[1])]
        if len(set(numbers)) < len(numbers) and "allow_alias" not in enum[1]:
            parts += [text[at : enum.start(1)], " option allow_alias = true;"]
            at = enum.start(1)
    return "".join([*parts, text[at:]])


def without_fields_of(types: set[str], text: str) -> str:
    """The text without the fields of these types. No line moves."""
    if not types:
        return text
    bare, named = without_comments(text), "|".join(map(re.escape, sorted(types)))
    fields = re.finditer(rf"\b(?:optional|repeated|required)\s+(?:{named})\s+\w+\s*=[^;]*;", bare)
    for field in fields:
        text = text[: field.start()] + blank(field[0]) + text[field.end() :]
    return text


def is_whole(text: str) -> bool:
    """Is the text a whole caffe.proto? Its LayerParameter has a field `type` then."""
    bodies = {match[2]: match[3] for match in declarations(without_comments(text))}
    return "type" in names_in(bodies.get("LayerParameter", ""))


def additions_of(text: str) -> str:
    """An excerpt of a fork's caffe.proto, as additions to stock Caffe's messages. No line moves.

    If another field of stock Caffe has a field's number, the field gets a free number.
    """
    bare = without_comments(text)
    if not re.search(r"\bmessage\s+LayerParameter\b", bare):
        return text
    stock = {match[2]: match[3] for match in declarations(without_comments(read(STOCK)))}
    at, parts = 0, []
    for match in declarations(bare):
        name = match[2]
        if name in stock:
            added = blank(match[0]) if name in UNUSED else addition_to(stock[name], match)
            parts += [bare[at : match.start()], added]
            at = match.end()
    return "".join([*parts, bare[at:]])


def addition_to(stock: str, message: re.Match) -> str:
    """An `extend` with the fields of a message that stock Caffe's message with the body `stock` lacks."""
    fields = re.finditer(FIELD, message[3])
    added = [field for field in fields if field[2] not in names_in(stock)]
    at, parts = 0, []
    for field in added:
        is_taken = re.search(rf"=\s*{field[3]}\b", stock)
        number = int(field[3]) + FREE if is_taken else field[3]
        parts += [blank(message[3][at : field.start()]), f"{field[1]}{number}{field[4]}"]
        at = field.end()
    body = "".join([*parts, blank(message[3][at:])])
    return f"extend {message[2]} {{{body}}}" if added else blank(message[0])


class Sources:
    """The .proto files of a layer for protoc. They are in one folder, where the base is caffe.proto."""

    def __init__(self, layer: Path | None):
        files = sorted(layer.glob("*.proto")) if layer else []
        whole = [p for p in files if is_whole(read(p))]
        if len(whole) > 1:
            raise ProtoError(
                f"{whole[1]}: a second file that defines LayerParameter, after {whole[0].name}. Keep one of them."
            )
        self.base = whole[0] if whole else STOCK
        self.snippets = [p for p in files if p not in whole]
        self.paths = {"caffe.proto": self.base}
        for path in self.snippets:
            name = "caffe_additions.proto" if path.name == "caffe.proto" else path.name
            self.paths[name] = path
        base = without_comments(read(self.base))
        package = PACKAGE.search(base)
        self.package = package[1] if package else "caffe"
        self.needed = {Path(name).name for name in re.findall(r'\bimport\b[^;"]*"([^"]+)"', base)}
        self.lost: set[str] = set()  # types of fields that no file defines

    def text(self, name: str) -> str:
        """The text of a file. Missing statements are added to the first line, so that all lines keep their numbers."""
        text = re.sub(
            r'(\bimport\s+(?:public\s+|weak\s+)?)"([^"\n]+)"', self.imported, read(self.paths[name])
        )
        if self.base == STOCK and self.paths[name] != STOCK:
            text = additions_of(text)
        text = without_fields_of(self.lost, with_aliases(text))
        bare = without_comments(text)
        head = ""
        if name != "caffe.proto" and name not in self.needed and '"caffe.proto"' not in bare:
            head += ' import "caffe.proto";'
        if not PACKAGE.search(bare):
            head += f" package {self.package};"
        syntax = re.match(
            r'\s*(?:(?://[^\n]*\n|/\*.*?\*/)\s*)*(?:syntax|edition)\s*=\s*"\w+"\s*;', text, flags=re.S
        )
        if syntax:  # must come first
            return text[: syntax.end()] + head + text[syntax.end() :]
        return 'syntax = "proto2";' + head + " " + text

    def imported(self, statement: re.Match) -> str:
        """An import statement without the fork's path, if a file of this name is here."""
        base = Path(statement[2]).name
        return f'{statement[1]}"{base if base in self.paths else statement[2]}"'

    def parse(self) -> list[FileDescriptorProto]:
        """protoc's descriptors of the files. Raises ProtoError with protoc's messages.

        Some forks' caffe.proto names messages that it lacks. Their fields are left out, so that a file or code that
        uses one has an error there.
        """
        try:
            return self._parse()
        except ProtoError as error:
            lost = set(re.findall(r': "([\w.]+)" is not defined\.', str(error))) - self.lost
            if not lost or self.base == STOCK:
                raise
            self.lost |= lost
            return self.parse()

    def _parse(self) -> list[FileDescriptorProto]:
        with tempfile.TemporaryDirectory() as folder:
            for name in self.paths:
                (Path(folder) / name).write_text(self.text(name), encoding="utf-8", errors="surrogateescape")
            out = Path(folder) / "out.desc"
            command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
            command += ["--include_source_info", f"--descriptor_set_out={out}", *self.paths]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise ProtoError(self.explain((done.stderr or done.stdout).replace(f"{folder}/", "")))
            files = FileDescriptorSet.FromString(out.read_bytes()).file
            return [file for file in files if file.name in self.paths]

    def explain(self, messages: str) -> str:
        """protoc's messages with the user's own file names, and with advice for known errors."""
        lines = []
        for line in messages.splitlines():
            name, colon, rest = line.partition(":")
            if not (colon and name in self.paths):
                lines.append(line)
                continue
            if "warning: " in rest:
                continue
            lines.append(f"{self.paths[name]}:{rest}")
            if clash := re.search(r'"caffe\.(\w+)" does not declare (\d+) as an extension', rest):
                owner = self.owner(clash[1], int(clash[2]))
                lines.append(
                    f"    {clash[1]} has a field of that number{owner} in {self.base.name}: take a free one. "
                    "(Numbers matter only in binary files; prototxt and Python use names.)"
                )
            elif "is already defined in file" in rest and self.base == STOCK:
                lines.append(
                    f"    Stock Caffe has it, in {STOCK}. If yours is the same, delete yours; if it has more fields, "
                    "write `extend` for those; if it is another, put the fork's whole caffe.proto here instead."
                )
        return "\n".join(lines)

    def owner(self, message: str, number: int) -> str:
        """The name of the base's field with this number, in brackets for a message, or ""."""
        block = re.search(rf"\bmessage\s+{message}\s*{{(.*?)^}}", read(self.base), flags=re.S | re.M)
        field = block and re.search(rf"(\w+)\s*=\s*{number}\s*[;\[]", block[1])
        return f" ({field[1]})" if field else ""


class Merge:
    """`result` is one file descriptor, in package caffe, of a base and its additions."""

    def __init__(self, sources: Sources, parsed: list[FileDescriptorProto]):
        self.sources, self.result = sources, FileDescriptorProto(name="caffe.proto", package="caffe")
        self.messages: dict[str, DescriptorProto] = {}
        self.packages = {f.package for f in parsed}
        for file in parsed:
            self.take(file)
        for file in parsed:
            self.extend(file)

    def where(self, file: FileDescriptorProto, path: list[int]) -> str:
        """The file and line of a declaration, for error messages."""
        for location in file.source_code_info.location:
            if list(location.path) == path:
                return f"{self.sources.paths[file.name]}:{location.span[0] + 1}"
        return str(self.sources.paths[file.name])

    def local(self, name: str) -> str:
        """The name of a type in package caffe: '.other.Foo.Bar' becomes '.caffe.Foo.Bar'."""
        packages = (p for p in sorted(self.packages, key=len, reverse=True) if p)
        package = next((p for p in packages if name.startswith(f".{p}.")), "")
        return ".caffe" + name.removeprefix(f".{package}" if package else "")

    def take(self, file: FileDescriptorProto) -> None:
        if file.syntax == "proto3" or file.HasField("edition"):
            raise ProtoError(
                f'{self.sources.paths[file.name]}: Caffe\'s messages are proto2; write `syntax = "proto2";`.'
            )
        for index, message in enumerate(file.message_type):
            if f".caffe.{message.name}" in self.messages:
                raise ProtoError(f"{self.where(file, [4, index])}: message {message.name} is defined twice.")
            copy = self.result.message_type.add()
            copy.CopyFrom(message)
            self.clean(copy, f".caffe.{copy.name}", self.where(file, [4, index]))
        self.result.enum_type.extend(file.enum_type)

    def clean(self, message: DescriptorProto, name: str, where: str) -> None:
        self.messages[name] = message
        del message.extension_range[:]
        if message.options.map_entry or message.oneof_decl:
            raise ProtoError(f"{where}: {message.name}: map and oneof are not supported.")
        for field in message.field:
            self.clean_field(field, where)
        for nested in message.nested_type:
            self.clean(nested, f"{name}.{nested.name}", where)

    def clean_field(self, field: FieldDescriptorProto, where: str) -> None:
        field.ClearField("json_name")
        if field.type == FieldDescriptorProto.TYPE_GROUP:
            raise ProtoError(
                f"{where}: field {field.name}: groups are not supported: write a message and a field of it."
            )
        if field.type_name:
            field.type_name = self.local(field.type_name)

    def extend(self, file: FileDescriptorProto) -> None:
        nested = [
            ([4, i, 6, j], e) for i, m in enumerate(file.message_type) for j, e in enumerate(m.extension)
        ]
        top = [([7, i], e) for i, e in enumerate(file.extension)]
        for path, extension in top + nested:
            where = self.where(file, path)
            message = self.messages[self.local(extension.extendee)]
            for field in message.field:
                if field.name == extension.name:
                    raise ProtoError(
                        f"{where}: {message.name} has a field {field.name} already. If it is the same, delete "
                        "this one; otherwise put the fork's whole caffe.proto here instead."
                    )
                if field.number == extension.number:
                    raise ProtoError(
                        f"{where}: number {field.number} is {field.name}'s in {message.name}: use a free one."
                    )
            copy = message.field.add()
            copy.CopyFrom(extension)
            copy.ClearField("extendee")
            self.clean_field(copy, where)
        for message in self.result.message_type:
            del message.extension[:]

    def give_fields(self, additions: list[FileDescriptorProto]) -> None:
        """Give LayerParameter a field for each added message that no field has as its type.

        Some layers are published with only their message. The field of WingLossParameter is called wing_loss_param.
        """
        used = {field.type_name for message in self.messages.values() for field in message.field}
        layer = self.messages[".caffe.LayerParameter"]
        own = [message.name for file in additions for message in file.message_type]
        for name in own:
            if (
                not name.endswith("Parameter")
                or f".caffe.{name}" in used
                or field_of(name) in names_of(layer)
            ):
                continue
            field = layer.field.add(name=field_of(name), type_name=f".caffe.{name}")
            field.number = FREE + len(layer.field)
            field.label, field.type = field.LABEL_OPTIONAL, field.TYPE_MESSAGE


def field_of(message: str) -> str:
    """The usual name in Caffe of a message's field: wing_loss_param for WingLossParameter."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", message.removesuffix("eter"))
    return words.lower()


def add_needed(result: FileDescriptorProto) -> None:
    """Add stock Caffe's messages that the toolkit's headers name and that a shortened caffe.proto lacks, with all that
    their fields name. Add the fields of LayerParameter that the core reads.
    """
    there = {each.name for each in (*result.message_type, *result.enum_type)}
    layer = next((m for m in result.message_type if m.name == "LayerParameter"), None)
    lacking = set(CORE_READS) - names_of(layer) if layer else set()
    if there >= HEADERS_NAME and not lacking:
        return
    (file,) = Sources(None).parse()
    messages = {each.name: each for each in file.message_type}
    enums = {each.name: each for each in file.enum_type}
    waiting = [name for name in HEADERS_NAME if name not in there]
    if layer and lacking:
        taken = {field.number for field in layer.field}
        added = [f for f in messages["LayerParameter"].field if f.name in lacking and f.number not in taken]
        layer.field.extend(added)
        waiting += [f.type_name.split(".")[2] for f in added if f.type_name]
    while waiting:
        if (name := waiting.pop()) in there:
            continue
        there.add(name)
        if name in enums:
            result.enum_type.add().CopyFrom(enums[name])
            continue
        result.message_type.add().CopyFrom(messages[name])
        waiting += [f.type_name.split(".")[2] for f in messages[name].field if f.type_name]
    for message in result.message_type:
        del message.extension_range[:]
        for field in message.field:
            field.ClearField("json_name")


def complete(result: FileDescriptorProto) -> None:
    """Add the fields that the toolkit's headers read and that an older tree's messages lack."""
    add_needed(result)
    incomplete = [
        message
        for message in result.message_type
        if HEADERS_READ.get(message.name, set()) - names_of(message)
    ]
    if not incomplete:
        return
    stock = {message.name: message for file in Sources(None).parse() for message in file.message_type}
    for message in incomplete:
        enums = {enum.name for enum in message.enum_type}
        message.enum_type.extend(e for e in stock[message.name].enum_type if e.name not in enums)
        for field in [f for f in stock[message.name].field if f.name not in names_of(message)]:
            numbers = {f.number for f in message.field}
            added = message.field.add()
            added.CopyFrom(field)
            added.ClearField("json_name")
            if field.number in numbers:  # the fork's own field has it
                added.number = max(numbers) + 1


def refuse_old_numbers(result: FileDescriptorProto) -> None:
    """Raise ProtoError if LayerParameter has other numbers than the core reads. It would confuse the fields."""
    for message in result.message_type:
        for field in message.field if message.name == "LayerParameter" else ():
            if CORE_READS.get(field.name, field.number) != field.number:
                raise ProtoError(
                    f"caffe.proto: LayerParameter.{field.name} has the number {field.number}, in stock Caffe it is "
                    f"{CORE_READS[field.name]}: a tree of 2014, whose layers the toolkit does not support. Add the "
                    "layer's own messages to stock Caffe's instead (docs/port-a-caffe-layer.md)"
                )


def names_of(message: DescriptorProto) -> set[str]:
    return {field.name for field in message.field}


def merged(layer: Path | None) -> tuple[FileDescriptorProto, set[str]]:
    """The messages of a layer, and the packages of its .proto files other than caffe."""
    sources = Sources(layer)
    parsed = sources.parse()
    merge = Merge(sources, parsed)
    if sources.base == STOCK:
        merge.give_fields([file for file in parsed if file.name != "caffe.proto"])
    complete(merge.result)
    refuse_old_numbers(merge.result)
    return merge.result, merge.packages - {"caffe", ""}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--layer-dir", type=Path, help="the folder with the layer's .proto files; default: stock Caffe"
    )
    parser.add_argument("--include-dir", type=Path, required=True, help="gets caffe/proto/caffe.pb.h")
    parser.add_argument("--descriptor", type=Path, help="gets a FileDescriptorSet")
    options = parser.parse_args()
    try:
        file, packages = merged(options.layer_dir)
    except ProtoError as error:
        print(error, file=sys.stderr)
        return 1
    target = options.include_dir / "caffe" / "proto" / "caffe.pb.h"
    outputs = {target: header(file, packages).encode(), options.include_dir / "caffe.pb.h": FORWARD.encode()}
    if options.descriptor:
        outputs[options.descriptor] = FileDescriptorSet(file=[file]).SerializeToString(deterministic=True)
    for path, data in outputs.items():
        files.write(path, data, if_changed=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
