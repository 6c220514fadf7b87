"""The types that pointers show."""

import pytest
from support.new_layer import derive, kernel


@pytest.mark.parametrize(
    ("host", "types"),
    [
        ("int *a; Run<<<1, 1>>>(a);", "int"),
        ("const int* a = nullptr; Run<<<1, 1>>>(a + 4);", "int"),
        ("unsigned  short *b, *a; Run<<<1, 1>>>(a);", "unsigned short"),
        ("float *b = make(1), * a; Run<<<1, 1>>>(a);", ["float", "double"]),
        ("double* a; Run<<<1, 1>>>(a); int* b; Run<<<1, 1>>>(b);", ["float", "double", "int"]),
        ("int n = 2; float b = n * a; Run<<<1, 1>>>(make(b));", ["float", "double"]),
        ("Own *a; Run<<<1, 1>>>(a);", ["float", "double"]),
        ("Real *a; Run<<<1, 1>>>(a); int* b; Run<<<1, 1>>>(b);", ["float", "double", "int"]),
        ("int *a; Run<float><<<1, 1>>>(a);", "float"),
    ],
)
def test_pointers_of_the_function_that_launches(host, types):
    text = "typedef float Real;\n" + kernel("T* x", "x[0] = 0;", "template <typename T>", host)
    launcher = derive(text)[0]["Run"]
    if isinstance(types, str):
        assert launcher.arguments[0].kernel_type == types and not launcher.dtypes
    else:
        assert launcher.dispatch and list(launcher.dtypes.values() or ["float", "double"]) == types


def test_pointers_of_the_callers():
    text = """template <typename T> __global__ void Run(T* x) { x[0] = 0; }
    template <typename T> void inner(int n, T* x) { Run<<<1, n>>>(x); }
    template <typename U, int N> void outer(U* y, int* n) { inner(N, y); }
    void a(int* p) { outer<int, 4>(p, p); }
    void b(float* p, int* n) { outer<float, 4>(p, n); inner<float>(3, p); }
    template <typename T> void endless(T* x) { endless(x); Run<<<1, 1>>>(x); }
    """
    assert list(derive(text)[0]["Run"].dtypes.values()) == ["float", "double", "int"]
