"""What is known of any iteration, and where threads meet in one."""

from pathlib import Path

import pytest
from proving.test_proof import proof_of

SUM = """// requires: blockDim.x == 64
__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  LOOP
  if (t == 0) y[blockIdx.x] = s[0];
}
"""
RIGHT = [
    "for (int d = 32; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }",
    "for (unsigned d = 32; d > 0; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }",
    "int d = 32; while (d > 0) { if (t < d) s[t] += s[t + d]; __syncthreads(); d /= 2; }",
    "int d = 32; do { if (t < d) s[t] += s[t + d]; __syncthreads(); d /= 2; } while (d > 0);",
    "for (int d = 1; d < 64; d *= 2) { if (t % (2 * d) == 0 && t + d < 64) s[t] += 1; __syncthreads(); }",
    "for (int i = 0; i < n; ++i) { float v = s[63 - t]; __syncthreads(); s[t] = v; __syncthreads(); }",
    "for (int i = t; i < n; i += 64) { if (x[i] > 0) continue; s[t] += x[i]; } __syncthreads();",
    "for (int i = t; i < n; i += 64) { if (x[i] > 0) break; s[t] += x[i]; } __syncthreads();",
]
WRONG = [
    "for (int d = 32; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; }",
    "for (int d = 32; d > 0; d /= 2) { if (t <= d) s[t] += s[t + d]; __syncthreads(); }",
    "for (int d = 64; d > 0; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }",
    "for (int i = t; i < n; i += 64) { s[t] += 1; __syncthreads(); }",  # not all threads come so often
    "for (int i = 0; i < n; ++i) { __syncthreads(); if (t == i) break; }",
    "for (int i = 0; i < n; ++i) { if (x[i] > 0) __syncthreads(); s[t] += 1; }",
    "for (int i = 0; i < n; ++i) { float v = s[63 - t]; __syncthreads(); s[t] = v; }",  # the next one reads it
    "for (int i = 0; i < n; ++i) { if (i == 3) __syncthreads(); s[(t + i) % 64] = i; }",
    "unsigned d = 1; while (d) d <<= 1; s[d] = t; __syncthreads();",
    "int i = t; for (;;) { i += 2; if (x[i] > 0) break; i -= 1; } s[(i - t) % 64] = 1; __syncthreads();",
    "bool b = false; for (int i = 0; i < n; ++i) { if (b) __syncthreads(); b = x[t] > 0; }",
]  # fmt: skip


@pytest.mark.parametrize("loop", RIGHT)
def test_right(loop: str, tmp_path: Path):
    proof = proof_of(SUM.replace("LOOP", loop), tmp_path)
    assert proof.is_proved, (proof.reasons, proof.counterexamples)


@pytest.mark.parametrize("loop", WRONG)
def test_wrong(loop: str, tmp_path: Path):
    assert not proof_of(SUM.replace("LOOP", loop), tmp_path).is_proved
