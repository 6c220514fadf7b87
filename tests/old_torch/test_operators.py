"""Operators of TORCH_LIBRARY: defaults of their schemas, and libraries that are loaded without an import."""

import os
import sys

import pytest
import torch
from support import python_with_torch
from support.workshop import ROOT

from cuffi.old_torch import cpp_extension

OPERATORS = """
#include <torch/library.h>
at::Tensor scaled(const at::Tensor& x, double factor, bool negate, std::optional<int64_t> shift, at::IntArrayRef size,
                  c10::string_view mode, at::ScalarType dtype) {
  auto y = (mode == "twice" ? 2 : 1) * x * factor * size[0] * size[1];
  if (negate) y = -y;
  return (shift ? y + *shift : y).to(dtype);
}
TORCH_LIBRARY_FRAGMENT(SPACE, m) { m.def("SPACE::again(Tensor x, float k=4.0) -> Tensor"); }
TORCH_LIBRARY(SPACE, m) {
  m.def("scaled(Tensor x, float factor=2.0, bool negate=False, int? shift=None, int[2] size=1, *, str mode='once', "
        "ScalarType dtype=float) -> Tensor");
}
TORCH_LIBRARY_IMPL(SPACE, CPU, m) {
  m.impl("scaled", &scaled);
  m.impl("SPACE::again", [](const at::Tensor& x, double k) { return x * k; });
}
"""


def test_defaults_of_a_schema(extensions):
    """torch's dispatcher leaves out what has its default, also if the caller gives it."""
    text = OPERATORS.replace("SPACE", "aten_test_defaults")
    cpp_extension.load_inline("defaults", text, is_python_module=False)
    x, ops = torch.arange(3.0), torch.ops.aten_test_defaults
    assert torch.equal(ops.scaled(x), 2 * x) and torch.equal(ops.scaled(x, 3.0), 3 * x)
    assert torch.equal(ops.scaled(x, shift=1), 2 * x + 1) and torch.equal(
        ops.scaled(x, 3.0, True, 1), 1 - 3 * x
    )
    assert torch.equal(ops.scaled(x, 2.0, False, None, [2, 3]), 12 * x)
    twice = ops.scaled(x, mode="twice", dtype=torch.float64)
    assert torch.equal(twice, 4 * x.double()) and torch.equal(ops.again(x), 4 * x)


@pytest.mark.parametrize("words", [[], ["-m", "cuffi.ext"]])
def test_operators_without_an_import(words, extensions, tmp_path):
    """torch.ops.load_library opens the library; and the interpreter ends without a traceback."""
    text = OPERATORS.replace("SPACE", "aten_test_opened")
    place = cpp_extension.load_inline("opened", text, is_python_module=False)
    script = f"""import torch
torch.ops.load_library({str(place)!r})
print(torch.ops.aten_test_opened.again(torch.ones(2)).tolist())
"""
    (tmp_path / "use.py").write_text(script)
    made = python_with_torch.run(
        [sys.executable, *words, str(tmp_path / "use.py")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert made.stdout.strip().endswith("[4.0, 4.0]") and "Traceback" not in made.stderr, made.stderr
