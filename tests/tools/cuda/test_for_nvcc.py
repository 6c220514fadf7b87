"""The rewriter for nvcc: the loops that a file beside the source keeps, and the code of every architecture."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.for_nvcc import FOR_NVCC, NOTES, NvccRewriter, decided
from tools.cuda.rewrite import rewrite_files

LOOP = "{ CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; } }"


@pytest.mark.parametrize(("listed", "kept"), [("", []), ("one\n", ["one"]), ("*\n", ["one", "two"])])
def test_plain_loops(tmp_path, listed, kept):
    kernels = (
        f"__global__ void {name}(const int n, const float* x, float* y) {LOOP}\n" for name in ("one", "two")
    )
    (tmp_path / "x.cu").write_text("".join(kernels))
    (tmp_path / "plain_loops").write_text(listed)
    (tmp_path / "made").mkdir()
    arguments = [str(tmp_path / "x.cu"), str(tmp_path / "made" / "x.cu")]
    assert not rewrite_files("for_nvcc.py", NvccRewriter, arguments, "", NOTES)
    said = (tmp_path / "made" / "x.cu.loops").read_text().splitlines()
    assert [line.split()[1].rstrip(":") for line in said if "plain_loops says so" in line] == kept
    assert sum("vector loop" in line for line in said) == 2 - len(kept)


@pytest.mark.parametrize(
    "condition", ["#if __CUDA_ARCH__ >= 700", "#ifndef __CUDA_ARCH__\n#error\n#elif __CUDA_ARCH__ > 1"]
)
def test_every_branch_of_an_architecture_counts(condition):
    """A function that shuffles in one of them cannot be in a vector loop. It was, and lanes got others' values."""
    text = f"{condition}\n__device__ float mix(float x) {{ return __shfl_xor_sync(~0u, x, 1); }}\n#else\n"
    text += "__device__ float mix(float x) { return x; }\n#endif\n"
    text += "__global__ void k(const float* x, float* y, int n) { CUDA_KERNEL_LOOP(i, n) { y[i] = CALL(x[i]); } }\n"
    for call, is_plain in (("mix", True), ("sqrtf", False)):
        unit = Unit(text.replace("CALL", call), "k.cu", defined=FOR_NVCC)
        assert isinstance(next(iter(decided(unit).by_kernel.values())), str) is is_plain


def test_headers_of_every_architecture(tmp_path):
    (tmp_path / "old.cuh").write_text("// old\n")
    (tmp_path / "new.cuh").write_text("// new\n")
    text = '#if __CUDA_ARCH__ >= 750\n#include "new.cuh"\n#else\n#include "old.cuh"\n#endif\n'
    unit = Unit(text, str(tmp_path / "k.cu"), defined=FOR_NVCC)
    assert set(unit.headers) == {"new.cuh", "old.cuh"}
