"""The rewriter for the host: what it refuses, and which branches it reads."""

import re

import pytest
from support.rewriting import CASES, rewrite
from support.typed import not_none

from tools.cuda import lexer as cuda_lexer
from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.to_host import HostRewriter
from tools.files import read

REFUSED = sorted(p.stem for p in CASES.glob("refuse_*.cu"))


@pytest.mark.parametrize("case", REFUSED)
def test_refusal(case, in_cases):
    line, words = not_none(re.match(r"// error: (\d+): (.*)", read(f"{case}.cu"))).groups()
    texts, problems, _ = rewrite(f"{case}.cu")
    assert len(problems) == 1, f"one problem expected, got: {problems}"
    assert problems[0].line == int(line)
    assert words in problems[0].text
    assert "" not in texts or case == "refuse_header"


def test_a_project_has_a_header_of_its_own_in_a_folder_named_cuda(tmp_path):
    (tmp_path / "src" / "cuda").mkdir(parents=True)
    (tmp_path / "src" / "cuda" / "utils.h").write_text("#define SIZE 3\n")
    (tmp_path / "x.cu").write_text("#include <cuda/utils.h>\n__global__ void k(int* x) { x[0] = SIZE; }\n")

    def problems(find):
        where = str(tmp_path / "x.cu"), HostRewriter, "tool", "", str(tmp_path), find
        return cuda_rewrite.rewrite(*where)[1]

    assert not problems({"cuda/utils.h": "src/cuda/utils.h"}.get)
    assert "the host has no <cuda/utils.h>" in problems(None)[0].text


def test_what_the_race_finder_watches(tmp_path):
    """Copies in kernels and in macros, but not the host's, nor an object's own functions."""
    texts = (
        "#define MOVE(a, b) memmove (a, b, 4)",
        "{inline} void f(T t, int* a, int* b) {{ {std}(a, b, 4); t.memcpy(a); {set}(a, 0, 4); g(memset); }}",
        "void h(int* a, int* b) {{ memcpy(a, b, 4); }}",
    )
    given = {"inline": "__device__", "std": "std::memcpy", "set": "memset"}
    (tmp_path / "x.cu").write_text("\n".join(texts).format(**given) + "\n")

    class Watched(HostRewriter):
        watched = True

    def lines(rewriter):
        return cuda_rewrite.rewrite(str(tmp_path / "x.cu"), rewriter, "tool", "")[0][""]

    copy, inline = "::cuda_host::memcpy_watched", "__device__ __attribute__((always_inline))"
    wanted = "\n".join(texts).format(inline=inline, std=copy, set="::cuda_host::memset_watched")
    assert wanted.replace("memmove", copy) in lines(Watched)
    assert "_watched" not in lines(HostRewriter)


@pytest.mark.parametrize(
    "condition, live",
    [
        ("ifdef __CUDA_ARCH__", "a"),
        ("ifndef __CUDACC__", "b"),
        ("ifdef CPU_ONLY", "ab"),
        ("ifdef __cplusplus", "a"),
        ("if !defined(__cplusplus)", "b"),
        ("if 0", "b"),
        ("if 1", "a"),
        ("if defined(__CUDA_ARCH__)", "a"),
        ("if defined __CUDACC__ && CUDA_VERSION >= 9000", "ab"),
        ("if CUDA_VERSION >= 9000 || !defined(__CUDACC__)", "ab"),
        ("if CUDART_VERSION >= 9000", "a"),
        ("if __CUDACC_VER_MAJOR__ < 9", "b"),
        ("ifdef CUDART_VERSION", "a"),
        ("ifdef CAFFE_HOST_BACKEND", "a"),
        ("if __CUDA_ARCH__ >= 700", "a"),
        ("if __CUDA_ARCH__ > 900", "b"),
        ("if (__CUDA_ARCH__) < 200", "b"),
        ("if __CUDA_ARCH__ >= 300 && !defined(__CUDA_ARCH__) && !defined __CUDA_ARCH__", "b"),
        ("if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 600)", "a"),
        ("if __has_include(<x.h>)", "ab"),
        ("if X(1) == 2", "ab"),
        ("if (", "ab"),
        # X stands for what nobody knows here.
        ("if 0 || 0", "b"),
        ("if 0 || X", "ab"),
        ("if X || 0", "ab"),
        ("if X || 1", "a"),
        ("if X || X", "ab"),
        ("if 1 && 2", "a"),
        ("if 1 && X", "ab"),
        ("if X && 0", "b"),
        ("if X && X", "ab"),
        ("if !X", "ab"),
        ("if !0 && !(1 == 2)", "a"),
        ("if 1 || 0 && 0", "a"),
        ("if 1 == 2 || 3 != 3", "b"),
        ("if 2 < 2 || 3 > 3", "b"),
        ("if 2 <= 2 && 3 >= 3", "a"),
        ("if 1 < 2 == 1", "a"),
        ("if X == 0", "ab"),
        ("if 0 == X", "ab"),
        ("if 0x10 == 16UL", "a"),
        ("if 1 1", "ab"),
        ("if (1", "ab"),
        ("if", "ab"),
        ("ifdef", "ab"),
        ("ifndef X", "ab"),
        ("if defined(__CUDACC__) == 0", "b"),
    ],
)
def test_branches_that_the_host_sees(condition, live):
    lexed = cuda_lexer.Lexed(f"#{condition}\na\n#else\nb\n#endif\n")
    assert "".join(token.text for token in lexed.tokens) == live


def test_a_pragma_in_a_macro(tmp_path):
    """nvcc's compiler sees it behind the preprocessor. g++ would say: stray '#'."""
    text = "#define UNROLL #pragma unroll\n#define FEW #pragma \\\n  unroll 4\n#define TEXT(pragma) #pragma\n"
    text += "__global__ void k(float* y) {\n  UNROLL\n  for (int i = 0; i < 4; ++i) y[i] = i;\n}\n"
    (tmp_path / "x.cu").write_text(text)
    texts, problems, _ = rewrite(str(tmp_path / "x.cu"))
    lines = texts[""].partition("#line 1")[2].splitlines()
    assert not problems and lines[1:5] == [
        '#define UNROLL _Pragma("unroll")', '#define FEW _Pragma("unroll 4")\\', "", "#define TEXT(pragma) #pragma"
    ]  # fmt: skip


def test_a_kernel_by_a_macro_is_refused_where_it_is_used(tmp_path):
    """CUTLASS's headers define such a macro; most files use it not. By ## it is an error of the compiler's."""
    header = tmp_path / "words.cuh"
    header.write_text("#pragma once\n#define GLOBAL __global__ static\n")
    for kernel, refused in (
        ("__global__ void k(float* y) { *y = 1; }", False),
        ("GLOBAL void k(float* y) {}", True),
    ):
        (tmp_path / "x.cu").write_text(f'#include "words.cuh"\n{kernel}\n')
        texts, problems, _ = rewrite(str(tmp_path / "x.cu"))
        assert [(p.path, p.line) for p in problems] == [(str(header), 2)] * refused
        assert refused or "#define GLOBAL __global___inside_a_macro static\n" in texts["words.cuh"]


@pytest.mark.parametrize("declared", ["", "template <class T> struct texture { T x; };"])
def test_a_texture_reference_and_a_class_of_that_name(tmp_path, declared):
    (tmp_path / "x.cu").write_text(
        f"{declared}\ntexture<float> t;\n__global__ void k(float* y) {{ *y = 1; }}\n"
    )
    texts, problems, _ = rewrite(str(tmp_path / "x.cu"))
    assert not problems and ("::cuda_host::texture<float> t;" in texts[""]) == (not declared)
