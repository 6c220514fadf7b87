"""Turn one layer's C declarations and its static archive into one Python extension.

    python build_ffi.py layers/round/round.h build/round/host/libround.a layers/round/_host.abi3.so \\
        --cxx "g++ -O2" --flags "-march=native" --link "-pthread"

The extension speaks CPython's stable ABI only, so the same file loads under every Python from 3.10 on
and, since nothing of torch is in it, under every torch. Tensors arrive as addresses (`uintptr_t`): a
call costs 0.12 us that way, against 0.4 us with `ffi.cast`. Beside them each function is there as a builtin that
takes torch's tensors themselves (src/ffi_call.h).

Caffe layers all have the same declarations. For them the output is named _host.o: the wrapper alone, compiled once and
linked to each (tools/caffe_link.py).
"""

import argparse
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

ROOT = Path(__file__).resolve().parent
ABI = ROOT / "include" / "caffe_ffi.h"
# What the cpu must have, by the macro that the compiler defines for it.
CPU_FEATURES = {"__AVX2__": "avx2", "__FMA__": "fma", "__AVX512F__": "avx512f", "__AVX512VL__": "avx512vl",
                "__AVX512BW__": "avx512bw", "__AVX512DQ__": "avx512dq", "__SSE4_2__": "sse4.2"}  # fmt: skip
# Python 3.10's stable ABI: the first that calls builtins without making a tuple of their arguments.
PYTHON_ABI = "-DPy_LIMITED_API=0x030A0000"
# What src/ffi_call.h converts, a pointer's target or a number.
CONVERTED = {"void", "float", "double", "int", "bool",
             *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))}  # fmt: skip


class BuildError(Exception):
    """Something the layer's author has to mend; its text is the whole message."""


def parse_declarations(header: Path) -> dict[str, dict]:
    """The functions a header declares: {name: {"returns": type, "parameters": [(type, name), ...]}}."""
    text = header.read_text()
    if directive := re.search(r"^\s*#\s*\w+", text, re.M):
        line = text[: directive.end()].count("\n") + 1
        raise BuildError(
            f"{header}:{line}: error: bare declarations only, no preprocessor lines: cffi reads this file"
        )
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    sized = "".join(f"typedef long {sign}int{bits}_t;" for sign in ("", "u") for bits in (8, 16, 32, 64))
    try:
        tree = c_parser.CParser().parse(sized + "typedef int bool;\n#line 1\n" + text, str(header))
    except Exception as error:  # pycparser has one error class per version
        raise BuildError(f"{header}: error: not a list of C declarations: {error}") from None
    functions = {}
    for node in tree.ext:
        if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.FuncDecl):
            returned = node.type.type
            if not isinstance(returned, c_ast.TypeDecl) or returned.type.names not in (["int"], ["int64_t"]):
                raise BuildError(
                    f"{header}:{node.coord.line}: error: {node.name} must return int (a status) or int64_t (a number)"
                )
            parameters = (node.type.args or c_ast.ParamList([])).params
            functions[node.name] = {
                "returns": returned.type.names[0],
                "parameters": [_parameter(header, node.name, parameter) for parameter in parameters],
            }
    if not functions:
        raise BuildError(f"{header}: error: declares no function")
    return functions


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
    lines += call_source(functions)
    exported.append("uintptr_t caffe_bind_address(void);")
    signatures = json.dumps(json.dumps(functions))
    lines.append(f"static const char *caffe_signatures(void) {{ return {signatures}; }}")
    exported.append("const char *caffe_signatures(void);")
    return f'extern "C" {{\n#include "{header}"\n}}\n' + "\n".join(lines) + "\n", "\n".join(exported)


def call_source(functions: dict) -> list[str]:
    """The functions as Python builtins (src/ffi_call.h), as far as it converts their parameters."""
    lines, methods = [], []
    filled_in = {
        ("int", "dtype"): "call.dtype",
        ("void *", "stream"): "reinterpret_cast<uintptr_t>(call.stream)",
    }
    for function, declared in functions.items():
        taken = [parameter for parameter in declared["parameters"] if parameter not in filled_in]
        types = {kind.removeprefix("const ").removesuffix(" *") for kind, _ in taken}
        dtype_unknown = "void" not in types and ("int", "dtype") in declared["parameters"]
        if declared["returns"] != "int" or dtype_unknown or not types <= CONVERTED:
            continue
        lines.append(
            f"static PyObject *{function}_call(PyObject *self, PyObject *const *given, Py_ssize_t count) {{"
        )
        lines.append(f"  caffe::Call call(self, given, count, {len(taken)});")
        for kind, name in taken:
            take = f"tensor<{kind[:-2]}>" if kind.endswith(" *") else f"number<{kind}>"
            lines.append(f"  const auto a_{name} = call.{take}();")
        arguments = ", ".join(
            filled_in.get((kind, name), f"a_{name}") for kind, name in declared["parameters"]
        )
        lines.append(f"  return call.run([&] {{ return {function}_ffi({arguments}); }});\n}}")
        methods.append(f'  {{"{function}", caffe::builtin({function}_call), METH_FASTCALL, nullptr}},')
    lines += ["static PyMethodDef caffe_calls[] = {", *methods, "  {nullptr, nullptr, 0, nullptr}};"]
    lines.append("static PyObject *caffe_bind(PyObject *all) { return caffe::bind(caffe_calls, all); }")
    lines.append(
        "static uintptr_t caffe_bind_address(void) { return reinterpret_cast<uintptr_t>(caffe_bind); }"
    )
    return lines


def check_defined(header: Path, functions: dict, archive: Path) -> None:
    """A declaration nobody defines would only show up when Python loads the library: say it now."""
    listing = subprocess.run(["nm", "--defined-only", str(archive)], capture_output=True, text=True).stdout
    defined = {
        fields[-1] for line in listing.splitlines() if len(fields := line.split()) == 3 and fields[1] in "TW"
    }
    if missing := sorted(set(functions) - defined):
        raise BuildError(
            f'{header}: error: declared here but defined nowhere as `extern "C"`: {", ".join(missing)}'
        )


def cpu_features(cxx: list[str], flags: list[str]) -> list[str]:
    command = [*cxx, *flags, "-dM", "-E", "-x", "c++", os.devnull]
    macros = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [feature for macro, feature in CPU_FEATURES.items() if f"#define {macro} " in macros]


def build(header, archive, output, cxx, flags, link, info, keep) -> None:
    functions = parse_declarations(header)
    check_defined(header, functions, archive)
    own_wrapper = header.with_name(header.stem + "_ffi.cpp")
    source, exported = wrapper_source(header, functions, own_wrapper if own_wrapper.exists() else None)
    features = " ".join(f'X("{feature}")' for feature in cpu_features(cxx, flags))
    preamble = f"#define CAFFE_BUILD_INFO {json.dumps(info)}\n#define CAFFE_CPU_FEATURES(X) {features}\n"
    preamble += '#include "ffi_call.h"\n'
    ffi = FFI()
    ffi.cdef(ABI.read_text() + exported)
    module = output.name.split(".")[0]
    ffi.set_source(module, preamble + source, source_extension=".cpp", py_limited_api=True)
    generated = keep / f"{module}.cpp"
    ffi.emit_c_code(str(generated))
    includes = [f"-I{ROOT / folder}" for folder in ("include", "src")] + python_includes()
    partial = output.with_name(
        output.name + ".partial"
    )  # renamed when whole: a killed build leaves no broken library
    whole = ["-shared", str(archive), "-Wl,--exclude-libs,ALL", *link]
    subprocess.run(
        [*cxx, "-std=c++17", PYTHON_ABI, "-fPIC", "-fvisibility=hidden", *includes, str(generated),
         *(["-c"] if output.suffix == ".o" else whole), "-o", str(partial)], check=True)  # fmt: skip
    os.replace(partial, output)


def python_includes() -> list[str]:
    return [f"-I{sysconfig.get_path(kind)}" for kind in ("include", "platinclude")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("header", type=Path, help="the layer's declarations")
    parser.add_argument("archive", type=Path, help="its compiled kernels")
    parser.add_argument("output", type=Path, help="the extension to write, or the wrapper's object")
    parser.add_argument("--cxx", default="g++", help="the C++ compiler, with options for the wrapper")
    parser.add_argument("--flags", default="", help="the options that the kernels were compiled with")
    parser.add_argument("--link", default="", help="what to link besides the archive")
    parser.add_argument("--info", default="", help="the text of caffe_build_info()")
    arguments = parser.parse_args()
    split = {name: shlex.split(getattr(arguments, name)) for name in ("cxx", "flags", "link")}
    paths = {name: getattr(arguments, name).resolve() for name in ("header", "archive", "output")}
    try:
        build(**paths, **split, info=arguments.info, keep=paths["archive"].parent)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # the compiler has said why
    return 0


if __name__ == "__main__":
    sys.exit(main())
