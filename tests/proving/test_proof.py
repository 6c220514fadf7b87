"""Kernels that are proved, and the same with one mistake, which must never be."""

from pathlib import Path

import pytest

from cuffi.proving.proof import Proof, proofs

INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"
SAXPY = f"""// size: x n, y n
__global__ void k(int n, float a, const float* x, float* y) {{
  {INDEX}
  if (i < n) y[i] = a * x[i] + y[i];
}}
"""
STRIDE = """// size: x n, y n
__global__ void k(int n, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = 2 * x[i];
}
"""
TURNED = """#define TILE 32
// requires: blockDim.x == TILE, blockDim.y == 8, w > 0, h > 0
// size: in w*h, out w*h
__global__ void k(const float* in, float* out, int w, int h) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += 8) if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x; y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += 8) if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""
HALVED = f"""// requires: blockDim.x <= 256
// size: x n, out gridDim.x
__global__ void k(const float* x, float* out, int n) {{
  __shared__ float s[256];
  int t = threadIdx.x;
  {INDEX}
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }}
  if (t == 0) out[blockIdx.x] = s[0];
}}
"""
RIGHT = {"saxpy": SAXPY, "stride": STRIDE, "turned": TURNED, "halved": HALVED}
WRONG = [
    ("saxpy", "if (i < n)", ""),
    ("saxpy", "i < n", "i <= n"),
    ("saxpy", "y[i] = a", "y[i / 2] = a"),
    ("saxpy", "y[i] = a", "y[(unsigned char)i] = a"),
    ("stride", "i += blockDim.x * gridDim.x", "i += gridDim.x"),
    ("turned", "__syncthreads();", ""),
    ("turned", "(y + j) * h + x", "(y + j) * w + x"),
    ("turned", "TILE + 1]", "TILE - 1]"),
    ("halved", "s[t + k];\n    __syncthreads();", "s[t + k];"),
    (
        "halved",
        "if (t < k) s[t] += s[t + k];\n    __syncthreads();",
        "if (t < k) { s[t] += s[t + k]; __syncthreads(); }",
    ),
    ("halved", "if (t < k)", ""),
]


def proof_of(text: str, folder: Path, promises=None, is_searching=False) -> Proof:
    file = folder / "k.cu"
    file.write_text(text)
    return proofs(file, promises=promises, is_searching=is_searching)[-1]


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_are_proved(name, tmp_path):
    proof = proof_of(RIGHT[name], tmp_path)
    assert proof.is_proved, (proof.reasons, proof.counterexamples)
    assert "race" in proof.asked and any("overflow" in one for one in proof.assumed)


@pytest.mark.parametrize("name, old, new", WRONG)
def test_wrong_kernels_are_not(name, old, new, tmp_path):
    assert old in RIGHT[name]
    assert not proof_of(RIGHT[name].replace(old, new), tmp_path).is_proved


def test_a_counterexample_has_the_numbers(tmp_path):
    proof = proof_of(SAXPY.replace("i < n", "i <= n"), tmp_path, is_searching=True)
    first = proof.counterexamples[0]
    assert first.kind == "bounds" and str(first.line).endswith("k.cu:4")
    model = first.model
    at = model["blockIdx.x"] * model["blockDim.x"] + model["threadIdx.x"]
    assert at == model["n"] and proof.numbers == {"n"}


def test_without_sizes_bounds_are_not_asked(tmp_path):
    proof = proof_of(SAXPY.partition("\n")[2], tmp_path)
    assert proof.is_proved and "bounds of x, y" in proof.not_asked[0] and proof.asked == ["race"]


def test_promises_of_json(tmp_path):
    said = {"k": {"requires": ["n == 5"], "size": {"x": "n", "y": "n - 1"}}}
    assert not proof_of(SAXPY, tmp_path, said).is_proved


def test_promises_that_nothing_meets_prove_nothing(tmp_path):
    proof = proof_of("// requires: n > 3, n < 2\n" + SAXPY, tmp_path)
    assert not proof.is_proved and "promised" in proof.reasons[0][0]


@pytest.mark.parametrize(
    "text, why",
    [
        (f"__global__ void k(float* y) {{ {INDEX} other(y + i); }}", "other"),
        (f"__device__ int total;\n__global__ void k(float* y) {{ {INDEX} total = i; }}", "total"),
        (f"struct S {{ float* p; }};\n__global__ void k(S s) {{ {INDEX} s.p[i] = 1; }}", "structure"),
        (f"__global__ void k(float* y) {{ {INDEX} goto end; end: y[i] = 1; }}", "goto"),
        (f'#include "missing.h"\n__global__ void k(float* y) {{ {INDEX} y[i] = 1; }}', "missing.h"),
        (f"__global__ void k(float** y) {{ {INDEX} y[0][i] = 1; }}", "pointer"),
        ("void f();", "no kernel"),
        (SAXPY + "int main() { float* d; k<<<1, 1>>>(1, 1.f, d, d); }", "overlap"),
        (SAXPY + "int main() { float *d, *e; k<<<1, dim3(8, 8)>>>(1, 1.f, d, e); }", "blockDim.y"),
    ],
)
def test_what_is_not_followed_is_not_proved(text, why, tmp_path):
    proof = proof_of(text, tmp_path)
    assert not proof.is_proved and why in proof.reasons[0][0], proof.reasons
    assert proof.reasons[0][1].startswith(str(tmp_path / "k.cu:"))
