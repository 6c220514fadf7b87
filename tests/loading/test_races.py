"""load_inline and load with sanitize="races": a call whose kernel races raises, with both lines."""

import threading

import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeTypeError, CaffeValueError, load, load_inline, operator

pytestmark = pytest.mark.usefixtures("cache")

# The last warp of a published reduction: in order on GPUs before Volta.
REDUCTION = """
__device__ void last(volatile float* s, int t) {
  for (int k = 32; k > 0; k >>= 1) s[t] += s[t + k];
}
__global__ void total(const float* in, float* out) {
  __shared__ float s[128];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) last(s, t);
  if (t == 0) out[0] = s[0];
}"""
IN_ORDER = """
__device__ void last(volatile float* s, int t) {
  for (int k = 32; k > 0; k >>= 1) {
    const float other = s[t + k];
    __syncwarp();
    s[t] += other;
    __syncwarp();
  }
}"""
# Furthest point sampling: thread 0 writes the next round's maximum while others still read this one's.
SAMPLING = """
__global__ void sample(const float* x, int n, int m, int* chosen) {
  __shared__ float dists[64];
  __shared__ int which[64];
  __shared__ float least[64];
  const int t = threadIdx.x;
  least[t] = 1e10f;
  int old = 0;
  if (t == 0) chosen[0] = 0;
  for (int j = 1; j < m; j++) {
    least[t] = fminf(least[t], (x[t] - x[old]) * (x[t] - x[old]));
    dists[t] = least[t];
    which[t] = t;
    __syncthreads();
    for (int k = 32; k > 0; k >>= 1) {
      if (t < k && dists[t] < dists[t + k]) {
        dists[t] = dists[t + k];
        which[t] = which[t + k];
      }
      __syncthreads();
    }
    old = which[0];
    LAST
    if (t == 0) chosen[j] = old;
  }
}"""
# Of integers: y has any values before, and adding 1 to a float can leave it as it is, which is no race.
SCATTER = """
__global__ void scatter(const int* x, const int* where, int* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[where[i]] += x[i];
}
void run(const int* x, const int* where, int* y, int n) { scatter<<<(n + 31) / 32, 32>>>(x, where, y, n); }
"""


def test_warp_synchronous_code_with_volatile():
    module = load_inline("sums", REDUCTION, sanitize="races")
    x, y = torch.rand(128), torch.zeros(1)
    said = (
        r"sums\.sums_total: race in kernel total: a shared .*\n *sums\.cu:3: thread .*s\[t\] \+= s\[t \+ k\]"
    )
    for _ in range(2):  # each call tells
        with pytest.raises(CaffeRuntimeError, match=said) as raised:
            module.total(x, y, 1, 1, 1, 128, 1, 1)
        assert str(raised.value).count("sums.cu:3:") == 2
    right = IN_ORDER + REDUCTION[REDUCTION.index("__global__") :]
    load_inline("sums", right, sanitize="races").total(x, y, 1, 1, 1, 128, 1, 1)
    torch.testing.assert_close(y[0], x.sum())


def test_furthest_point_sampling():
    x, chosen = torch.rand(64), torch.zeros(8, dtype=torch.int32)
    racy = load_inline("sampling", SAMPLING.replace("LAST", ""), sanitize="races")
    with pytest.raises(CaffeRuntimeError, match=r"sampling\.cu:13: .*which\[t\] = t;") as raised:
        racy.sample(x, 64, 8, chosen, 1, 1, 1, 64, 1, 1)
    assert "sampling.cu:22: " in str(raised.value)  # the read of which[0]
    right = load_inline("sampling", SAMPLING.replace("LAST", "__syncthreads();"), sanitize="races")
    right.sample(x, 64, 8, chosen, 1, 1, 1, 64, 1, 1)
    wanted, least = [0], torch.full((64,), 1e10)
    for _ in range(7):
        least = torch.minimum(least, (x - x[wanted[-1]]) ** 2)
        wanted.append(int(least.argmax()))
    assert chosen.tolist() == wanted


def test_each_call_of_an_operator_is_watched():
    """A plan would launch without the function that asks the race finder."""
    module = load_inline("scatters", SCATTER, sanitize="races")
    assert "scatters_scatter" in dir(module) and "where" in str(module.scatter.__signature__)

    @operator(module.layer)
    def scatter(x: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        module.scatter(x, where, y, x.numel())
        return y

    x, apart = torch.ones(50, dtype=torch.int32), torch.arange(50, dtype=torch.int32)
    for _ in range(4):
        scatter(x, apart)
    with pytest.raises(CaffeRuntimeError, match=r"scatter_?.*: element 7 \(4 bytes\) is written, then read"):
        scatter(x, torch.full_like(apart, 7))


def test_launches_of_several_threads_are_told_apart():
    module = load_inline("scatters", SCATTER, sanitize="races")
    apart = torch.arange(50, dtype=torch.int32)
    told = []

    def launch(number):
        where = torch.full_like(apart, 7) if number % 2 else apart
        for _ in range(20):
            y = torch.zeros_like(apart)
            try:
                module.scatter(torch.ones_like(apart), where, y, 50)
            except CaffeRuntimeError:
                told.append(number)
            assert y.sum() == 50

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [1] * 20 + [3] * 20


def test_a_folder(tmp_path):
    folder = tmp_path / "scatters"
    folder.mkdir()
    (folder / "cases.py").write_text("")
    (folder / "scatters.h").write_text("int scatters_run(const int *x, const int *where, int *y, int n);\n")
    (folder / "scatters.cu").write_text(
        SCATTER + 'extern "C" int scatters_run(const int *x, const int *where, int *y, int n)'
        " { run(x, where, y, n); return 0; }"
    )
    module = load(folder, sanitize="races")
    with pytest.raises(CaffeRuntimeError, match=rf"{folder}/scatters\.cu:4: "):
        module.scatters_run(*torch.ones(3, 9, dtype=torch.int32).unbind(), 9)


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (
            {"sanitize": 1},
            CaffeTypeError,
            r'sanitize: expected "races" or None, got 1\. .* an index out of bounds',
        ),
        (
            {"sanitize": "address"},
            CaffeValueError,
            r'sanitize: expected "races" or None, got \'address\'\. .*bounds',
        ),
        ({"sanitize": "races", "backends": "cuda"}, CaffeValueError, r"backends: .*racecheck"),
    ],
)
def test_wrong_arguments(wrong, error, said):
    with pytest.raises(error, match=f"load_inline: {said}"):
        load_inline("sums", REDUCTION, **wrong)
