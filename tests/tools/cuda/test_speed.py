"""Reading is linear in a file's length, and ends."""

import time

import pytest

from tools.cuda import analysis
from tools.cuda import source as sources
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter
from tools.files import read

FUNCTION = """
struct Box{k} {{ int a; float b; __device__ int get(float v) const {{ return v; }} }};
__device__ float helper{k}(float x, int n) {{
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x * (1 << i % 8) + helper{before}(x, 0);
  return sum;
}}
__global__ void kernel{k}(const float* x, float* y, int n) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{
    Box{k} box = {{1, 2.f}};
    y[i] = helper{k}(x[i], box.get(x[i])) + (int)x[i];
  }}
}}
"""


def seconds(count: int) -> float:
    """The processor's time to rewrite a file with that many kernels."""
    text = "__device__ float helper(float x, int n) { return x; }\n"
    text += "".join(FUNCTION.format(k=k, before="") for k in range(count))
    before = time.process_time()
    texts, problems, _ = rewrite_unit(Unit(text, "x.cu"), HostRewriter, "x", "")
    assert not problems and texts[""].count("cuda_host::run") == count
    return time.process_time() - before


def test_twice_the_text_takes_about_twice_the_time():
    """Of what grows with the square it would be four times."""
    seconds(10)
    least = [min(seconds(count) for _ in range(2)) for count in (60, 240)]
    assert least[1] < 9 * least[0], least


class Looked(dict):
    """The classes of a file. It counts how often one is looked at by its name, and how often all are."""

    count = 0

    def get(self, name, default=None):
        self.count += 1
        return super().get(name, default)

    def items(self):
        self.count += 1
        return super().items()


def test_the_members_of_a_class_are_read_for_its_constructors_alone():
    """Not for each of its functions: of CuTe's headers, whose classes are long, that took half of the time."""
    functions = "".join(
        f"  __device__ int get{k}(float v) const {{ return a{k} + v; }} int a{k};\n" for k in range(300)
    )
    text = f"struct Box {{ __device__ Box(float v) : a0(v) {{}}\n{functions}}};\n__global__ void k(float* y) {{}}\n"
    unit = Unit(text, "x.cu")
    unit.main.classes = Looked(unit.main.classes)
    assert "decltype(a0)" in HostRewriter(unit, unit.main).rewritten()
    assert unit.main.classes.count == 3


class Counted:
    """A regular expression that counts the letters that it reads."""

    def __init__(self, pattern):
        self.pattern, self.letters = pattern, 0

    def findall(self, text: str) -> list[str]:
        self.letters += len(text)
        return self.pattern.findall(text)


def test_each_header_is_searched_once_for_constants(tmp_path, monkeypatch):
    """Not once for each other header: of 150 headers with 13 MB that had no end."""
    names = [f"h{k}.cuh" for k in range(20)]
    for name in names:
        (tmp_path / name).write_text(f"extern __constant__ float c_{name[:-4]}[4];\n")
    (tmp_path / "x.cu").write_text("".join(f'#include "{name}"\n' for name in names))
    counted = Counted(analysis.EXTERN_CONSTANT)
    monkeypatch.setattr(analysis, "EXTERN_CONSTANT", counted)
    path = str(tmp_path / "x.cu")
    unit = Unit(read(path), path)
    rewrite_unit(unit, HostRewriter, "x", "")
    assert {"c_h0", "c_h19"} <= unit.extern_constants
    assert counted.letters <= sum(len(source.text) for source in unit.sources)


def test_reading_ends(tmp_path, monkeypatch):
    """With the file's name and the reason, however many headers there are."""
    for k in range(30):
        (tmp_path / f"h{k}.cuh").write_text(
            f'#pragma once\n#include "h{k + 1}.cuh"\ninline int f{k}() {{ return 1; }}\n'
        )
    (tmp_path / "x.cu").write_text('#include "h0.cuh"\n__global__ void k() {}\n')
    path = str(tmp_path / "x.cu")
    assert len(Unit(read(path), path).headers) == 30
    monkeypatch.setattr(sources, "MOST_SECONDS", -1.0)
    with pytest.raises(
        OSError, match="headers are not read after -1 s; include less, or build for CUDA only"
    ):
        Unit(read(path), path)
