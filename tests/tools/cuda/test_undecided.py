"""Files in which an #if opens a bracket that another one closes."""

import pytest
import torch

from cuffi import load_inline
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite
from tools.cuda.to_host import HostRewriter
from tools.cuda.undecided import answers_of

KERNEL = """
__global__ void deposit(int n, const int* where, float* field, int atomic) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
#ifdef ATOMIC
    if (!atomic) {
#endif
      field[where[i]] += 1.9f;
#ifdef ATOMIC
    } else {
      atomicAdd(&field[where[i]], 1.f);
    }
#endif
  }
}
__global__ void below(int* y) { y[threadIdx.x] = y[threadIdx.x] << y[1]; }
"""


@pytest.mark.parametrize("macros", [{}, {"ATOMIC": ""}])
def test_the_compiler_takes_the_branch(cache, macros):
    m = load_inline("deposit", KERNEL, backends="host", macros=macros)
    where = torch.arange(50, dtype=torch.int32)
    for atomic in (0, 1):
        field = torch.zeros(50)
        m.deposit(50, where, field, atomic, grid=2, block=32)
        assert torch.equal(field, torch.full((50,), 1.0 if macros and atomic else 1.9))
    y = torch.tensor([1, 40], dtype=torch.int32)
    m.below(y, grid=1, block=1)
    assert y.tolist() == [0, 40]  # rewritten: a GPU's shift


@pytest.mark.parametrize(
    ("before", "answers"),
    [
        ("", [{"ATOMIC": 1}, {"ATOMIC": 0}]),
        ("#define ATOMIC 1\n", [{"ATOMIC": 1}]),
        ("#ifdef OTHER\n#define ATOMIC\n#endif\n", []),  # an #if decides it
        ("#define ATOMIC\n#undef ATOMIC\n", []),
    ],
)
def test_what_the_file_itself_defines(before, answers):
    assert answers_of(Unit(before + KERNEL, "k.cu")) == answers


def test_what_it_defines_below_is_unclear():
    assert answers_of(Unit(KERNEL + "#define ATOMIC\n", "k.cu")) == []


def test_conditions_of_other_forms():
    text = KERNEL.replace("#ifdef ATOMIC", "#if defined(ATOMIC) && !defined PLAIN")
    assert len(answers_of(Unit(text, "k.cu"))) == 4
    assert answers_of(Unit(KERNEL.replace("#ifdef ATOMIC", "#if ATOMIC > 3"), "k.cu")) == []
    assert answers_of(Unit("__global__ void k(float* x) {\n#ifdef A\n*x = 1;\n#endif\n}\n", "k.cu")) == []


def test_a_macro_of_a_header_that_is_not_read_is_an_error(tmp_path):
    (tmp_path / "k.cu").write_text(KERNEL)
    texts, problems, _ = rewrite(str(tmp_path / "k.cu"), HostRewriter, "tool", "")
    assert not problems and texts[""].startswith("// Made by tool")
    first, second = texts[""].index("#if defined(ATOMIC)\n"), texts[""].index("#if !defined(ATOMIC)\n")
    assert (
        first < texts[""].index("#ifndef ATOMIC\n#error") < second < texts[""].rindex("#ifdef ATOMIC\n#error")
    )


def test_brackets_that_never_match_are_refused(tmp_path):
    (tmp_path / "k.cu").write_text(KERNEL.replace("    } else {", "    else {"))
    assert rewrite(str(tmp_path / "k.cu"), HostRewriter, "tool", "")[1]
