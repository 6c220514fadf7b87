"""Write the C++ classes of a .proto, with protoc's names. Their base is include/caffe/proto/message.hpp of this wing.

Each accessor is a function that is always inlined and holds no state. message.hpp says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

F = FieldDescriptorProto

# The C++ type and the wire format of each type of number.
NUMBERS = {
    F.TYPE_INT32: ("int32_t", "kVarint"),
    F.TYPE_INT64: ("int64_t", "kVarint"),
    F.TYPE_UINT32: ("uint32_t", "kVarint"),
    F.TYPE_UINT64: ("uint64_t", "kVarint"),
    F.TYPE_SINT32: ("int32_t", "kZigzag"),
    F.TYPE_SINT64: ("int64_t", "kZigzag"),
    F.TYPE_FIXED32: ("uint32_t", "kFixed"),
    F.TYPE_FIXED64: ("uint64_t", "kFixed"),
    F.TYPE_SFIXED32: ("int32_t", "kFixed"),
    F.TYPE_SFIXED64: ("int64_t", "kFixed"),
    F.TYPE_FLOAT: ("float", "kFixed"),
    F.TYPE_DOUBLE: ("double", "kFixed"),
    F.TYPE_BOOL: ("bool", "kVarint"),
    F.TYPE_ENUM: ("int32_t", "kVarint"),
}

# Messages that no layer uses: those of solvers, and of old files that Caffe upgrades. They would be a third
# of the header.
UNUSED = frozenset({"SolverParameter", "SolverState", "V0LayerParameter", "V1LayerParameter"})

_KEYWORDS = """
    NULL alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char class compl const
    constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern
    false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or
    or_eq private protected public register reinterpret_cast return short signed sizeof static static_assert
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned
    using virtual void volatile wchar_t while xor xor_eq char16_t char32_t
"""
KEYWORDS = frozenset(_KEYWORDS.split())

TOP = """\
// Made by cuffi/caffe_layers/make/proto.py; do not edit.
#ifndef CAFFE_PROTO_CAFFE_PB_H_
#define CAFFE_PROTO_CAFFE_PB_H_

#include <stdint.h>

#include <limits>
#include <string>

#include "caffe/proto/descriptor.hpp"
#include "caffe/proto/message.hpp"

namespace caffe {
"""


def safe(name: str) -> str:
    return name + "_" if name in KEYWORDS else name


def class_name(full_name: str) -> str:
    """The name of a message's class in namespace caffe: Foo_Bar for '.caffe.Foo.Bar'."""
    return safe(full_name.removeprefix(".caffe.").replace(".", "_"))


def quoted(data: bytes) -> str:
    """A C++ string literal. A long one has several lines."""
    text = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}" for b in data)
    lines = re.findall(r"(?:\\[0-7]{3}|[^\\]){1,100}", text) or [""]
    return "\n    ".join(f'"{line}"' for line in lines)


def bytes_of(field: FieldDescriptorProto) -> bytes:
    """The default of a string or bytes field. protoc gives that of a bytes field with C escapes."""
    if field.type == F.TYPE_STRING:
        return field.default_value.encode()
    return field.default_value.encode("latin-1").decode("unicode_escape").encode("latin-1")


def number_literal(field: FieldDescriptorProto, cpp: str) -> str:
    """The default of a number as a C++ literal of the type `cpp`."""
    text = field.default_value or "0"
    if cpp == "bool":
        return text if field.default_value else "false"
    if cpp in ("float", "double"):
        value = float(text)
        if math.isnan(value):
            return f"std::numeric_limits<{cpp}>::quiet_NaN()"
        if math.isinf(value):
            return f"{'-' if value < 0 else ''}std::numeric_limits<{cpp}>::infinity()"
        return repr(value) + ("f" if cpp == "float" else "")
    return integer(int(text), cpp)


def integer(value: int, cpp: str) -> str:
    if value in (-(2**63), -(2**31)):  # C++ has no literals for these, because a literal has no minus
        return f"INT{cpp[3:5]}_MIN" if value == -(2 ** (int(cpp[3:5]) - 1)) else f"{value}LL"
    return str(value) + {"int32_t": "", "int64_t": "LL", "uint32_t": "u", "uint64_t": "ULL"}[cpp]


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


class Enum:
    """An enum in namespace caffe. `owner` is the class that has aliases of it, if the .proto nests it in a message."""

    def __init__(self, proto: EnumDescriptorProto, full_name: str, owner: str = ""):
        self.proto, self.full_name = proto, full_name.removeprefix(".")
        self.name, self.prefix = class_name(full_name), f"{class_name(full_name)}_" if owner else ""

    def constant(self, value: str) -> str:
        return self.prefix + value if self.prefix else safe(value)

    def numbers(self) -> dict[str, int]:
        return {value.name: value.number for value in self.proto.value}

    def definition(self) -> str:
        numbers = self.numbers()
        constants = ", ".join(f"{self.constant(v)} = {integer(n, 'int32_t')}" for v, n in numbers.items())
        low, high = min(numbers, key=numbers.__getitem__), max(numbers, key=numbers.__getitem__)
        name, bound = self.name, self.prefix + self.proto.name  # if nested: Foo_Kind_Kind_MAX
        asks = f'&kCaffeProtoFile, "{self.full_name}", '
        return f"""\
enum {name} : int {{ {constants} }};
constexpr {name} {bound}_MIN = {self.constant(low)}, {bound}_MAX = {self.constant(high)};
constexpr int {bound}_ARRAYSIZE = {numbers[high] + 1};
CAFFE_PROTO_INLINE const std::string& {name}_Name(int value) {{ return EnumName({asks}value); }}
CAFFE_PROTO_INLINE bool {name}_IsValid(int value) {{ return !EnumName({asks}value).empty(); }}
CAFFE_PROTO_INLINE bool {name}_Parse(const std::string& name, {name}* value) {{
  int number;
  const bool found = EnumNumber({asks}name, &number);
  if (found) *value = static_cast<{name}>(number);
  return found;
}}
"""

    def aliases(self) -> str:
        """The aliases in the class `owner`."""
        short, name = self.proto.name, self.name
        bounds = [f"{short}_MIN", f"{short}_MAX"]
        lines = [f"  typedef {name} {safe(short)};"]
        lines += [
            f"  static constexpr {name} {safe(v)} = {self.constant(v)};" for v in (*self.numbers(), *bounds)
        ]
        lines.append(f"  static constexpr int {short}_ARRAYSIZE = {self.prefix}{short}_ARRAYSIZE;")
        for result, function, types, call in (
            ("const std::string&", "Name", "int value", "value"),
            ("bool", "IsValid", "int value", "value"),
            ("bool", "Parse", f"const std::string& name, {name}* value", "name, value"),
        ):
            lines.append(
                f"  CAFFE_PROTO_INLINE static {result} {short}_{function}({types})"
                f" {{ return {name}_{function}({call}); }}"
            )
        return "\n".join(lines) + "\n"


class Accessors:
    """The functions of one field. Those in `inside` are defined in the class. Those in `after` are defined after all
    classes, because they need the definition of another class."""

    def __init__(self, owner: str, field: FieldDescriptorProto, enums: dict[str, Enum]):
        self.owner, self.name, self.number = owner, safe(field.name.lower()), field.number
        self.inside: list[str] = []
        self.after: list[str] = []
        repeated = field.label == F.LABEL_REPEATED
        if field.type in NUMBERS:
            (self.numbers if repeated else self.one_number)(field, enums)
        elif field.type in (F.TYPE_STRING, F.TYPE_BYTES):
            (self.texts if repeated else self.one_text)(field)
        else:
            (self.children if repeated else self.one_child)(class_name(field.type_name))
        self.add("void clear_{x}()", "ClearField({n});")
        if not repeated:
            self.add("bool has_{x}() const", "return HasField({n});")

    def add(self, declaration: str, body: str, after: bool = False):
        names = {"x": self.name, "n": self.number}
        declaration, body = declaration.format(**names), body.format(**names)
        if not after:
            self.inside.append(f"  CAFFE_PROTO_INLINE {declaration} {{ {body} }}")
            return
        self.inside.append(f"  {declaration};")
        member = re.sub(r"(\w+\()", rf"{self.owner}::\1", declaration, count=1)
        self.after.append(f"CAFFE_PROTO_INLINE {member} {{ {body} }}")

    def one_number(self, field: FieldDescriptorProto, enums: dict[str, Enum]):
        stored, coding = NUMBERS[field.type]
        at = f"{{n}}, Coding::{coding}"
        if field.type == F.TYPE_ENUM:
            enum = enums[field.type_name]
            values = enum.numbers()
            default = integer(values[field.default_value or next(iter(values))], stored)
            type_name, get = enum.name, f"static_cast<{enum.name}>(GetNumber<{stored}>({at}, {default}))"
        else:
            type_name, get = stored, f"GetNumber<{stored}>({at}, {number_literal(field, stored)})"
        self.add(f"{type_name} {{x}}() const", f"return {get};")
        self.add(f"void set_{{x}}({type_name} value)", f"SetNumber<{stored}>({at}, value);")

    def numbers(self, field: FieldDescriptorProto, enums: dict[str, Enum]):
        stored, coding = NUMBERS[field.type]
        at = f"<{stored}>({{n}}, Coding::{coding})"
        type_name = enums[field.type_name].name if field.type == F.TYPE_ENUM else stored
        self.add("int {x}_size() const", f"return GetNumbers{at}.size();")
        self.add(
            f"{type_name} {{x}}(int index) const",
            f"return static_cast<{type_name}>(GetNumbers{at}.Get(index));",
        )
        self.add(f"void set_{{x}}(int index, {type_name} value)", f"MutableNumbers{at}->Set(index, value);")
        self.add(f"void add_{{x}}({type_name} value)", f"MutableNumbers{at}->Add(value);")
        self.add(f"const RepeatedField<{stored}>& {{x}}() const", f"return GetNumbers{at};")
        self.add(f"RepeatedField<{stored}>* mutable_{{x}}()", f"return MutableNumbers{at};")

    def one_text(self, field: FieldDescriptorProto):
        default = bytes_of(field)
        literal = quoted(default).replace("{", "{{").replace("}", "}}")
        at = f"({{n}}, {literal}, {len(default)})"
        self.add("const std::string& {x}() const", f"return GetText{at};")
        self.add("std::string* mutable_{x}()", f"return MutableText{at};")
        self.setters("set_{x}(", "*MutableText({n}, nullptr, 0)")

    def setters(self, head: str, target: str):
        self.add(f"void {head}const std::string& value)", f"{target} = value;")
        self.add(f"void {head}const char* value)", f"{target} = value;")
        self.add(
            f"void {head}const void* value, size_t size)",
            f"({target}).assign(static_cast<const char*>(value), size);",
        )

    def texts(self, field: FieldDescriptorProto):
        self.add("int {x}_size() const", "return GetTexts({n}).size();")
        self.add("const std::string& {x}(int index) const", "return GetTexts({n}).Get(index);")
        self.add("std::string* mutable_{x}(int index)", "return MutableTexts({n})->Mutable(index);")
        self.add("std::string* add_{x}()", "return MutableTexts({n})->Add();")
        self.add("const RepeatedPtrField<std::string>& {x}() const", "return GetTexts({n});")
        self.add("RepeatedPtrField<std::string>* mutable_{x}()", "return MutableTexts({n});")
        self.setters("set_{x}(int index, ", "*MutableTexts({n})->Mutable(index)")
        self.setters("add_{x}(", "*MutableTexts({n})->Add()")

    def one_child(self, cpp: str):
        self.add(f"const {cpp}& {{x}}() const", f"return GetChild<{cpp}>({{n}});", after=True)
        self.add(f"{cpp}* mutable_{{x}}()", f"return MutableChild<{cpp}>({{n}});", after=True)

    def children(self, cpp: str):
        get, change = f"GetChildren<{cpp}>({{n}})", f"MutableChildren<{cpp}>({{n}})"
        self.add("int {x}_size() const", f"return {get}.size();", after=True)
        self.add(f"const {cpp}& {{x}}(int index) const", f"return {get}.Get(index);", after=True)
        self.add(f"{cpp}* mutable_{{x}}(int index)", f"return {change}->Mutable(index);", after=True)
        self.add(f"{cpp}* add_{{x}}()", f"return {change}->Add();", after=True)
        self.add(f"const RepeatedPtrField<{cpp}>& {{x}}() const", f"return {get};", after=True)
        self.add(f"RepeatedPtrField<{cpp}>* mutable_{{x}}()", f"return {change};", after=True)


class MessageClass:
    def __init__(self, proto: DescriptorProto, full_name: str, enums: dict[str, Enum]):
        self.proto, self.full_name, self.name = proto, full_name, class_name(full_name)
        used = (f for f in proto.field if f.type_name.removeprefix(".caffe.").partition(".")[0] not in UNUSED)
        self.fields = [Accessors(self.name, field, enums) for field in sorted(used, key=lambda f: f.number)]
        self.enums = [enums[f"{full_name}.{enum.name}"] for enum in proto.enum_type]

    def definition(self) -> str:
        name = self.name
        lines = [
            f"class {name} : public Message {{",
            " public:",
            f'  CAFFE_PROTO_INLINE {name}() : Message(&kCaffeProtoFile, "{self.full_name[1:]}") {{}}',
            f"  CAFFE_PROTO_INLINE static const {name}& default_instance() {{ return Default<{name}>(); }}",
            f"  CAFFE_PROTO_INLINE {name}* New() const {{ return new {name}; }}",
        ]
        lines += [
            f"  typedef {class_name(f'{self.full_name}.{inner.name}')} {safe(inner.name)};"
            for inner in self.proto.nested_type
        ]
        lines += [enum.aliases().rstrip("\n") for enum in self.enums]
        constants = [f"k{camel(field.name)}FieldNumber = {field.number}" for field in self.proto.field]
        if constants:
            lines.append(f"  enum : int {{ {', '.join(constants)} }};")
        for field in self.fields:
            lines += field.inside
        return "\n".join([*lines, "};\n"])

    def after(self) -> str:
        return "\n".join(line for field in self.fields for line in field.after)


def header(file: FileDescriptorProto, packages: Collection[str] = frozenset()) -> str:
    """The text of caffe.pb.h. The names in `packages`, the packages of the .proto files, become aliases of caffe."""
    protos: list[tuple[str, DescriptorProto]] = []
    enums = {f".caffe.{e.name}": Enum(e, f".caffe.{e.name}") for e in file.enum_type}

    def collect(message: DescriptorProto, name: str):
        protos.append((name, message))
        for enum in message.enum_type:
            enums[f"{name}.{enum.name}"] = Enum(enum, f"{name}.{enum.name}", class_name(name))
        for nested in message.nested_type:
            collect(nested, f"{name}.{nested.name}")

    for message in file.message_type:
        if message.name not in UNUSED:
            collect(message, f".caffe.{message.name}")
    classes = [MessageClass(proto, name, enums) for name, proto in protos]
    data = file.SerializeToString(deterministic=True)
    parts = [TOP]
    parts.append(f"static constexpr char kCaffeProtoBytes[] =\n    {quoted(data)};")
    parts.append(f"static constexpr ProtoFile kCaffeProtoFile = {{kCaffeProtoBytes, {len(data)}}};\n")
    parts += [f"class {c.name};" for c in classes]
    parts += [f"\n{e.definition()}" for e in enums.values()]
    parts += [f"\n{c.definition()}" for c in classes]
    parts += [text for c in classes if (text := c.after())]
    parts.append("\n}  // namespace caffe\n")
    parts += [f"namespace {package} = ::caffe;\n" for package in sorted(packages) if "." not in package]
    parts.append("#endif  // CAFFE_PROTO_CAFFE_PB_H_\n")
    return "\n".join(parts)
