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
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from cffi import FFI

from tools.make.backends import edge
from tools.make.declarations import BuildError, parse_declarations, structs_of, wing_of
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
    ffi.cdef(ABI.read_text() + structs_of(wing) + exported)
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
