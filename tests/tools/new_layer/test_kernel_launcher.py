"""A kernel's parameters as C's, and its template parameters."""

import pytest
from support.new_layer import LOOP, derive, kernel


@pytest.mark.parametrize(
    ("parameter", "c_type", "given"),
    [
        ("const Dtype* const p", "const void *", "static_cast<const Dtype*>(p)"),
        ("Dtype * __restrict__ p", "void *", "static_cast<Dtype*>(p)"),
        ("Dtype p[]", "void *", "static_cast<Dtype*>(p)"),
        ("const Dtype p", "double", "static_cast<Dtype>(p)"),
        ("const int* p", "const int32_t *", "p"),
        ("unsigned int* p", "uint32_t *", "reinterpret_cast<unsigned int*>(p)"),
        ("const float* p", "const float *", "p"),
        ("const bool p", "bool", "p"),
        ("unsigned p", "uint32_t", "p"),
        ("size_t p", "uint64_t", "p"),
        ("long long* p", "int64_t *", "reinterpret_cast<long long*>(p)"),
        ("char* p", "int8_t *", "reinterpret_cast<char*>(p)"),
    ],
)
def test_parameter_types(parameter, c_type, given):
    launchers, _ = derive(kernel(f"const int n, Dtype* x, {parameter}", LOOP))
    argument = launchers["Run"].arguments[2]
    assert (argument.type, argument.value) == (c_type, given)


@pytest.mark.parametrize(
    "parameter", ["const Dtype** p", "const Point<Dtype> p", "Dtype& p", "const dim3 p", "void (*p)(int)"]
)
def test_parameter_types_that_c_lacks(parameter):
    launchers, left_out = derive(kernel(f"const int n, Dtype* x, {parameter}", LOOP))
    assert not launchers and left_out["Run"]


def test_template_parameters():
    sized = "template <typename Dtype, int size>"
    launches = "Run<Dtype, 3><<<1, 1>>>(x); Run<Dtype, 5><<<1, 1>>>(x);"
    launcher = derive(kernel("Dtype* x", "x[0] = 0;", sized, launches))[0]["Run"]
    assert launcher.instances == [("size == 3", "Dtype, 3"), ("size == 5", "Dtype, 5")]
    assert launcher.python_parameters == ["x", "size"] and "throw caffe::Error" in launcher.definition()
    launches = "Run<Dtype, K><<<1, 1>>>(x);"
    _, left_out = derive(kernel("Dtype* x", "x[0] = 0;", sized, launches))
    assert "size" in left_out["Run"]
    launcher = derive(kernel("T* x", "x[0] = 0;", "template <typename T>", "Run<float><<<1, 1>>>(x);"))[0][
        "Run"
    ]
    assert not launcher.dispatch and launcher.arguments[0].type == "float *"


@pytest.mark.parametrize("classes", [["Add"], ["Add", "Add"], ["Add", "Mul"], ["float"], ["float", "double"]])
def test_a_template_parameter_that_stands_for_a_class(classes):
    """One class of the file is compiled for; two would be two launchers."""
    own = "struct Add { int a; };\nstruct Mul { int a; };\n"
    launches = "".join(
        f"Run<Dtype, {c}><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x);" for c in classes
    )
    text = kernel("const int n, Dtype* x", LOOP, "template <typename Dtype, typename Op>", launches)
    launchers, left_out = derive(own + text)
    if "Mul" in classes:
        assert left_out == {"Run": "has a template parameter Op that stands for a class"}
    else:
        other = classes[0] if len(set(classes)) == 1 else "Dtype"
        assert launchers["Run"].instances == [("", f"Dtype, {other}")]
