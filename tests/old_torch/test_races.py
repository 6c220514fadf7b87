"""The race finder names the lines of three races that published extensions have, in our own words."""

import subprocess
import sys

import pytest
import torch
from old_torch.conftest import builds
from support.workshop import ROOT

from cuffi.old_torch import cpp_extension

TEXT = """#include <torch/extension.h>
// Like furthest_point_sampling of PointNet++: a round reads its maximum, and no barrier stands before the next write.
__global__ void farthest(const float* x, int n, int rounds, float* nearest, int64_t* chosen) {
  __shared__ float best[32];
  __shared__ int at[32];
  int last = 0;
  for (int r = 1; r < rounds; ++r) {
    float most = -1;
    int where = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const float d = (x[i] - x[last]) * (x[i] - x[last]);
      nearest[i] = min(nearest[i], d);
      if (nearest[i] > most) most = nearest[i], where = i;
    }
    best[threadIdx.x] = most, at[threadIdx.x] = where;  // WRITE farthest
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half && best[threadIdx.x + half] > best[threadIdx.x])
        best[threadIdx.x] = best[threadIdx.x + half], at[threadIdx.x] = at[threadIdx.x + half];
      __syncthreads();
    }
    last = at[0];  // READ farthest
    BARRIER
    if (threadIdx.x == 0) chosen[r] = last;
  }
}
// Like tiny-flash-attention v2: a row's maximum so far is read by its threads while one of them writes it.
__global__ void attention(const float* scores, int tiles, float* out) {
  __shared__ float top[1];
  if (threadIdx.x == 0) top[0] = -INFINITY;
  __syncthreads();
  for (int t = 0; t < tiles; ++t) {
    const float before = top[0];  // READ attention
    BARRIER
    const float now = max(before, scores[t]);
    out[threadIdx.x] = out[threadIdx.x] * exp(before - now) + exp(scores[t] - now);
    if (threadIdx.x == 0) top[0] = now;  // WRITE attention
    BARRIER
  }
}
// Like LeetCUDA's nms: a box asks whether earlier ones are kept, which other threads decide.
__global__ void suppress(const float* x, int n, float width, int* keep) {
  const int i = threadIdx.x;
  if (i >= n) return;
  for (int j = 0; j < i; ++j)
    if (keep[j] && x[i] - x[j] < width) {  // READ suppress
      keep[i] = 0;
      return;
    }
  keep[i] = 1;  // WRITE suppress
}
torch::Tensor run_farthest(torch::Tensor x, int rounds) {
  auto nearest = torch::full_like(x, 1e10), chosen = torch::zeros({rounds}, x.options().dtype(torch::kLong));
  farthest<<<1, 32>>>(x.data_ptr<float>(), x.numel(), rounds, nearest.data_ptr<float>(), chosen.data_ptr<int64_t>());
  return chosen;
}
torch::Tensor run_attention(torch::Tensor x) {
  auto out = torch::zeros({16}, x.options());
  attention<<<1, 16>>>(x.data_ptr<float>(), x.numel(), out.data_ptr<float>());
  return out;
}
torch::Tensor run_suppress(torch::Tensor x) {
  auto keep = torch::zeros({x.size(0)}, x.options().dtype(torch::kInt));
  suppress<<<1, 32>>>(x.data_ptr<float>(), x.numel(), 0.15f, keep.data_ptr<int>());
  return keep;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("farthest", &run_farthest), m.def("attention", &run_attention), m.def("suppress", &run_suppress);
}
"""


@pytest.fixture(scope="module")
def built(session_cache, tmp_path_factory):
    """built(barrier): the module, and its file."""
    made = {}

    def of(barrier: str):
        if barrier not in made:
            file = tmp_path_factory.mktemp("races") / "racy.cu"
            file.write_text(TEXT.replace("BARRIER", barrier))
            with builds(session_cache), pytest.MonkeyPatch.context() as patch:
                patch.setenv("SANITIZE", "races")
                made[barrier] = cpp_extension.load(f"racy_{bool(barrier):d}", [file]), file
        return made[barrier]

    return of


def told(log) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tools.cases.races", str(log)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


CALLS = {
    "farthest": lambda module: module.farthest(torch.linspace(0, 1, 40), 4),
    "attention": lambda module: module.attention(torch.tensor([0.5, 1.0, 0.25])),
    "suppress": lambda module: module.suppress(torch.linspace(0, 1, 20)),
}


@pytest.mark.parametrize("kernel", CALLS)
def test_a_published_race(built, kernel, tmp_path, monkeypatch):
    module, file = built("")
    monkeypatch.setenv("CAFFE_RACES", str(tmp_path / "log"))
    CALLS[kernel](module)
    found = told(tmp_path / "log")
    assert found.returncode == 1 and f"race in kernel {kernel}" in found.stdout
    lines = file.read_text().splitlines()
    for what in ("READ", "WRITE"):
        number = next(i for i, line in enumerate(lines, 1) if line.endswith(f"// {what} {kernel}"))
        assert f"{file}:{number}: thread " in found.stdout, found.stdout


def test_with_barriers_there_is_none(built, tmp_path, monkeypatch):
    module, _ = built("__syncthreads();")
    monkeypatch.setenv("CAFFE_RACES", str(tmp_path / "log"))
    chosen, out = CALLS["farthest"](module), CALLS["attention"](module)
    found = told(tmp_path / "log")
    assert found.returncode == 0, found.stdout
    assert chosen.tolist()[:2] == [0, 39]
    scores = torch.tensor([0.5, 1.0, 0.25])
    torch.testing.assert_close(out, (scores - 1).exp().sum().expand(16))
