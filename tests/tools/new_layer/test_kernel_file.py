"""The kernels of a file: what is compiled, compared with g++'s; the names that launchers may use."""

import re

import pytest
from support.compiler import preprocessed
from support.new_layer import derive
from support.typed import not_none

from tools.cuda.source import Source
from tools.new_layer.declared import declared_in, type_names
from tools.new_layer.kernel_file import kernels_of

CONDITIONS = (
    "#ifdef A", "#ifndef A", "#ifdef GONE", "#ifndef GONE", "#if defined(A)", "#if !defined(A)", "#if defined GONE",
    "#if !defined GONE", "#if 0", "#if 1",
)  # fmt: skip


def kept_by_the_compiler(text: str) -> set[str]:
    return set(re.findall(r"mark\d+", preprocessed(text)))


def kept(text: str) -> set[str]:
    return {not_none(re.search(r"mark\d+", one.text))[0] for one in declared_in(Source(text, "some.cu"))}


def test_branches_as_the_compiler_sees_them():
    """Each condition by itself, with #else and #elif, within another one, and after a macro of a dropped branch."""
    lines, marks = ["#define A"], iter(range(10_000))

    def mark():
        lines.append(f"int mark{next(marks)};")

    for outer in CONDITIONS:
        for inner in CONDITIONS:
            lines.append(outer)
            mark()
            lines.append(inner)
            mark()
            lines.append(f"#define FROM{len(lines)}")
            lines.append(f"#el{inner[1:] if inner.startswith('#if ') else 'if defined(A)'}")
            mark()
            lines.append("#else")
            mark()
            lines += ["#endif", "#elif defined(A)"]
            mark()
            lines.append("#else")
            mark()
            lines.append("#endif")
            mark()
    defined = [line.split()[1] for line in lines if line.startswith("#define FROM")]
    for name in defined[:40]:
        lines.append(f"#ifdef {name}")
        mark()
        lines.append("#endif")
    text = "\n".join(lines) + "\n"
    assert kept(text) == kept_by_the_compiler(text)


@pytest.mark.parametrize(
    "text, names",
    [
        ("int x;\n", set()),
        ("struct A { float x; };\n", {"A"}),
        ("using B = float;\n", {"B"}),
        ("typedef float C;\n", {"C"}),
        ("typedef struct D { int x; } E;\n", {"D", "E"}),
        ("enum F { one };\n", {"F"}),
    ],
)
def test_types_that_a_declaration_defines(text, names):
    assert type_names(text.rstrip()) == names


def test_kernels_in_branches():
    text = (
        "#ifdef USE_CUDNN\n__global__ void sync(float* x) { }\n#endif\n"
        "#ifndef CPU_ONLY\nnamespace caffe {\n__global__ void k(float* x, int n) "
        "{ CUDA_KERNEL_LOOP(i, n) x[i] = 0; }\n}\n#endif\n"
        "#if 0\n__global__ void dead(float* x) {}\n#endif\n"
    )
    launchers, left_out = derive(text)
    assert set(launchers) == {"k"} and launchers["k"].callee == "caffe::k"
    assert left_out == {"sync": "is in a preprocessor branch that is not compiled"}


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ("#ifndef K_CU\n#define K_CU\n", ["x", "n"]),  # a guard, whose #endif is at the end
        ("#if !defined(K_CU)\n#define K_CU 1\n", ["x", "n"]),
        ("#define VALIDATE\n#ifndef K_CU\n", ["check", "x", "n"]),
        ("#ifdef OTHER\n#define VALIDATE\n#endif\n#ifndef K_CU\n#define K_CU\n", ["x", "n"]),
    ],
)
def test_an_if_in_the_head_of_a_kernel(before, names):
    """What the file defines below its first #if decides nothing above: a guard hides no kernel."""
    head = "__global__ void k(\n#ifdef VALIDATE\n int* check,\n#endif\n float* x, int n)"
    text = f"{before}{head} {{ *x = n; }}\n#endif\n"
    for macros in ((), ("VALIDATE",)):
        file = kernels_of(text, "x.cu", macros=macros)
        expected = ["check", "x", "n"] if macros else names
        assert [p.name for kernel, *_ in file.kernels for p in kernel.parameters] == expected


def test_names_that_a_launch_may_use(tmp_path):
    """Those of the file and of the headers beside it, but no function that does more than compute numbers."""
    (tmp_path / "sizes.h").write_text("namespace a { constexpr int WIDE = 8; }\n#define ROWS 4\n")
    text = """#include "sizes.h"
enum Mode { PLAIN, FAST = 3 };
typedef float real;
inline int blocks_for(const int n) { return (n + 63) / 64; }
int devices() { int n; cudaGetDeviceCount(&n); return n; }
namespace { const int DEEP = 2; }
#if 0
const int NEVER = 1;
#endif
__global__ void run(const real* x) {}
"""
    file = kernels_of(text, str(tmp_path / "x.cu"))
    assert file.constants == {
        "ROWS": "ROWS", "WIDE": "a::WIDE", "PLAIN": "PLAIN", "FAST": "FAST", "DEEP": "DEEP", "blocks_for": "blocks_for"
    }  # fmt: skip
    assert (
        file.enums == {"Mode": ["PLAIN", "FAST"]} and file.aliases["real"] == "float" and "real" in file.types
    )


def test_a_macro_of_the_file_chooses_in_its_headers(tmp_path):
    (tmp_path / "common.h").write_text(
        "#ifndef COMMON\n#define COMMON\n#define HAS_COMMON\n"
        "#if defined(ENABLE_BF16)\ntypedef __nv_bfloat16 real;\n#else\ntypedef float real;\n#endif\n#endif\n"
    )
    text = '#include "common.h"\n#ifdef HAS_COMMON\n__global__ void run(const real* x) {}\n#endif\n'
    for macro, kind in (("", "float"), ("#define ENABLE_BF16\n", "__nv_bfloat16")):
        file = kernels_of(macro + text, str(tmp_path / "x.cu"))
        assert file.aliases["real"] == kind
        assert [kernel.parameters[0].type for kernel, *_ in file.kernels] == [f"const {kind}*"]
