"""The rewriter for nvcc: the loops that a file beside the source keeps."""

import pytest

from tools.cuda import for_nvcc
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
    assert not rewrite_files(
        "for_nvcc.py", for_nvcc.NvccRewriter, arguments, for_nvcc.prologue, notes=".loops"
    )
    said = (tmp_path / "made" / "x.cu.loops").read_text().splitlines()
    assert [line.split()[1].rstrip(":") for line in said if "plain_loops says so" in line] == kept
    assert sum("vector loop" in line for line in said) == 2 - len(kept)
