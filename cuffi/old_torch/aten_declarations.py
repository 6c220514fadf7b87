"""Declare, in C++, the operations of ATen that an extension names, from torch's own schemas."""

import functools
import re
from typing import NamedTuple

import torch

# Names that include/aten/tensor.h declares, or that are no operations of tensors.
_BY_HAND = """
    Bool Float Int __and__ append backward can_cast clear contiguous copy count cpu cuda data device dim
    element_size extend find format from_blob get_device grad index index_put_ insert is_complex is_contiguous
    is_cuda is_floating_point is_leaf is_same item join layout len list numel pop promote_types requires_grad_ set_
    size sizes split_with storage storage_offset str stride strides tensor to type warn
"""
BY_HAND = frozenset(_BY_HAND.split())
ARGUMENT = re.compile(
    r"(?P<type>[A-Za-z]+(?:\([^)]*\))?(?:\[\d*\])?\??(?:\[\d*\])?\??) (?P<name>\w+)(?:=(?P<value>.*))?$"
)
# C++'s types of parameters and of results, by the schema's.
TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const optional<Tensor>&", "Tensor[]": "TensorList",
    "Tensor?[]": "ArrayRef<optional<Tensor>>", "int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "bool",
    "Scalar": "const Scalar&", "Scalar?": "const optional<Scalar>&", "int?": "optional<int64_t>",
    "SymInt?": "optional<int64_t>", "float?": "optional<double>", "bool?": "optional<bool>", "int[]": "IntArrayRef",
    "SymInt[]": "IntArrayRef", "int[]?": "OptionalIntArrayRef", "SymInt[]?": "OptionalIntArrayRef",
    "float[]": "ArrayRef<double>", "str": "std::string_view", "str?": "optional<std::string_view>",
    "ScalarType": "ScalarType", "ScalarType?": "optional<ScalarType>", "MemoryFormat": "MemoryFormat",
    "MemoryFormat?": "optional<MemoryFormat>", "Layout": "Layout", "Layout?": "optional<Layout>", "Device": "Device",
    "Device?": "optional<Device>", "Generator?": "optional<Generator>", "bool[]": "ArrayRef<bool>",
}  # fmt: skip
RESULTS = {
    "Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "bool": "bool", "int": "int64_t", "SymInt": "int64_t",
    "float": "double", "Scalar": "Scalar", "ScalarType": "ScalarType",
}  # fmt: skip
# Arguments whose default C++ lacks, so that two overloads do not take one call (torch's cpp_no_default_args).
_NO_DEFAULT = {
    r"(all|any)\.dims(_out)?": "dim", r"arange\.start_step|range\.step": "step", r"cl(am|i)p(_|\.out)?": "min",
    r"conv\dd\.padding": "bias stride padding", "stft": "hop_length win_length window normalized",
    r"(std|var)(_mean)?(\.dim|\.out)?": "unbiased", r"linalg_(pinv|matrix_rank)\.atol_rtol_float(_out)?": "atol rtol",
}  # fmt: skip
# The namespaces whose functions have names such as fft_rfft in the schemas.
SPACES = ("fft", "linalg", "nested", "sparse", "special")
# The arguments that are one TensorOptions in C++.
OPTIONS = ["dtype", "layout", "device", "pin_memory"]


class _Argument(NamedTuple):
    """An argument of a schema. value: its default."""

    type: str
    name: str
    value: str | None


class Declared(NamedTuple):
    """One operation. parameters: as C++ declares them. values: expressions for `names`, the schema's arguments."""

    name: str
    overload: str
    parameters: list[str]
    names: list[str]
    values: list[str]
    result: str


def text_of(names: set[str]) -> str:
    """The file operations.inc: methods and functions of these names."""
    methods, functions, seen = [], [], set()
    names = names | {f"{space}_{name}" for space in SPACES if space in names for name in names}
    known, asked = schemas(), names - BY_HAND
    asked |= {name.removesuffix("_out") for name in asked}
    for _, schema in sorted((place for name in asked for place in known.get(name, ())), key=lambda p: p[0]):
        found = declared(str(schema))
        if found is None or found.name not in names or not _is_dispatched(found):
            continue
        types = found.name, *(re.sub(r" \w+( = .*)?$", "", p) for p in found.parameters)
        if types in seen:
            continue
        seen.add(types)
        if found.names[:1] == ["self"] and found.parameters[0].startswith("const Tensor&"):
            methods.append(_method(found))
        functions.append(_function(found))
        space, _, name = found.name.partition("_")
        if space in SPACES:
            functions.append(f"namespace {space} {{ {_function(found, name)} }}")
    return "\n".join(
        ("#ifdef AT_METHODS", *methods, "#endif", "#ifdef AT_FUNCTIONS", *functions, "#endif", "")
    )


def names_in(texts) -> set[str]:
    """All names in some files."""
    return set().union(*(re.findall(r"[A-Za-z_]\w*", text) for text in texts))


@functools.cache
def schemas() -> dict[str, list]:
    """(place in torch's order, schema) of all operations, by name."""
    found: dict[str, list] = {}
    for place, schema in enumerate(torch._C._jit_get_all_schemas()):
        space, _, name = schema.name.partition("::")
        if space == "aten":
            found.setdefault(name, []).append((place, schema))
    return found


def _is_dispatched(operation: Declared) -> bool:
    """TorchScript has further operations, on numbers and lists, that C++ lacks. They are not in the dispatcher."""
    name = f"aten::{operation.name.removesuffix('_out')}.{operation.overload}".rstrip(".")
    try:
        torch._C._dispatch_has_kernel_for_dispatch_key(name, "CPU")
    except RuntimeError:
        return False
    return True


def split(text: str) -> list[str]:
    """The parts between commas that no bracket or quote encloses."""
    parts, depth, quoted, start = [], 0, False, 0
    for i, c in enumerate(text):
        quoted ^= c == '"'
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth and not quoted:
            parts.append(text[start:i].strip())
            start = i + 1
    return [part for part in [*parts, text[start:].strip()] if part]


def declared(schema: str) -> Declared | None:
    """The operation of a schema; None for one that C++ cannot call."""
    head, _, result = schema.rpartition(" -> ")
    full, _, rest = head.removeprefix("aten::").partition("(")
    name, _, overload = full.partition(".")
    listed = [a for a in split(rest[: rest.rindex(")")]) if a != "*"]
    matched = [found for a in listed if (found := ARGUMENT.match(a))]
    if len(matched) < len(listed) or overload.endswith("hacked_twin"):
        return None
    lacking = " ".join(names for which, names in _NO_DEFAULT.items() if re.fullmatch(which, full)).split()
    parsed = [_Argument(m["type"], m["name"], None if m["name"] in lacking else m["value"]) for m in matched]
    written = [p for p in parsed[1:] if "!" in p.type]
    if written:  # an `out` variant; C++ has its tensor first
        if len(written) > 1 or overload.rpartition("_")[2] != "out":
            return None
        parsed = [*written, *(p for p in parsed if p not in written)]
        name = f"{name}_out"
    results = split(result[1:-1]) if result.startswith("(") else [result]
    kinds = [_plain(r.split(" ")[0]) for r in results]
    if any(k not in RESULTS for k in kinds) or any(_plain(p.type) not in TYPES for p in parsed):
        return None
    several = f"std::tuple<{', '.join(RESULTS[k] for k in kinds)}>"
    made = "void" if not kinds else RESULTS[kinds[0]] if len(kinds) == 1 else several
    parameters, values = _parameters(parsed)
    return Declared(name, overload, parameters, [p.name for p in parsed], values, made)


def _parameters(parsed: list[_Argument]) -> tuple[list[str], list[str]]:
    """C++'s parameters, and the expressions that are passed, for the arguments of a schema."""
    parameters, values, i = [], [], 0
    while i < len(parsed):
        if [p.name for p in parsed[i : i + 4]] == OPTIONS:
            optional = all(p.value is not None for p in parsed[i : i + 4])
            parameters.append("const TensorOptions& options" + (" = {}" if optional else ""))
            fixed = parsed[i].value
            other = f"options.type_ ? *options.type_ : static_cast<ScalarType>({fixed})"
            values.append("options.type_" if fixed in (None, "None") else other)
            values += ["options.layout_", "options.device_", "options.pinned_"]
            i += 4
            continue
        kind = _plain(parsed[i].type)
        value = _default(kind, parsed[i].value)
        parameters.append(f"{TYPES[kind]} {parsed[i].name}_" + (f" = {value}" if value is not None else ""))
        of_options = parsed[i].name == "memory_format" and "options.device_" in values
        values.append("options.format_or(memory_format_)" if of_options else f"{parsed[i].name}_")
        i += 1
    return parameters, values


def _plain(kind: str) -> str:
    """A type without the mark of an alias and without a list's length."""
    return re.sub(r"\[\d+\]", "[]", re.sub(r"\([^)]*\)", "", kind))


def _default(kind: str, value: str | None) -> str | None:
    """A default in C++."""
    if value in ("True", "False"):
        return value.lower()
    if value == "None":
        return "{}" if kind == "Scalar?" else "nullopt"
    if value is not None and value.startswith("["):
        return f"IntArrayRef({{{value[1:-1]}}})" if value != "[]" else "IntArrayRef()"
    if value is not None and kind in ("ScalarType", "ScalarType?", "MemoryFormat"):
        return f"static_cast<{kind.rstrip('?')}>({value})"
    return value if value is None else re.sub(r"\.$", ".0", value)


def _statements(operation: Declared, values: list[str]) -> tuple[str, str]:
    """Statements that do the operation: the last has no `;`, and its value is a Value."""
    strings = (
        f'"{operation.name.removesuffix("_out")}", "{operation.overload}", "{",".join(operation.names)}"'
    )
    given = ", ".join(f"aten::of({value})" for value in values)
    return f"static const aten::Operation operation{{{strings}}}; ", f"aten::ask(operation, {{{given}}})"


def _function(operation: Declared, name: str = "") -> str:
    first, asked = _statements(operation, operation.values)
    result = "const Tensor&" if operation.name.endswith("_out") else operation.result
    head = f"inline {result} {name or operation.name}({', '.join(operation.parameters)})"
    return f"AT_COLD {head} {{ {first}{_returned(operation, asked)} }}"


def _method(operation: Declared) -> str:
    first, asked = _statements(operation, ["*this", *operation.values[1:]])
    parameters = ", ".join(operation.parameters[1:])
    if operation.name.endswith("_") and operation.result == "Tensor":
        return (
            f"AT_COLD const Tensor& {operation.name}({parameters}) const {{ {first}return {asked}, *this; }}"
        )
    head = f"{operation.result} {operation.name}({parameters}) const"
    return f"AT_COLD {head} {{ {first}{_returned(operation, asked)} }}"


def _returned(operation: Declared, asked: str) -> str:
    if operation.name.endswith("_out"):
        return f"return {asked}, {operation.names[0]}_;"
    if operation.result == "void":
        return f"{asked};"
    if "options.type_" in operation.values and operation.result == "Tensor":
        return f"return aten::made({asked}, options);"
    return f"return aten::to<{operation.result}>({asked});"
