"""Candidates for one reference, x * 2: right ones, wrong ones, and some that only seem to compute by their kernel."""

REFERENCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x): return x * 2
def get_inputs(): return [torch.randn(300)]
"""
HEAD = '''import threading
import numpy
import torch
from torch.utils.cpp_extension import load_inline
m = load_inline("twice", "torch::Tensor twice(torch::Tensor x);", """%s""", functions=["twice"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        %s
'''
KERNEL = """__global__ void twice_kernel(int n, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  %s
}
torch::Tensor twice(torch::Tensor x) {
  %s
  const int n = x.numel();
  twice_kernel<<<%s>>>(n, x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}"""
RIGHT_BODY, EMPTY, LAUNCH = (
    "if (i < n) y[i] = 2 * x[i];",
    "auto y = torch::empty_like(x);",
    "(n + 63) / 64, 64",
)


def candidate(forward="return m.twice(x)", body=RIGHT_BODY, makes=EMPTY, launch=LAUNCH, text="") -> str:
    return HEAD % (text or KERNEL % (body, makes, launch), forward)


DECOY = "m.twice(x[:4].contiguous()); "
BY_THE_HOST = """__global__ void nothing_kernel(float* y) { y[0] = 0; }
torch::Tensor twice(torch::Tensor x) {
  auto y = torch::empty_like(x);
  nothing_kernel<<<1, 1>>>(y.data_ptr<float>());
  %s
  return y;
}"""
COPY = "if (i < n) y[i] = %s;"
CHEATS = {
    "torch's product": candidate(f"{DECOY}return x * 2"),
    "out of torch's": candidate(f"{DECOY}y = torch.empty_like(x); torch.mul(x, 2, out=y); return y"),
    "copied from torch's": candidate(f"{DECOY}y = torch.empty_like(x); y.copy_(x * 2); return y"),
    "changed by a little": candidate(f"{DECOY}return x * 2 + 1e-9"),
    "element by element": candidate(
        f"{DECOY}y = torch.empty_like(x)\n        for i in range(len(x)): y[i] = x[i] * 2\n        return y"
    ),
    "put together": candidate(f"{DECOY}return torch.cat([x[:2] * 2, x[2:] * 2])"),
    "a graph of torch.fx": candidate(f"{DECOY}return torch.fx.symbolic_trace(lambda a: a * 2)(x)"),
    "numpy": candidate(f"{DECOY}return torch.from_numpy(x.numpy() * 2)"),
    "numpy into an empty one": candidate(
        f"{DECOY}y = torch.empty_like(x); numpy.multiply(x.numpy(), 2, out=y.numpy()); return y"
    ),
    "lists of Python": candidate(f"{DECOY}return torch.tensor([2 * one for one in x.tolist()])"),
    "a thread": candidate(
        f"{DECOY}box = []; t = threading.Thread(target=lambda: box.append(x * 2))\n"
        "        t.start(); t.join(); return box[0]"
    ),
    "C++ of the host": candidate(
        text=BY_THE_HOST
        % "for (int i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = 2 * x.data_ptr<float>()[i];"
    ),
    "torch's C++": candidate(text=BY_THE_HOST % "y = x * 2;"),
    "torch's, copied by the kernel": candidate("return m.twice(x * 2)", COPY % "x[i]"),
    "torch's, changed by the kernel": candidate("return m.twice(x * 2)", COPY % "x[i] * 1.0000001f"),
    "the result is also the kernel's scratch": candidate(
        "y = m.twice(x); y.copy_(x * 2); return y", COPY % "x[i]"
    ),
}  # fmt: skip
SHARED = "__shared__ float s[64]; s[threadIdx.x] = i < n ? x[i] : 0; %s if (i < n) y[i] = %s;"
WRONG = {
    "the last one is left out": candidate(body="if (i < n - 1) y[i] = 2 * x[i];"),
    "no guard": candidate(body="y[i] = 2 * x[i];"),
    "only positive ones": candidate(body="if (i < n && x[i] > 0) y[i] = 2 * x[i];"),
    "no barrier": candidate(
        body=SHARED
        % ("", "s[63 - threadIdx.x] * 0 + 2 * x[i] + 0 * s[threadIdx.x / 2]")
    ),
    "a race": candidate(body="if (i < n) { y[0] = x[i]; y[i] = 2 * x[i]; }"),
    "one size": candidate(launch="5, 64", body="if (i < 300) y[i] = 2 * x[i];"),
    "the input is changed": candidate("y = m.twice(x); x.zero_(); return y"),
    "the first result again": candidate(
        "self.y = getattr(self, 'y', None); self.y = m.twice(x) if self.y is None else self.y; return self.y"
    ),
}  # fmt: skip
DISPATCHED = """template <typename T> __global__ void twice_kernel(int n, const T* x, T* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}
torch::Tensor twice(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "twice", [&] {
    twice_kernel<scalar_t><<<3, 32>>>(x.numel(), x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>());
  });
  return y;
}"""
INTO = """__global__ void twice_kernel(int n, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i];
}
torch::Tensor twice(torch::Tensor x) {
  twice_kernel<<<(x.numel() + 127) / 128, 128>>>(x.numel(), x.data_ptr<float>(), x.data_ptr<float>());
  return x;
}"""
STEP, ADD = "gridDim.x * blockDim.x", "atomicAdd(y + i, x[i]);"
SHUFFLE = """float v = i < n ? x[i] : 0;
  v += __shfl_sync(0xffffffffu, v, threadIdx.x % 32);
  if (i < n) y[i] = v;"""
RIGHT = {
    "a kernel": candidate(),
    "a loop": candidate(body=f"for (int j = i; j < n; j += {STEP}) y[j] = 2 * x[j];", launch="2, 32"),
    "a template": candidate(text=DISPATCHED),
    "in place of a copy": candidate("return m.twice(x.clone())", text=INTO),
    "contiguous": candidate("return m.twice(x[:, None].contiguous()).reshape(x.shape)"),
    "two launches": candidate("return m.twice(m.twice(x))", body="if (i < n) y[i] = x[i] * 1.41421356f;"),
    "shared memory": candidate(body=SHARED % ("__syncthreads();", "2 * s[threadIdx.x]")),
    "a shuffle": candidate(body=SHUFFLE),
    "an atomic": candidate(body=f"if (i < n) {{ {ADD} {ADD} }}", makes="auto y = torch::zeros_like(x);"),
    "prepared by torch": candidate("return m.twice(x + 1) - 2"),
    "an index of torch's": candidate("at = torch.arange(len(x)).flip(0); return m.twice(x[at])[at]"),
    "checked by torch": candidate("assert x.isfinite().all(); y = m.twice(x); assert not y.isnan().any(); return y"),
}  # fmt: skip
