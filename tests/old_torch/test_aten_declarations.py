"""C++ declarations from torch's schemas."""

import pytest
from support.typed import not_none

from cuffi.old_torch import aten_declarations as declarations


def declared(schema: str) -> declarations.Declared:
    return not_none(declarations.declared(schema))


def test_a_method_and_a_function():
    text = declarations.text_of({"cumsum"})
    names = '"cumsum", "", "self,dim,dtype"'
    assert "AT_COLD Tensor cumsum(int64_t dim_, optional<ScalarType> dtype_ = nullopt) const {" in text
    assert f"static const aten::Operation operation{{{names}}};" in text
    assert "AT_COLD inline Tensor cumsum(const Tensor& self_, int64_t dim_" in text
    assert "cumsum_(" not in text and ".out" not in text


def test_the_four_options_are_one():
    found = declared(
        "aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor"
    )
    assert found.parameters == ["IntArrayRef size_", "const TensorOptions& options = {}"]
    assert found.values == ["size_", "options.type_", "options.layout_", "options.device_", "options.pinned_"]
    assert found.names == ["size", "dtype", "layout", "device", "pin_memory"]


@pytest.mark.parametrize(
    ("schema", "parameter"),
    [
        ("aten::f(Tensor self, int[2] a=[1, 2]) -> Tensor", "IntArrayRef a_ = IntArrayRef({1, 2})"),
        ("aten::f(Tensor self, Scalar a=1.) -> Tensor", "const Scalar& a_ = 1.0"),
        ("aten::f(Tensor self, bool a=False) -> Tensor", "bool a_ = false"),
        ("aten::f(Tensor self, ScalarType a=6) -> Tensor", "ScalarType a_ = static_cast<ScalarType>(6)"),
        ("aten::f(Tensor self, Tensor? a=None) -> Tensor", "const optional<Tensor>& a_ = nullopt"),
        ('aten::f(Tensor self, str a="x,y") -> Tensor', 'std::string_view a_ = "x,y"'),
    ],
)
def test_defaults(schema, parameter):
    assert declared(schema).parameters[1] == parameter


@pytest.mark.parametrize(
    "schema",
    [
        "aten::f.out(Tensor self, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
        "aten::f(Tensor self, Dimname dim) -> Tensor",
        "aten::f(Tensor self) -> Dict(str, Tensor)",
    ],
)
def test_what_cpp_cannot_call(schema):
    assert declarations.declared(schema) is None


def test_no_operation_of_torchscript():
    """`aten::append` and `aten::add.int` are on lists and numbers."""
    text = declarations.text_of({"append", "add", "split"})
    assert "append" not in text and '"add", "int"' not in text and '"add", "Tensor"' in text


def test_an_out_is_first_in_cpp():
    found = declared("aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)")
    assert found.name == "mm_out" and found.names == ["out", "self", "mat2"]
    text = declarations.text_of({"mm_out"})
    assert "inline const Tensor& mm_out(const Tensor& out_, const Tensor& self_, const Tensor& mat2_)" in text
    assert '{"mm", "out", "out,self,mat2"}' in text and "out_; }" in text and "Tensor mm(" not in text


def test_several_results():
    assert declared("aten::f(Tensor self) -> (Tensor, int)").result == "std::tuple<Tensor, int64_t>"
    assert declared("aten::f(Tensor self) -> ()").result == "void"


def test_names():
    assert declarations.names_in(["a.sum(b1)", "x->y"]) == {"a", "sum", "b1", "x", "y"}
