"""The step that follows a compiler's error, by the words of the compilers that are here."""

import subprocess

import pytest
from support.compiler import of_name

from cuffi.loading.advice import advice

WRONG = [
    ("void f(int n) { static float s[n]; s[0] = 0; }", "extern __shared__"),
    ("void f(const float* out, int i) { out[i] = 1; }", "leave out const"),
    ("void f(const int* out) { ++*out; }", "leave out const"),
    ("struct uint3 { unsigned x, y, z; }; int f(uint3 blockIdx) { return blockIdx.X; }", "in small letters"),
    ('#include "scale_utils.h"', "put scale_utils.h beside"),
    (
        "struct M { template <class F> void def(const char*, F); };\n"
        'void f(M& m) { m.def("scale", &scale_forward); }',
        "is scale_forward spelt",
    ),
    ("namespace torch { struct Tensor; } void f() { torch::nn::Linear l(3, 4); }", "front end"),
]


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(("text", "step"), WRONG, ids=[step for _, step in WRONG])
def test_the_step_follows_the_error(compiler, text, step, tmp_path):
    (tmp_path / "a.cpp").write_text(text)  # of a file the line with the error is shown
    command = [of_name(compiler), "-fsyntax-only", "-std=c++17", str(tmp_path / "a.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode, done.stderr
    said = advice(done.stderr)
    assert said.count("\nwhat to do: ") == 1 and step in said, done.stderr + said


@pytest.mark.parametrize(
    "output", ["", "a.cu:1:2: error: 'x' was not declared in this scope", "the name error of read-write"]
)
def test_other_errors_have_no_line(output):
    assert advice(output) == ""
