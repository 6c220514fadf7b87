"""Names of torch's C++: expressions that compile with torch's own headers, and the value of each."""

import pytest
import torch
from old_torch.conftest import builds

from cuffi.old_torch import cpp_extension

HEAD = """#include <torch/extension.h>
#include <pybind11/functional.h>
using namespace torch::indexing;
using namespace pybind11::literals;
"""
X = torch.arange(12.0).view(3, 4) - 5
# (the result's type, an expression of x, the value in Python)
EXPRESSIONS = [
    ("torch::Tensor", 'x.index({"...", -1})', X[..., -1]),
    ("torch::Tensor", 'x.index({1, "..."})', X[1]),
    ("torch::Tensor", "torch::tensor({{1, 2}, {3, 4}})", torch.tensor([[1, 2], [3, 4]])),
    ("torch::Tensor", "torch::tensor({{1.5}, {3.0}}, torch::kDouble)", torch.tensor([[1.5], [3]]).double()),
    ("torch::Tensor", "torch::tensor({{{1, 2}}, {{3, 4}}})", torch.tensor([[[1, 2]], [[3, 4]]])),
    ("torch::Tensor", "torch::abs(torch::fft::fft(x))", torch.fft.fft(X).abs()),
    ("torch::Tensor", "torch::fft::irfft(torch::fft::rfft(x), 4)", X),
    ("torch::Tensor", "torch::special::expit(x)", X.sigmoid()),
    ("torch::Tensor", "torch::linalg::norm(x, 2, {{1}})", torch.linalg.norm(X, 2, dim=1)),
    ("torch::Tensor", "at::linalg_vector_norm(x, 2)", torch.linalg.vector_norm(X)),
    ("bool", "torch::promote_types(torch::kFloat, torch::kDouble) == torch::kDouble", True),
    ("bool", "at::can_cast(torch::kFloat, torch::kInt)", False),
    ("bool", "torch::result_type(x, x.to(torch::kDouble)) == torch::kDouble", True),
    ("std::string", "c10::str(std::vector<int64_t>{1, 2}, x.sizes())", "1 2[3, 4]"),
    ("std::string", "c10::str(x.dtype(), ' ', x.scalar_type())", "float Float"),
    ("std::string", "x.toString()", "CPUFloatType"),
    ("std::string", "std::string(py::str(py::cast(std::vector<int>{1, 2})))", "[1, 2]"),
    ("py::object", 'py::dict("a"_a = 1, "b"_a = "c")', {"a": 1, "b": "c"}),
    ("py::object", "py::list(py::make_tuple(1, 2))", [1, 2]),
    ("py::object", "py::tuple(py::cast(std::vector<int>{3}))", (3,)),
    ("int64_t", "py::int_(py::cast(2.9))", 2),
    ("std::set<int>", "std::set<int>{3, 3, 4}", {3, 4}),
    ("int", "static_cast<int>(at::ceil_div(7, 2) + at::divup(7, 2))", 8),
]
# Statements that end with a return.
STATEMENTS = [
    (
        "torch::Tensor",
        "auto y = x.detach().requires_grad_(true); return torch::autograd::grad({(y * y).sum()}, {y})[0];",
        2 * X,
    ),
    (
        "torch::Tensor",
        "auto y = x.detach().requires_grad_(true); torch::autograd::backward({y * y}, {x}); return y.grad();",
        2 * X * X,
    ),
    (
        "int64_t",
        'py::dict d; py::list l; l.append(3); d["k"] = l; const py::list& again = d["k"]; return again.size();',
        1,
    ),
    (
        "torch::Tensor",
        'torch::TensorArg a(x, "x", 1); torch::checkDim("f", a, 2); at::checkSize("f", a, {3, 4});'
        ' at::checkScalarType("f", a, at::kFloat); at::checkContiguous("f", a); return x;',
        X,
    ),
]


@pytest.fixture(scope="module")
def names(session_cache):
    bodies = [(kind, f"return {text};") for kind, text, _ in EXPRESSIONS] + [s[:2] for s in STATEMENTS]
    text = HEAD + "".join(
        f"{kind} f{i}(torch::Tensor x) {{ {body} }}\n" for i, (kind, body) in enumerate(bodies)
    )
    text += 'void dims(torch::Tensor x) { at::TensorArg a(x, "x", 1); at::checkDim("dims", a, 3); }\n'
    text += "double real(double x) { return x; }\nint whole(int x) { return x; }\nbool truth(bool x) { return x; }\n"
    text += (
        "std::string text(std::string x) { return x; }\nsize_t items(std::set<int> x) { return x.size(); }\n"
    )
    text += 'py::object named(py::object f) { return f(1, "b"_a = 2); }\n'
    functions = [f"f{i}" for i in range(len(bodies))] + [
        "dims",
        "real",
        "whole",
        "truth",
        "text",
        "items",
        "named",
    ]
    with builds(session_cache):
        return cpp_extension.load_inline("names", text, functions=functions)


@pytest.mark.parametrize("number", range(len(EXPRESSIONS) + len(STATEMENTS)))
def test_an_expression_has_its_value(names, number):
    wanted = (EXPRESSIONS + STATEMENTS)[number][2]
    found = getattr(names, f"f{number}")(X)
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(found, wanted)
    else:
        assert type(found) is type(wanted) and found == wanted


def test_a_check_that_fails(names):
    with pytest.raises(
        RuntimeError,
        match=r"Expected 3-dimensional tensor, but got 2-dimensional tensor for argument #1 'x' \(while checking "
        r"arguments for dims\)",
    ):
        names.dims(X)


def test_arguments_that_pybind11_converts(names):
    import numpy as np

    assert names.whole(np.float32(3.7)) == 3 and names.whole(torch.tensor(-2.5)) == -2
    assert names.truth(None) is False and names.truth(np.bool_(True)) is True
    assert names.text(b"a\xc3\xa4") == "aä" and names.text(bytearray(b"b")) == "b"
    assert names.items({1, 2}) == 2 == names.items(frozenset([3, 4]))
    assert names.named(lambda a, b: (a, b)) == (1, 2)
    for function, wrong in (
        (names.whole, 3.7),
        (names.whole, None),
        (names.items, [1]),
        (names.text, 3),
        (names.whole, np.float32("inf")),
    ):
        with pytest.raises(TypeError):
            function(wrong)
