"""Mistakes that are put into right kernels."""

import collections

import pytest

from lab.judge import mutants
from lab.judge.mutants import RIGHT, drawn, is_told, judged

SOURCES = {file.name: file.read_text() for file in sorted(RIGHT.glob("*.cu"))}
TEXT = """__global__ void k(int* x, int* y, int n) {
  __shared__ int s[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) s[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n && atomicAdd(&y[0], min(x[i], 2)) == 3) y[i] = __shfl_down_sync(0xffffffff, s[0], 1);
}
int main() {
  cudaMemset(y, 0, n);
}
"""


def made(kind: str) -> list[str]:
    return [
        one.name(TEXT).partition(f"{kind}: ")[2] for one in mutants.mutants("k.cu", TEXT) if one.kind == kind
    ]


def test_each_kind_changes_what_it_is_named_for():
    assert made("no barrier") == [";"]
    assert made("barrier in a condition") == ["if (threadIdx.x % 2) __syncthreads();"]
    assert made("block or axis forgotten") == ["int i = threadIdx.x;"]
    assert made("too small") == ["__shared__ int s[(64) / 2];"]
    assert made("not set") == [";"]
    assert "s[threadIdx.x] = x[i];" in made("no guard")
    (plain,) = made("no atomic")
    assert "i < n && (*(&y[0]) += min(x[i], 2)) - (min(x[i], 2)) == 3) y[i]" in plain
    assert any("0xffff," in line for line in made("another lane"))


def test_ten_kinds_twenty_of_each():
    counts = collections.Counter(one.kind for one in drawn(SOURCES, 200, 1, []))
    assert len(counts) == 10 and all(count >= 19 for count in counts.values())


def test_what_would_be_right_too_is_not_made():
    def changed(line: str) -> set[str]:
        text = f"__global__ void k() {{\n  {line}\n}}\nint main() {{}}\n"
        return {one.kind for one in mutants.mutants("k.cu", text)}

    assert "off by one" not in changed("for (int o = 1; o < n; o *= 2) ;")
    assert "off by one" in changed("for (int o = 1; o < n; ++o) ;")
    assert "another lane" in changed("v += __shfl_down_sync(0xffffffff, v, o);")
    masks = [one.text for one in mutants.mutants("k.cu", "v = __shfl_xor_sync(0xffffffff, v, o); int main()")]
    assert masks == ["0xffff"]


@pytest.mark.usefixtures("cache")
def test_a_right_program_and_its_mutant(tmp_path):
    (tmp_path / "program.h").write_text((RIGHT / "program.h").read_text())
    (wrong,) = [one for one in drawn(SOURCES, 10_000, 1, ["no guard"]) if one.path == "saxpy.cu"]
    files = {"right": RIGHT / "saxpy.cu", "wrong": tmp_path / "saxpy.cu"}
    files["wrong"].write_text(wrong.apply(SOURCES["saxpy.cu"]))
    said = judged([{"id": name, "files": [str(file)]} for name, file in files.items()], 1, 20)
    assert {name: is_told(one) for name, one in said.items()} == {"right": False, "wrong": True}
