"""include/aten/stable.h and shim.h: torch's stable ABI."""

import pytest
import torch
from old_torch.conftest import SOURCES, builds

from cuffi.old_torch import cpp_extension
from cuffi.old_torch.aten_service import FLOAT8


@pytest.fixture(scope="module")
def ops(session_cache):
    with builds(session_cache):
        cpp_extension.load("stable", [SOURCES / "stable.cu"], is_python_module=False)
    return torch.ops.aten_test_stable


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2]
)
def test_a_kernel_of_each_dtype(ops, dtype):
    """torch rounds to 8 bits itself."""
    x = torch.randn(1000).to(dtype)
    wanted = (x.float() * 0.75).to(dtype)
    assert torch.equal(ops.scale(x, 0.75).view(torch.uint8), wanted.view(torch.uint8))
    assert torch.equal(ops.scale(x).float(), (x.float() * 2).to(dtype).float())  # the schema's default


def test_lists_optionals_and_results(ops):
    x = torch.arange(3.0)
    total, count = ops.joined([x, x + 1])
    assert total.tolist() == [1, 3, 5] and count == 6
    assert ops.joined([x, x], axis=0)[1] == 6 and ops.joined([x], 0)[1] == 3


def test_functions_boxed_by_hand(ops):
    x = torch.arange(3.0)
    same, scaled = ops.both(x)
    assert same is x and scaled.tolist() == [0, 3, 6]
    assert ops.both(x, factor=5.0)[1].tolist() == [0, 5, 10]
    assert ops.same(x).data_ptr() == x.data_ptr() and ops.nothing(x) is None


def test_errors(ops):
    with pytest.raises(RuntimeError, match="x must be contiguous"):
        ops.scale(torch.ones(4, 4).t())
    with pytest.raises(RuntimeError, match="\"scale\" not implemented for 'Int'"):
        ops.scale(torch.ones(4, dtype=torch.int32))


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_numbers_of_8_bits(dtype, values8):
    """Each code and its number, and numbers of all sizes to the nearest code, as torch does both."""
    codes = torch.arange(256, dtype=torch.uint8).view(dtype)
    torch.testing.assert_close(values8.decode(codes), codes.float(), rtol=0, atol=0, equal_nan=True)
    x = torch.randn(20000, generator=torch.Generator().manual_seed(1))
    x = x * torch.exp2(torch.arange(20000) % 60 - 30.0)
    x = torch.cat(
        [x, codes.float().nan_to_num(), codes.float().nan_to_num() * 1.0625, torch.tensor([0.0, -0.0])]
    )
    x = x[x.abs() <= codes.float().nan_to_num(0, 0, 0).max()]  # beyond, versions of torch differ
    assert torch.equal(values8.encode(x, codes).view(torch.uint8), x.to(dtype).view(torch.uint8))


@pytest.fixture(scope="module")
def values8(session_cache):
    text = """#include <torch/extension.h>
template <typename F>
void each(at::Tensor t, const F& f) {
  switch (t.scalar_type()) {
#define CASE(type, name, number) case at::ScalarType::name: f(type()); break;
    AT_FORALL_FLOAT8_TYPES(CASE)
    default: TORCH_CHECK(false);
  }
}
at::Tensor decode(at::Tensor x) {
  auto y = at::empty(x.sizes(), at::kFloat);
  each(x, [&](auto kind) {
    for (int64_t i = 0; i < x.numel(); ++i)
      y.data_ptr<float>()[i] = x.data_ptr<decltype(kind)>()[i];
  });
  return y;
}
at::Tensor encode(at::Tensor x, at::Tensor like) {
  auto y = at::empty(x.sizes(), like.options());
  each(y, [&](auto kind) {
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<decltype(kind)>()[i] = x.data_ptr<float>()[i];
  });
  return y;
}
"""
    with builds(session_cache):
        return cpp_extension.load_inline("values8", text, functions=["decode", "encode"])
