"""The asm statements of a file: what is replaced, what is an error of the file, and what is one when it runs."""

import re

import pytest

from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.to_host import HostRewriter

HOPPER = 'asm volatile("wgmma.fence.sync.aligned;");'
WHY = "inline PTX: the instruction wgmma.fence.sync.aligned"


def rewritten(tmp_path, text):
    (tmp_path / "x.cu").write_text(text)
    texts, problems, _ = cuda_rewrite.rewrite(str(tmp_path / "x.cu"), HostRewriter, "tool", "")
    return texts.get("", ""), problems


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k() {{ {} }}",
        "__device__ void f() {{ {} }}\n__global__ void k() {{ f(); }}",
        "struct S {{ __device__ void f() {{ {} }} }};\n__global__ void k() {{ S s; s.f(); }}",
        "struct S {{ __device__ void operator()() {{ {} }} }};\n__global__ void k() {{ S s; s(); }}",
        "template <class T> __device__ void f() {{ {} }}\n__device__ void g() {{ f<int>(); }}\n"
        "__global__ void k() {{ g(); }}",
    ],
)
def test_what_a_kernel_comes_to_is_an_error_of_the_file(tmp_path, text):
    _, problems = rewritten(tmp_path, text.format(HOPPER))
    assert [(p.line, p.text.split(";")[0]) for p in problems] == [(1, WHY)]


def test_what_no_kernel_comes_to_is_an_error_when_it_runs(tmp_path):
    text, problems = rewritten(tmp_path, f"\n__device__ void f() {{ {HOPPER} }}\n__global__ void k() {{}}")
    assert not problems and f'::cuda_host::refuse("x.cu:2: {WHY};' in text
    text, problems = rewritten(tmp_path, f"#define F {HOPPER}\n__global__ void k() {{}}")
    assert not problems and f'::cuda_host::refuse("x.cu:1: {WHY};' in text
    _, problems = rewritten(tmp_path, f"#define F {HOPPER}\n__global__ void k() {{ F }}")
    assert len(problems) == 1 and problems[0].line == 1


def test_a_method_that_a_macro_decides_about_is_an_error_when_it_runs(tmp_path):
    """Whose copy() a kernel calls is not known, and the compiler may leave this one out."""
    own = f"struct S {{ __device__ static void copy() {{ {HOPPER} }} }};"
    kernel = "\n__global__ void k() { T::copy(); }"
    text, problems = rewritten(tmp_path, f"#ifdef SETTING\n{own}\n#endif{kernel}")
    assert not problems and f'::cuda_host::refuse("x.cu:2: {WHY};' in text
    assert len(rewritten(tmp_path, own + kernel)[1]) == 1


def test_an_operand_that_a_macro_makes(tmp_path):
    macros = '#if defined(_WIN64) || defined(__LP64__)\n#define AT "l"\n#else\n#define AT "r"\n#endif\n'
    kernel = '__global__ void k(int* x) { int y; asm("ld.u32 %0, [%1];" : "=r"(y) : AT(x)); }\n'
    text, problems = rewritten(tmp_path, macros + kernel)
    assert not problems and "in<::cuda_ptx::u64>" in text.splitlines()[-1]


def test_lines_stay(tmp_path):
    body = 'asm("add.u32 %0,\\n"\n "%0, 1;"\n : "+r"(x[\n0]));'
    text, _ = rewritten(tmp_path, f"__global__ void k(int* x) {{ {body}\nint y; }}\n")
    after = text.split("#line 1 ", 1)[1].splitlines()[1:]
    assert after[4].startswith("int y;")


def test_expanded_macros(tmp_path):
    made = '#define ASK(op, to) asm(op ".u32 %0, %0, 1;" : "+r"(to))\n#define USE(f, to) f("add", to)\n'
    for use in ('ASK("add", x[0]);', "USE(ASK, x[0]);", 'if (x[1]) ASK("add", x[0]);'):
        text, problems = rewritten(tmp_path, made + f"__global__ void k(int* x) {{ {use} }}\n")
        kernel = text.splitlines()[-1]
        assert (
            not problems and re.search(r"auto& ptx_out0 = \(x ?\[ ?0 ?\]\)", kernel) and "asm" not in kernel
        )
    _, problems = rewritten(tmp_path, made + '__global__ void k(int* x) { ASK("frob", x[0]); }')
    assert [p.line for p in problems] == [3] and "frob.u32" in problems[0].text


def test_a_macro_that_makes_a_function(tmp_path):
    """Its use stands outside of functions."""
    define = "#define MADE(name, op) \\\n"
    define += '  __device__ int name(int a) { asm(op ".s32 %0, %0, 1;" : "+r"(a)); return a; }\n'
    kernel = "__global__ void k(int* a) { *a = more(*a); }"
    text, problems = rewritten(tmp_path, f'{define}MADE(more, "add")\n{kernel}')
    assert not problems and "asm" not in text.split("\n", 3)[2] and "cuda_ptx::" in text
    _, problems = rewritten(tmp_path, f'{define}MADE(more, "wrong")\n{kernel}')
    assert [(p.line, "the instruction wrong.s32" in p.text) for p in problems] == [(3, True)]


def test_the_processors_own_stays(tmp_path):
    text, problems = rewritten(tmp_path, 'void f() { asm volatile("pause"); }\n')
    assert not problems and 'asm volatile("pause")' in text
