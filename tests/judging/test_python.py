"""A Python file that builds CUDA: where its mistakes are said to be, and what its end says."""

import pytest

from cuffi.judge import judge
from cuffi.judging.findings import Finding
from cuffi.judging.limits import Limits, Ran
from cuffi.judging.python import Script

pytestmark = pytest.mark.usefixtures("cache")
CUDA = """
__global__ void total_kernel(int n, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[0] += x[i];
}
torch::Tensor total(torch::Tensor x) {
  auto y = torch::zeros({1}, x.options());
  const int n = x.numel();
  total_kernel<<<(n + 63) / 64, 64>>>(n, x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}"""
CANDIDATE = f'''import torch
from torch.utils.cpp_extension import load_inline

cuda = """{CUDA}"""
m = load_inline("totals", "torch::Tensor total(torch::Tensor x);", cuda, functions=["total"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return m.total(x)
'''
REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum().reshape(1) + 1


def get_inputs():
    return [torch.rand(100)]
"""


def test_a_race_in_a_string_and_a_different_result(tmp_path):
    candidate, reference = tmp_path / "candidate.py", tmp_path / "reference.py"
    candidate.write_text(CANDIDATE)
    reference.write_text(REFERENCE)
    said = judge([candidate], limits=Limits(60), reference=reference)
    assert [one["kind"] for one in said["findings"]] == ["race", "different-result"], said
    assert said["ran"] == ["total_kernel"] and said["status"] == 1
    line = CANDIDATE.splitlines().index("  if (i < n) y[0] += x[i];") + 1
    assert f"{candidate}:{line}: thread" in said["findings"][0]["text"]
    assert "1 of 1 elements differ" in said["findings"][1]["text"]


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "k.py"
    file.write_text(CANDIDATE)
    return Script([file], [], [], None)


def test_places_in_strings_become_places_in_the_file(script, tmp_path):
    copy = tmp_path / "copy.cu"
    copy.write_text(f"{CUDA}\n")  # as load_inline writes it
    line = CANDIDATE.splitlines().index("  if (i < n) y[0] += x[i];") + 1
    one = script.placed(Finding("race", f"{copy}:4: thread 0", f"{copy}:4"))
    assert (one.text, one.place) == (f"{script.file}:{line}: thread 0", f"{script.file}:{line}")
    other = tmp_path / "other.cu"
    other.write_text("int x;\n")
    assert script.placed(Finding("race", f"{other}:1", f"{other}:1")).place == f"{other}:1"


@pytest.mark.parametrize(
    "errors, kind, words",
    [
        (
            "totals does not build:\nk.cu:3:1: error: 'b' was not declared\n",
            "not-built",
            "'b' was not declared",
        ),
        ('  File "{file}", line 9, in f\nKeyError: 3\n', "wrong-status", "KeyError: 3"),
        ("", "wrong-status", "ended with status 1"),
        (
            "cuffi.base.CaffeRuntimeError: load: there is no 'g++': building\n",
            "not-built",
            "there is no 'g++'",
        ),
    ],
)
def test_how_a_file_ended(script, errors, kind, words):
    ran = Ran(1, "", errors.replace("{file}", str(script.file)))
    (one,) = script.findings(ran, 5) or script.result(ran)
    assert one.kind == kind and words in one.text
    assert one.place == (f"{script.file}:9" if "line 9" in errors else "")


def test_a_clean_end_says_nothing(script):
    assert script.findings(Ran(0, "1.5", ""), 5) == script.result(Ran(0, "1.5", "")) == []
