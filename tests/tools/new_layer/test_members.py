"""The members of classes, and classes whose objects are plain bytes."""

import pytest

from tools.new_layer.members import members, without_addresses


@pytest.mark.parametrize(
    ("body", "functions", "variables"),
    [
        ("int n; float* x;", [], ["int n", "float* x"]),
        ("P(int k) : n(k), m{0} {} int n, m; public: ~P();", ["P(int k) : n(k), m{0}", "~P()"], ["int n, m"]),
        ("int f() const { if (n) { return 1; } return n; } int n{3};", ["int f() const"], ["int n{3}"]),
        ("V operator*(V o) { return {x * o.x}; } float x = g(1);", ["V operator*(V o)"], ["float x = g(1)"]),
        ("__align__(16) float4 v; union { int a; };", [], ["__align__(16) float4 v", "union { int a; }"]),
        ("P& operator=(const P& o) = default; int n;", ["P& operator=(const P& o) = default"], ["int n"]),
        ("T data[N * (N + 1)]; P() noexcept : data{1, 2} {}", ["P() noexcept : data{1, 2}"], ["T data[N * (N + 1)]"]),
        ("private: std::array<float, 3> v; private: int (*f)(int);", ["int (*f)(int)"], ["std::array<float, 3> v"]),
        ("", [], []),
    ],
)  # fmt: skip
def test_members(body, functions, variables):
    found = members(body)
    assert [text for text, is_function in found if is_function] == functions
    assert [text for text, is_function in found if not is_function] == variables


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["struct A { int n; A(int k) : n(k) {} };", "struct B { A a[3]; int2 v; };"], "AB"),
        (["struct A { int* n; };", "struct B { A a; };", "typedef struct { float v; } C;"], "C"),
        (["struct A { int f(int* p) { return *p & 1; } union { int a; float b; }; };"], "A"),
        (
            [
                "struct A { ~A(); int n; };",
                "struct B { std::vector<int> n; };",
                "struct C { void (*f)(int); };",
            ],
            "",
        ),
        (["class A { public: A(int k) : n(k) {} private: int n; };", "struct B : public A { A m; };"], "AB"),
        (["struct A { A(int k) : n(nullptr) {} int* n; };", "struct B { A(*f)(int); };"], ""),
        (
            [
                "template <typename T> struct V { T x, y; V operator*(V o) { return o; } };",
                "using V3 = V<double>;",
            ],
            ["V", "V3"],
        ),
        (
            ["struct A { std::array<float, 3> v; enum { N = 2 }; int w[N * 2]; };", "typedef A Other;"],
            ["A", "Other"],
        ),
        (["struct A { union { int n; float* x; }; };", "struct B { int x = f(&y); ~B() = default; };"], "B"),
        (["struct A : B { int n; };", "struct C { virtual int f(); };", "struct D { int& n; };"], ""),
    ],
)
def test_structs_that_a_tensor_may_have(texts, plain):
    assert without_addresses(texts) == set(plain)
