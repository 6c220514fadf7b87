"""Read a layer's C declarations, and what the comments beside them say."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pycparser import c_ast, c_parser

from ..files import read
from .backends import edge
from .package import ROOT


class BuildError(Exception):
    """An error that the layer's author must correct. Its text is the whole message."""


def text_of(header: Path) -> str:
    """The text of a header, with plain newlines. A comment may have any encoding: each byte is one character."""
    try:
        return re.sub(r"\r\n?", "\n", read(header))
    except FileNotFoundError:
        raise BuildError(f"{header}: error: this file is missing; it must declare the C functions") from None


def parse_declarations(header: Path) -> dict[str, dict]:
    """The functions that a header declares.

    Returns {name: {"returns": type, "parameters": [(type, name), ...], "extents": see `add_comments`, ...}}.
    """
    text = text_of(header)
    if directive := re.search(r"^\s*#\s*\w+", text, re.M):
        line = text[: directive.end()].count("\n") + 1
        raise BuildError(
            f"{header}:{line}: error: expected only C declarations, without preprocessor lines: cffi reads this file"
        )
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    records = re.sub(r"//[^\n]*", "", structs_of(wing_of(header)))
    sized = "".join(f"typedef long {sign}int{bits}_t;" for sign in ("", "u") for bits in (8, 16, 32, 64))
    sized += "".join(
        f"typedef long {name};" for name in ("size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t")
    )
    try:
        tree = c_parser.CParser().parse(f"{sized}typedef int bool;{records}\n#line 1\n{text}", str(header))
    except Exception as error:  # pycparser has one error class per version
        hint = ", which C does not know: a stream is `void *stream`" if "cudaStream_t" in text else ""
        named = "cudaStream_t" if hint else "not a list of C declarations"
        raise BuildError(f"{header}: error: {named}{hint}: {error}") from None
    functions = {}
    for node in tree.ext:
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            returned = node.type.type
            if not isinstance(returned, c_ast.TypeDecl) or returned.type.names not in (["int"], ["int64_t"]):
                raise BuildError(
                    f"{header}:{node.coord.line}: error: {node.name} must return int (a status: "
                    "return CAFFE_LAUNCH_STATUS();) or int64_t (a number)"
                )
            parameters = (node.type.args or c_ast.ParamList([])).params
            if [_type_of(parameter) for parameter in parameters] == [["void"]]:
                parameters = []
            functions[node.name] = {
                "returns": returned.type.names[0],
                "parameters": [_parameter(header, node.name, parameter) for parameter in parameters],
            }
    if not functions:
        raise BuildError(f"{header}: error: declares no function")
    add_comments(text_of(header), functions)
    return functions


# In a comment: names of tensors, their sizes, and their strides if they are not contiguous.
EXTENTS = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:?\s*\[([^\]]*)\](?:\s*with\s+strides\s*\[([^\]]*)\])?")
# Names of tensors whose address C reads as a wider type, such as float4.
ALIGNED = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*aligned to (\d+) bytes")
# Names of integer tensors.
INDICES = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*int32 or int64\b")
# Names of tensors whose elements C declares as integers of two bytes, or as the parts of complex numbers.
ELEMENTS = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*(b?float16|complex64|complex128)\b")
# Names of tensors of a `void *`, and their dtypes, if those are not the layer's.
ONE_OF = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*one of (\w+(?:, \w+)*)")
# Names of numbers: the grid and the block.
GEOMETRY = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:\s*of the launch\b")
# The grid, the block or the bytes of shared memory that the file's own launch has, in numbers.
OF_THE_FILE = re.compile(r"\b(grid|block|shared_bytes): (\d+(?:, \d+)*) by the file's launch\b")
# In a sentence: it does not allow NULL.
NOT_NULL = re.compile(r"\b(not|never)\b\s+(be\s+)?NULL")
COMMENT_OR_NAME = re.compile(r"(?:^[ \t]*//[^\n]*\n?)+|/\*.*?\*/|\b(\w+)\s*\(", re.M | re.S)


def add_comments(text: str, functions: dict[str, dict]) -> None:
    """Add the facts in the header's comments to each function. A comment applies to the functions below it.

    "extents": the sizes. No call may have smaller tensors. A comment is `bottom, top: [count]` or
    `diff: [rows, columns] with strides [row, column]`. It holds until another comment names the same tensor, for
    functions that have every name in the brackets as an integer parameter. "extents" is {tensor: (sizes, strides)},
    both lists of Python expressions of the function's parameters.
    "null": the pointers that a sentence with the word NULL names. A call may pass None only for these.
    "alignments": {tensor: bytes}, from `top: aligned to 16 bytes`, only for the next function.
    "elements": {tensor: dtypes}, from `x, y: float16` or `x, y: one of float32, int32`, only for the next function.
    "indices": {tensor: dtype}, from `label, other: int32 or int64`. They have one dtype, which C gets as
    `int label_dtype`.
    "geometry": the grid and the block, from `grid, block_x, block_y, block_z: of the launch`, for the next function.
    "launched": {"block": [16, 16, 1]}, from `block: 16, 16 by the file's launch`, for the next function.
    """
    extents_of, null, alignments, elements, indices = {}, set(), {}, {}, {}
    geometry: set[str] = set()
    launched: dict[str, list[int]] = {}
    for match in COMMENT_OR_NAME.finditer(text):
        if (name := match[1]) is None:
            comment = re.sub(r"^[ \t]*//|^/\*|\*/$", " ", match[0], flags=re.M)
            for names, *lists in EXTENTS.findall(comment):
                extents = tuple([_expression(e) for e in text.split(",") if e.strip()] for text in lists)
                extents_of |= {tensor.strip(): extents for tensor in names.split(",")}
            for names, count in ALIGNED.findall(comment):
                alignments |= {tensor.strip(): int(count) for tensor in names.split(",")}
            for names, dtype in ELEMENTS.findall(comment):
                elements |= {tensor.strip(): [dtype] for tensor in names.split(",")}
            for names, dtypes in ONE_OF.findall(comment):
                elements |= {tensor.strip(): dtypes.split(", ") for tensor in names.split(",")}
            for names in INDICES.findall(comment):
                first, *others = names.replace(" ", "").split(",")
                indices |= dict.fromkeys([first, *others], f"{first}_dtype")
            for names in GEOMETRY.findall(comment):
                geometry |= set(names.replace(" ", "").split(","))
            for what, sizes in OF_THE_FILE.findall(comment):
                launched[what] = [*map(int, sizes.split(", ")), 1, 1][:3]
            for sentence in re.split(r"\.\s", comment):
                if "NULL" in sentence and not NOT_NULL.search(sentence):
                    null |= set(re.findall(r"\w+", sentence))
        elif name in functions:
            parameters = functions[name]["parameters"]
            integers = {n for t, n in parameters if is_integer(t)}
            tensors = [n for t, n in parameters if t.endswith("*")]
            functions[name]["extents"] = {
                n: extents_of[n]
                for n in tensors
                if n in extents_of and all(_is_made_of(integers, e) for part in extents_of[n] for e in part)
            }
            functions[name]["null"] = [n for n in tensors if n in null]
            functions[name]["alignments"] = {n: alignments[n] for n in tensors if n in alignments}
            functions[name]["indices"] = {
                n: indices[n]
                for t, n in parameters
                if t.endswith("void *") and ("int", indices.get(n)) in parameters
            }
            functions[name]["elements"] = {n: elements[n] for n in tensors if n in elements}
            functions[name]["geometry"] = [n for t, n in parameters if t == "int" and n in geometry]
            functions[name]["launched"] = launched
            alignments, elements, geometry, launched = {}, {}, set(), {}


def is_integer(kind: str) -> bool:
    """Is it one of C's integer types?"""
    return (
        re.fullmatch(
            r"u?int\d+_t|s?size_t|u?intptr_t|ptrdiff_t|(\b(un)?signed|char|short|int|long|\s)+", kind
        )
        is not None
    )


def _expression(text: str) -> str:
    """A C expression in Python: `/` becomes `//`, which is the same for numbers that are not negative."""
    return " ".join(text.split()).replace("/", "//")


def _is_made_of(names: set[str], expression: str) -> bool:
    """Is the expression arithmetic on these names and on numbers, and not prose?"""
    if not re.fullmatch(r"[\w\s+*/()-]+", expression):
        return False
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    known = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= names
    arithmetic = ast.Expression | ast.BinOp | ast.UnaryOp | ast.UAdd | ast.USub
    arithmetic |= ast.Add | ast.Sub | ast.Mult | ast.FloorDiv
    return known and all(
        isinstance(node, arithmetic | ast.Name | ast.Load | ast.Constant) for node in ast.walk(tree)
    )


def wing_of(header: Path) -> str:
    """The wing whose structs the header names (cuffi/edge.py); "" if none."""
    text = text_of(header)
    for wing in edge.structs():
        names = re.findall(r"^\} (\w+);", structs_of(wing), re.M)
        if re.search(rf"\b({'|'.join(names)})\b", text):
            return wing
    return ""


def structs_of(wing: str) -> str:
    """The declarations of a wing's structs."""
    return edge.path_of(Path(ROOT), edge.structs()[wing].header).read_text() if wing else ""


def _type_of(node: c_ast.Node) -> list[str]:
    """The words of a parameter that is a type alone, as in `int f(void)`; none of others."""
    is_alone = isinstance(node, c_ast.Typename) and isinstance(node.type, c_ast.TypeDecl)
    return node.type.type.names if is_alone and node.name is None else []


def _parameter(header: Path, function: str, node: c_ast.Node) -> tuple[str, str]:
    name = node.name if isinstance(node, c_ast.Decl) else None
    if not isinstance(node, c_ast.Decl) or not name:
        raise BuildError(
            f"{header}: error: {function}: each parameter needs a name, which error messages use"
        )
    is_pointer = isinstance(node.type, c_ast.PtrDecl)
    base = node.type.type if is_pointer else node.type
    if not isinstance(base, c_ast.TypeDecl):
        raise BuildError(f"{header}: error: {function}: '{name}' is neither a number nor a plain pointer")
    # `const int n` is an int for the caller.
    quals = base.quals if is_pointer else []
    type_name = " ".join([*quals, *getattr(base.type, "names", [])])
    return type_name + (" *" if is_pointer else ""), name
