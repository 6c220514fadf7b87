"""Turn one layer's C declarations into Python's side of them: an object to link with the layer's archive.

    python build_ffi.py layers/round/round.h build/round/host/_host.o --cxx "g++ -O1" --flags "-march=native"

The extension, which tools/make/link.py makes of it, speaks CPython's stable ABI only, so the same file loads under
every Python from 3.10 on and, since nothing of torch is in it, under every torch. Tensors arrive as addresses
(`uintptr_t`): a call costs 0.12 us that way, against 0.4 us with `ffi.cast`. Beside them each function is there as one
that takes an array of words, for calls that were recorded (src/call_plan.h).

Caffe layers all have the same declarations: their object is made once.
"""

import argparse
import ast
import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

from cffi import FFI
from pycparser import c_ast, c_parser

from tools.files import read
from tools.make.backends import edge

ROOT = Path(__file__).resolve().parent
ABI = ROOT / "include" / "caffe_ffi.h"
# The structs that a Caffe layer's functions take.
RECORDS = ROOT / "include" / "caffe" / "layer_record.h"
# What the processor must have for code that a compiler writes by itself: all that any -march means. What takes an
# intrinsic to be used (AES, SHA, AMX, ...) is not among them.
FEATURES = """
    sse3 ssse3 sse4.1 sse4.2 sse4a popcnt avx avx2 fma fma4 xop tbm bmi bmi2 lzcnt movbe f16c avxvnni
    avx512f avx512cd avx512dq avx512bw avx512vl avx512er avx512pf avx512vbmi avx512vbmi2 avx512ifma avx512vnni
    avx512bitalg avx512vpopcntdq avx512bf16 avx512fp16 avx5124fmaps avx5124vnniw avx512vp2intersect
    avxifma avxvnniint8 avxvnniint16 avxneconvert apxf avx10.1 avx10.2 gfni
"""
# By the macro that the compiler defines for it.
CPU_FEATURES = {f"__{name.upper().replace('.', '_')}__": name for name in FEATURES.split()}
# Python 3.10's stable ABI: the first that calls builtins without making a tuple of their arguments.
PYTHON_ABI = "-DPy_LIMITED_API=0x030A0000"


class BuildError(Exception):
    """Something the layer's author has to mend; its text is the whole message."""


def text_of(header: Path) -> str:
    """As any editor may have written it: of what is not ASCII, which comments alone may have, each byte is a letter."""
    return re.sub(r"\r\n?", "\n", read(header))


def parse_declarations(header: Path) -> dict[str, dict]:
    """The functions a header declares.

    {name: {"returns": type, "parameters": [(type, name), ...], "extents": see `add_extents`}}.
    """
    text = text_of(header)
    if directive := re.search(r"^\s*#\s*\w+", text, re.M):
        line = text[: directive.end()].count("\n") + 1
        raise BuildError(
            f"{header}:{line}: error: bare declarations only, no preprocessor lines: cffi reads this file"
        )
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    records = re.sub(r"//[^\n]*", "", structs_of(header))
    sized = "".join(f"typedef long {sign}int{bits}_t;" for sign in ("", "u") for bits in (8, 16, 32, 64))
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
            functions[node.name] = {
                "returns": returned.type.names[0],
                "parameters": [_parameter(header, node.name, parameter) for parameter in parameters],
            }
    if not functions:
        raise BuildError(f"{header}: error: declares no function")
    add_extents(text_of(header), functions)
    return functions


# In a comment: names of tensors, their sizes, and strides if they do not lie row after row.
EXTENTS = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*:?\s*\[([^\]]*)\](?:\s*with\s+strides\s*\[([^\]]*)\])?")
COMMENT_OR_NAME = re.compile(r"(?:^[ \t]*//[^\n]*\n?)+|/\*.*?\*/|\b(\w+)\s*\(", re.M | re.S)


def add_extents(text: str, functions: dict[str, dict]) -> None:
    """What the header's comments say of the tensors' sizes: no call may have less memory than that.

    `bottom, top: [count]` or `diff: [rows, columns] with strides [row, column]` holds for the functions that are
    declared below it, until it is said again; for those that have each name in the brackets as an integer parameter.
    A function's "extents" are {tensor: (sizes, strides)}, lists of Python expressions of its parameters.
    """
    said = {}
    for found in COMMENT_OR_NAME.finditer(text):
        if (name := found[1]) is None:
            comment = re.sub(r"^[ \t]*//|^/\*|\*/$", " ", found[0], flags=re.M)
            for names, *lists in EXTENTS.findall(comment):
                extents = tuple([_expression(e) for e in listed.split(",") if e.strip()] for listed in lists)
                said |= {tensor.strip(): extents for tensor in names.split(",")}
        elif name in functions:
            parameters = functions[name]["parameters"]
            numbers = {n for t, n in parameters if "int" in t and not t.endswith("*")}
            tensors = [n for t, n in parameters if t.endswith("*") and n in said]
            functions[name]["extents"] = {
                n: said[n] for n in tensors if all(_is_made_of(numbers, e) for part in said[n] for e in part)
            }


def _expression(text: str) -> str:
    """C's division of what is not negative, as Python writes it."""
    return " ".join(text.split()).replace("/", "//")


def _is_made_of(names: set[str], expression: str) -> bool:
    """Whether it is arithmetic on these names and on numbers, and no prose."""
    if not re.fullmatch(r"[\w\s+*/()-]+", expression):
        return False
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    kinds = (
        ast.Expression,
        ast.BinOp,
        ast.UnaryOp,
        ast.operator,
        ast.unaryop,
        ast.Name,
        ast.Load,
        ast.Constant,
    )
    return all(
        isinstance(node, kinds) and (not isinstance(node, ast.Name) or node.id in names)
        for node in ast.walk(tree)
    )


def structs_of(header: Path) -> str:
    """The declarations of the structs that a header names: a Caffe layer's records, or nothing."""
    return RECORDS.read_text() if re.search(r"\bcaffe_(services|\w+_record)\b", text_of(header)) else ""


def _parameter(header: Path, function: str, node: c_ast.Node) -> tuple[str, str]:
    name = getattr(node, "name", None)
    if not name:
        raise BuildError(
            f"{header}: error: {function}: each parameter needs a name, it is what error messages say"
        )
    is_pointer = isinstance(node.type, c_ast.PtrDecl)
    base = node.type.type if is_pointer else node.type
    if not isinstance(base, c_ast.TypeDecl):
        raise BuildError(f"{header}: error: {function}: '{name}' is neither a number nor a plain pointer")
    type_name = " ".join([*base.quals, *getattr(base.type, "names", [])])
    return type_name + (" *" if is_pointer else ""), name


def wrapper_source(header: Path, functions: dict, own_wrapper: Path | None) -> tuple[str, str]:
    """The C++ text cffi compiles, and the declarations it exports: addresses instead of pointers."""
    lines, exported = [], []
    for function, declared in functions.items():
        returns, parameters = declared["returns"], declared["parameters"]
        taken = ", ".join(f"{'uintptr_t' if t.endswith('*') else t} {n}" for t, n in parameters)
        given = ", ".join(f"reinterpret_cast<{t}>({n})" if t.endswith("*") else n for t, n in parameters)
        exported.append(f"{returns} {function}_ffi({taken or 'void'});")
        lines.append(f"static {returns} {function}_ffi({taken}) {{")
        if returns == "int":
            lines.append(f"  return caffe_guard([&] {{ return {function}({given}); }});\n}}")
        else:  # a number: -1 if there is an error to be read
            lines.append(f"  {returns} number = -1;")
            lines.append(
                f"  caffe_guard([&] {{ return number = {function}({given}), 0; }});\n  return number;\n}}"
            )
    if own_wrapper:
        lines = [f'#include "{own_wrapper}"']
    lines += runner_source(functions)
    exported += [
        "uintptr_t caffe_runner(const char *name);",
        "uintptr_t caffe_set_num_threads_address(void);",
    ]
    more = header.with_name(header.stem + "_call.h")
    if more.exists():  # builtins of its own, made by a function that takes what they need
        lines.append(f'#include "{more}"')
        exported.append("uintptr_t caffe_record_call_address(void);")
        lines.append("static uintptr_t caffe_record_call_address(void) {")
        lines.append("  return reinterpret_cast<uintptr_t>(caffe::record_call);\n}")
    signatures = json.dumps(json.dumps(functions))
    lines.append(f"static const char *caffe_signatures(void) {{ return {signatures}; }}")
    exported.append("const char *caffe_signatures(void);")
    records = f'#include "{RECORDS}"\n' if structs_of(header) else ""
    return f'extern "C" {{\n{records}#include "{header}"\n}}\n' + "\n".join(lines) + "\n", "\n".join(exported)


def runner_source(functions: dict) -> list[str]:
    """For each function that returns a status, one that takes its arguments as words (src/ffi_run.h)."""
    lines, runners = [], []
    for function, declared in functions.items():
        if declared["returns"] != "int":
            continue
        types = ("uintptr_t" if kind.endswith("*") else kind for kind, _ in declared["parameters"])
        words = ", ".join(f"caffe::from_word<{kind}>(words[{i}])" for i, kind in enumerate(types))
        lines.append(f"static int {function}_run(const int64_t *words) {{ return {function}_ffi({words}); }}")
        runners.append(f'  {{"{function}", {function}_run}},')
    lines += ["static const caffe::Runner caffe_runners[] = {", *runners, "  {nullptr, nullptr}};"]
    lines.append(
        "static uintptr_t caffe_runner(const char *name) { return caffe::find_runner(caffe_runners, name); }"
    )
    lines.append(
        "static uintptr_t caffe_set_num_threads_address(void) { return (uintptr_t)caffe_set_num_threads; }"
    )
    return lines


def cpu_features(cxx: list[str], flags: list[str]) -> list[str]:
    command = [*cxx, *flags, "-dM", "-E", "-x", "c++", os.devnull]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [feature for macro, feature in CPU_FEATURES.items() if f"#define {macro} " in macros]
    if _can_be_asked(cxx[0], found):
        return found
    # A compiler that cannot ask for one of them is older than the processors that have it.
    return [feature for feature in found if _can_be_asked(cxx[0], [feature])]


def _can_be_asked(cxx: str, features: list[str]) -> bool:
    """Whether the compiler's __builtin_cpu_supports knows them all."""
    asked = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in features) or "0"
    command = [cxx, "-fsyntax-only", "-x", "c++", "-"]
    program = f"int main() {{ return {asked}; }}"
    return subprocess.run(command, input=program, capture_output=True, text=True).returncode == 0


def build(header, output, cxx, flags, info) -> None:
    functions = parse_declarations(header)
    own_wrapper = header.with_name(header.stem + "_ffi.cpp")
    source, exported = wrapper_source(header, functions, own_wrapper if own_wrapper.exists() else None)
    features = " ".join(f'X("{feature}")' for feature in cpu_features(cxx, flags))
    said = [edge.EVERY, *([edge.CAFFE] if structs_of(header) else [])]
    said = " ".join(edge.digest(ROOT, files) for files in said)
    preamble = f'#define CAFFE_EDGE "{said}"\n#define CAFFE_BUILD_INFO {json.dumps(info)}\n'
    preamble += f"#define CAFFE_CPU_FEATURES(X) {features}\n"
    preamble += '#include "ffi_guard.h"\n#include "ffi_run.h"\n'
    ffi = FFI()
    ffi.cdef(ABI.read_text() + structs_of(header) + exported)
    module = output.name.split(".")[0]
    ffi.set_source(module, preamble + source, source_extension=".cpp", py_limited_api=True)
    generated = output.parent / f"{module}.cpp"
    ffi.emit_c_code(str(generated))
    includes = [f"-I{ROOT / folder}" for folder in ("include", "src")] + python_includes()
    # Python.h includes <math.h>, which in C++17 is two thirds of all that is compiled here. What is written by hand may
    # need it.
    by_hand = any(header.with_name(header.stem + end).exists() for end in ("_ffi.cpp", "_call.h"))
    standard = "-std=c++17" if by_hand else "-std=c++14"
    # Renamed when whole: a killed build leaves no half an object.
    partial = output.with_name(output.name + ".partial")
    subprocess.run(
        [*cxx, standard, PYTHON_ABI, "-fPIC", "-fvisibility=hidden", *includes, str(generated),
         "-c", "-o", str(partial)], check=True)  # fmt: skip
    os.replace(partial, output)


def python_includes() -> list[str]:
    return [f"-I{sysconfig.get_path(kind)}" for kind in ("include", "platinclude")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("header", type=Path, help="the layer's declarations")
    parser.add_argument("output", type=Path, help="the object to write; the extension is called as it is")
    parser.add_argument("--cxx", default="g++", help="the C++ compiler, with options for the wrapper")
    parser.add_argument("--flags", default="", help="the options that the kernels were compiled with")
    parser.add_argument("--info", default="", help="the text of caffe_build_info()")
    arguments = parser.parse_args()
    split = {name: shlex.split(getattr(arguments, name)) for name in ("cxx", "flags")}
    paths = {name: getattr(arguments, name).resolve() for name in ("header", "output")}
    try:
        build(**paths, **split, info=arguments.info)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # the compiler has said why
    return 0


if __name__ == "__main__":
    sys.exit(main())
