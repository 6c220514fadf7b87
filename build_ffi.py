"""Compile the Python wrapper of one layer's C functions: an object to link with the layer's archive.

    python build_ffi.py layers/round/round.h build/round/host/_host.o --cxx "g++ -O1" --flags "-march=native"
    python build_ffi.py src/edge/ffi_std.hpp build/ffi_std.hpp.gch --cxx "g++ -O1"

The second line precompiles the headers that all wrappers include, for `--std build/ffi_std.hpp` of the first one.

tools/make/link.py links the object into an extension. The extension uses only CPython's stable ABI and nothing of
torch, so the same file works with every Python from 3.10 on, and with every torch.

Functions take tensors as addresses (`uintptr_t`): a call takes 0.12 us, and would take 0.4 us with `ffi.cast`. Each
function also has a variant that takes its arguments as an array of words (src/edge/call_launcher.h).

A wing's libraries may pass structs, too (`structs` in cuffi/edge.py).
"""

import argparse
import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from cffi import FFI
from pycparser import c_ast, c_parser

from tools.files import read
from tools.make.backends import edge
from tools.make.python_abi import PYTHON_ABI, python_includes

ROOT = Path(__file__).resolve().parent
ABI = ROOT / "include" / "caffe_ffi.h"
# The processor features that a compiler uses by itself for some -march. Features that only intrinsics use (AES, SHA,
# AMX, ...) are left out.
FEATURES = """
    sse3 ssse3 sse4.1 sse4.2 sse4a popcnt avx avx2 fma fma4 xop tbm bmi bmi2 lzcnt movbe f16c avxvnni
    avx512f avx512cd avx512dq avx512bw avx512vl avx512er avx512pf avx512vbmi avx512vbmi2 avx512ifma avx512vnni
    avx512bitalg avx512vpopcntdq avx512bf16 avx512fp16 avx5124fmaps avx5124vnniw avx512vp2intersect
    avxifma avxvnniint8 avxvnniint16 avxneconvert apxf avx10.1 avx10.2 gfni
"""
# The features by the macro that the compiler defines for each.
CPU_FEATURES = {f"__{name.upper().replace('.', '_')}__": name for name in FEATURES.split()}
# Those of ARM64: src/edge/cpu_arm.h asks Linux for them. "dotprod" and the like have other names there.
ARM_FEATURES = {
    "__ARM_FEATURE_ATOMICS": "atomics", "__ARM_FEATURE_FP16_VECTOR_ARITHMETIC": "asimdhp",
    "__ARM_FEATURE_QRDMX": "asimdrdm", "__ARM_FEATURE_JCVT": "jscvt", "__ARM_FEATURE_COMPLEX": "fcma",
    "__ARM_FEATURE_DOTPROD": "asimddp", "__ARM_FEATURE_SVE": "sve", "__ARM_FEATURE_FP16_FML": "asimdfhm",
    "__ARM_FEATURE_SVE2": "sve2", "__ARM_FEATURE_FRINT": "frint", "__ARM_FEATURE_MATMUL_INT8": "i8mm",
    "__ARM_FEATURE_BF16_VECTOR_ARITHMETIC": "bf16", "__ARM_FEATURE_MOPS": "mops",
}  # fmt: skip
# The language of wrappers and of their precompiled headers, which must agree.
PLAIN = "-std=c++14"


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
    records = re.sub(r"//[^\n]*", "", _structs(wing_of(header)))
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
    """
    extents_of, null, alignments, elements, indices = {}, set(), {}, {}, {}
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
            alignments, elements = {}, {}


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
        names = re.findall(r"^\} (\w+);", _structs(wing), re.M)
        if re.search(rf"\b({'|'.join(names)})\b", text):
            return wing
    return ""


def _structs(wing: str) -> str:
    """The declarations of a wing's structs."""
    return edge.path_of(ROOT, edge.structs()[wing].header).read_text() if wing else ""


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


def wrapper_source(header: Path, functions: dict, own_wrapper: Path | None) -> tuple[str, str]:
    """The C++ text for cffi to compile, and the declarations that it exports. These have addresses for pointers."""
    lines, exported = [], []
    for function, declared in functions.items():
        returns, parameters = declared["returns"], declared["parameters"]
        wrapper_parameters = ", ".join(f"{'uintptr_t' if t.endswith('*') else t} {n}" for t, n in parameters)
        arguments = ", ".join(f"reinterpret_cast<{t}>({n})" if t.endswith("*") else n for t, n in parameters)
        exported.append(f"{returns} {function}_ffi({wrapper_parameters or 'void'});")
        lines.append(f"static {returns} {function}_ffi({wrapper_parameters}) {{")
        if returns == "int":
            lines.append(f"  return caffe_guard([&] {{ return {function}({arguments}); }});\n}}")
        else:  # returns a number; -1 means an error
            lines.append(f"  {returns} number = -1;")
            lines.append(
                f"  caffe_guard([&] {{ return number = {function}({arguments}), 0; }});\n  return number;\n}}"
            )
    if own_wrapper:
        lines = [f'#include "{own_wrapper}"']
    lines += runner_source(functions)
    exported.append("uintptr_t caffe_runner(const char *name);")
    exported.append("uintptr_t caffe_set_num_threads_address(void);")
    signatures = json.dumps(json.dumps(functions))
    lines.append(f"static const char *caffe_signatures(void) {{ return {signatures}; }}")
    exported.append("const char *caffe_signatures(void);")
    wing = wing_of(header)
    records = f'#include "{edge.path_of(ROOT, edge.structs()[wing].header)}"\n' if wing else ""
    return f'extern "C" {{\n{records}#include "{header}"\n}}\n' + "\n".join(lines) + "\n", "\n".join(exported)


def runner_source(functions: dict) -> list[str]:
    """C++ lines: for each function a variant with an array of words (src/edge/ffi_run.h)."""
    lines, runners = [], []
    for function, declared in functions.items():
        types = ("uintptr_t" if kind.endswith("*") else kind for kind, _ in declared["parameters"])
        words = ", ".join(f"caffe::from_word<{kind}>(words[{i}])" for i, kind in enumerate(types))
        lines.append(
            f"static int64_t {function}_run(const int64_t *words) {{ return {function}_ffi({words}); }}"
        )
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
    """The processor features that code compiled with these flags may need, and that the compiler can test for."""
    command = [*cxx, *flags, "-dM", "-E", "-x", "c++", os.devnull]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    known = ARM_FEATURES if "#define __aarch64__ " in macros else CPU_FEATURES
    features: list[str] = [feature for macro, feature in known.items() if f"#define {macro} " in macros]
    if known is ARM_FEATURES or _can_be_asked(cxx, features):
        return features
    # If a compiler cannot test for a feature, it is older than the processors with this feature.
    return [feature for feature in features if _can_be_asked(cxx, [feature])]


def _can_be_asked(cxx: list[str], features: list[str]) -> bool:
    """Does the compiler's __builtin_cpu_supports know all these features?"""
    condition = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in features) or "0"
    command = [*cxx, "-fsyntax-only", "-x", "c++", "-"]
    program = f"int main() {{ return {condition}; }}"
    return subprocess.run(command, input=program, capture_output=True, text=True).returncode == 0


def build(header, output, target, cxx, flags, info, std) -> None:
    """Write the wrapper of a header's functions and compile it into the object `output`."""
    functions = parse_declarations(header)
    own_wrapper = header.with_name(header.stem + "_ffi.cpp")
    source, exported = wrapper_source(header, functions, own_wrapper if own_wrapper.exists() else None)
    features = " ".join(f'X("{feature}")' for feature in cpu_features(cxx, flags))
    wing = wing_of(header)
    preamble = (
        f'#define CAFFE_EDGE "{edge.digests(ROOT, wing)}"\n#define CAFFE_BUILD_INFO {json.dumps(info)}\n'
    )
    preamble += f"#define CAFFE_CPU_FEATURES(X) {features}\n"
    preamble += '#include "ffi_guard.h"\n#include "ffi_run.h"\n'
    ffi = FFI()
    ffi.cdef(ABI.read_text() + _structs(wing) + exported)
    module = output.name.split(".")[0]
    ffi.set_source(module, preamble + source, source_extension=".cpp", py_limited_api=True)
    generated = output.parent / f"{module}.cpp"
    ffi.emit_c_code(str(generated))
    # Python.h includes <math.h>. In C++17 it is two thirds of the code that is compiled here, so C++14 is faster. Only
    # code written by hand may need C++17.
    if own_wrapper.exists():
        compile_into(output, target, [*cxx, "-std=c++17", str(generated)])
    else:
        compile_into(output, target, [*cxx, PLAIN, *(["-include", str(std)] if std else []), str(generated)])


def precompile(header: Path, output: Path, target: str, cxx: list[str]) -> None:
    """Precompile headers beside a copy of themselves, which is what the compiler is told to include."""
    shutil.copyfile(header, output.with_suffix(""))
    compile_into(output, target, [*cxx, PLAIN, "-x", "c++-header", str(header)])


def compile_into(output: Path, target: str, command: list[str]) -> None:
    """Run the compiler. The output gets its name when it is complete, so a killed build leaves no half of it.

    A depfile beside it says what it was made from. `target`: make's name of the output.
    """
    includes = [f"-I{ROOT / folder}" for folder in ("include", "src/edge")] + python_includes()
    partial = output.with_name(output.name + ".partial")
    own = [PYTHON_ABI, "-fPIC", "-fvisibility=hidden", *includes]
    own += ["-MD", "-MP", "-MT", target, "-MF", f"{output}.d"]
    subprocess.run([*command, *own, "-c", "-o", str(partial)], check=True)
    os.replace(partial, output)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("header", type=Path, help="the layer's declarations, or headers to precompile")
    parser.add_argument("output", type=Path, help="the object to write; the extension is called as it is")
    parser.add_argument("--cxx", default="g++", help="the C++ compiler, with options for the wrapper")
    parser.add_argument("--flags", default="", help="the options that the kernels were compiled with")
    parser.add_argument("--info", default="", help="the text of caffe_build_info()")
    parser.add_argument("--std", type=Path, help="the precompiled headers, without .gch")
    arguments = parser.parse_args()
    cxx, flags = shlex.split(arguments.cxx), shlex.split(arguments.flags)
    paths = {name: getattr(arguments, name).resolve() for name in ("header", "output")}
    target = str(arguments.output)
    try:
        if arguments.output.suffix == ".gch":
            precompile(**paths, target=target, cxx=cxx)
        else:
            std = arguments.std and arguments.std.resolve()
            build(**paths, target=target, cxx=cxx, flags=flags, info=arguments.info, std=std)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # the compiler has printed the reason
    return 0


if __name__ == "__main__":
    sys.exit(main())
