"""How C code uses its tensors, by its text."""

import pytest

from cuffi.old_torch.make.uses import Uses

TEXTS = {
    "a.c": """
int forward(THCudaTensor *in, THCudaTensor *out, THCudaTensor *view, THCudaTensor *handed) {
  float *x = THCudaTensor_data(state, in), *y = THCudaTensor_data(state, out);
  long rows = in->size[0];
  launch(x, rows, (float *)y, THCudaTensor_data(state, view) + 3, stream);
  if (view->stride[0] != 1) other(handed);
  return 1;  // out[0] = *x;
}
void reads(THFloatTensor *p) { float v = THFloatTensor_data(p)[0]; v += 1; double sum = 0, *q = &v; sum += v * q[0]; }
void stores(THFloatTensor *p) { float *d = THFloatTensor_data(p); *d = 1; }
void indirect(THLongTensor *p, THLongTensor *i) {
  long *d = THLongTensor_data(p), *j = THLongTensor_data(i);
  d[j[0]] += 2;
}
void adds(THCudaTensor *p) { atomicAdd(&THCudaTensor_data(state, p)[0], 1); }
""",
    "b.cu": """
template <typename T> __global__ void kernel(const T *bottom, T *top, T *sums) {
  CUDA_KERNEL_LOOP(i, n) { T v = bottom[i] == 0 ? 1 : top[i]; atomicAdd(sums + i, v); }
}
void launch(const float *a, int n, float *b, float *c, cudaStream_t s) { kernel<float><<<1, n, 0, s>>>(a, b, c); }
""",
    "c.cpp": "int plus(THFloatTensor *x) { return 1; }",
    "d.cpp": 'extern "C" int with_c(THFloatTensor *x) { return 1; }',
}  # fmt: skip
USES = Uses(TEXTS)


@pytest.mark.parametrize(
    ("function", "parameter", "writes"),
    [
        ("forward", "in", False), ("forward", "out", False), ("forward", "view", True), ("reads", "p", False),
        ("stores", "p", True), ("indirect", "p", True), ("indirect", "i", False), ("launch", "c", True),
        ("unknown", "p", False),
    ],
)  # fmt: skip
def test_writes(function, parameter, writes):
    assert USES.writes(function, parameter) is writes


@pytest.mark.parametrize(
    ("function", "index", "any_layout"),
    [
        ("forward", 0, False),
        ("forward", 2, True),
        ("forward", 3, True),
        ("stores", 0, False),
        ("unknown", 0, True),
    ],
)
def test_strides(function, index, any_layout):
    assert USES.any_layout(function, index) is any_layout


def test_linkage():
    assert USES.is_cpp("plus") and not USES.is_cpp("with_c") and not USES.is_cpp("forward")
