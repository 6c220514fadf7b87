"""Read the functions that an extension's headers declare.

As in torch.utils.ffi, lines that begin with # are left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pycparser import c_ast, c_generator, c_parser

from tools.files import read
from tools.refused import Refused

# TH's names of types: DLPack's code and bits of an element.
TYPES = {
    "Float": (2, 32), "Double": (2, 64), "Half": (2, 16), "Long": (0, 64), "Int": (0, 32), "Short": (0, 16),
    "Char": (0, 8), "Byte": (1, 8),
}  # fmt: skip
TENSORS = {f"TH{name}Tensor": (code, bits, False) for name, (code, bits) in TYPES.items()}
TENSORS |= {
    f"THCuda{name if name != 'Float' else ''}Tensor": (code, bits, True)
    for name, (code, bits) in TYPES.items()
}
# Integers by the words of their type, sorted: signed, bits. long is that of Linux.
_BITS = {"char": 8, "short": 16, "int": 32, "long": 64}
INTEGERS = {
    "size_t": (False, 64), "ssize_t": (True, 64), "ptrdiff_t": (True, 64), "intptr_t": (True, 64),
    "uintptr_t": (False, 64), "bool": (False, 1), "_Bool": (False, 1), "unsigned": (False, 32),
}  # fmt: skip
INTEGERS |= {f"{sign}int{bits}_t": (not sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
REALS = ("float", "double")
_KNOWN = [*TENSORS, "THCState", "THGenerator", "FILE", "cudaStream_t", "cudaError_t"]
_TYPEDEFS = "".join(f"typedef struct {name} {name};" for name in _KNOWN)
_TYPEDEFS += "".join(f"typedef int {name};" for name in INTEGERS if name not in ("unsigned", "_Bool"))


class Parameter(NamedTuple):
    """A parameter, or a result. kind: that of th_call.h. type: in C. shown: the type in messages."""

    name: str
    kind: str
    type: str
    shown: str
    code: int = 0
    bits: int = 0
    on_gpu: bool = False
    least: int = 0
    most: int = 0


class Function(NamedTuple):
    name: str
    parameters: list[Parameter]
    returns: Parameter
    place: str


def functions_of(header: str, shown: str) -> list[Function]:
    """The functions of a header. `shown` is its path in messages. Refused if it is not C."""
    text = read(header)
    text = re.sub(
        r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text.replace("\r", ""), flags=re.S
    )
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), text, flags=re.M)
    # Of a header that C++ may read, too, only `}` is left without its line.
    text = re.sub(r'extern\s+"C"\s*\{?', "", text)
    text = re.sub(r"\}\s*\Z", "", text) if text.count("}") > text.count("{") else text
    try:
        tree = c_parser.CParser().parse(f"{_TYPEDEFS}\n#line 1\n{text}", shown)
    except Exception as error:  # pycparser has one error class per version
        raise Refused(f"{shown}: error: not C declarations: {error}") from None
    return [_function(node, shown) for node in tree.ext if _declares(node)]


def _declares(node: c_ast.Node) -> bool:
    return (
        isinstance(node, c_ast.Decl)
        and isinstance(node.type, c_ast.FuncDecl)
        and "static" not in node.storage
    )


def _function(node: c_ast.Decl, shown: str) -> Function:
    assert node.coord is not None  # it was parsed
    place = f"{shown}:{node.coord.line}"
    given = (node.type.args or c_ast.ParamList([])).params
    if any(isinstance(p, c_ast.EllipsisParam) for p in given):
        raise Refused(f"{place}: error: {node.name}: Python cannot call a function with `...`")
    parameters = [_parameter(p.type, getattr(p, "name", None) or "") for p in given]
    if [p.kind for p in parameters] == ["kNothing"]:
        parameters = []
    return Function(node.name, parameters, _parameter(node.type.type, ""), place)


def _parameter(
    node: c_ast.TypeDecl | c_ast.PtrDecl | c_ast.ArrayDecl | c_ast.FuncDecl, name: str
) -> Parameter:
    generate = c_generator.CGenerator().visit
    inner = node
    while not isinstance(inner, c_ast.TypeDecl):
        inner = inner.type
    inner.declname = None
    plain = generate(c_ast.Typename(None, [], None, node))
    words = getattr(inner.type, "names", ["struct"])
    base = " ".join(words)
    shown = plain.replace("const ", "")
    if not isinstance(node, c_ast.TypeDecl):
        if base in TENSORS and isinstance(node.type, c_ast.TypeDecl):
            code, bits, on_gpu = TENSORS[base]
            return Parameter(name, "kTensor", plain, base, code, bits, on_gpu)
        # `const char *` is text, `char *` memory.
        text = base == "char" and "const" in inner.quals and isinstance(node.type, c_ast.TypeDecl)
        return Parameter(name, "kText" if text else "kMemory", plain, shown)
    if base in REALS or base == "long double":
        return Parameter(name, "kReal", plain, shown)
    if base == "void":
        return Parameter(name, "kNothing", plain, shown)
    signed, bits = INTEGERS.get(base) or ("unsigned" not in words, _BITS[_main(words)])
    return Parameter(
        name, "kInteger", plain, shown, least=-(2 ** (bits - 1)) if signed else 0,
        most=2 ** (bits - 1) - 1 if signed else min(2**bits, 2**63) - 1,
    )  # fmt: skip


def _main(words: list[str]) -> str:
    """The word that decides on the size: of `unsigned long int` it is long. An enum or a struct counts as an int."""
    return next((word for word in ("char", "short", "long") if word in words), "int")
