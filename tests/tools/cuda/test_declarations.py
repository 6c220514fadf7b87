"""What one declaration says: classes, members, variables, other names."""

import pytest

from tools.cuda.declarations import Declarator, alias_of, class_of, members, variables_of
from tools.cuda.lexer import Lexed


def tokens_of(text):
    return Lexed(text).tokens


def shown(tokens):
    return [token.text for token in tokens]


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
    found = [(shown(member.tokens), member.is_function) for member in members(tokens_of(body))]
    assert [text for text, is_function in found if is_function] == [shown(tokens_of(f)) for f in functions]
    assert [text for text, is_function in found if not is_function] == [
        shown(tokens_of(v)) for v in variables
    ]


@pytest.mark.parametrize(
    ("text", "names", "bases", "body"),
    [
        ("struct P { int n; };", {"P"}, "", "int n;"),
        ("typedef struct Own { int n; } P;", {"Own", "P"}, "", "int n;"),
        ("struct __align__(16) P final : public Q<int>, R { };", {"P"}, "public Q<int>, R", ""),
        ("template <int N = (1 > 0)> class P { int n[N]; };", {"P"}, "", "int n[N];"),
        ("struct { int n; } p;", set(), "", "int n;"),
    ],
)
def test_classes(text, names, bases, body):
    found = class_of(tokens_of(text))
    assert found and found.names == names
    assert (shown(found.bases), shown(found.body)) == (shown(tokens_of(bases)), shown(tokens_of(body)))


@pytest.mark.parametrize(
    "text",
    [
        "struct P;",
        "int n;",
        "struct P<int> { int n; };",
        "struct MACRO(8) P { int n; };",
        "enum E { a };",
        "struct P {",
    ],
)
def test_what_is_no_class(text):
    assert class_of(tokens_of(text)) is None


@pytest.mark.parametrize(
    ("text", "kind", "declarators"),
    [
        ("const float *x, y[3][N + 1] = {}", "const float", [("x", 1, ()), ("y", 0, ("3", "N + 1"))]),
        ("__constant__ __align__(16) double d{1, 2}", "__constant__ double", [("d", 0, ())]),
        ("std::array<int, 4> a", "std::array<int, 4>", [("a", 0, ())]),
        ("unsigned long n = f(a, b), m", "unsigned long", [("n", 0, ()), ("m", 0, ())]),
    ],
)
def test_variables(text, kind, declarators):
    found = variables_of(tokens_of(text))
    assert found and " ".join(found.type) == kind
    assert found.declarators == [Declarator(*each) for each in declarators]


@pytest.mark.parametrize(
    "text", ["int f(int n)", "int n : 3", "int (*f)(int)", "float* const x", "n", "int a, long b", ""]
)
def test_what_declares_otherwise(text):
    assert variables_of(tokens_of(text)) is None


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("using Real3 = typename one::Vector<double>;", ("Real3", "Vector")),
        ("typedef struct Own Other;", ("Other", "Own")),
        ("typedef Own* Pointer;", None),
        ("using Own::f;", None),
        ("typedef Vector<float>::type Kind;", None),
    ],
)
def test_other_names(text, alias):
    assert alias_of(tokens_of(text)) == alias
