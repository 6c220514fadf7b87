"""Assignments, arguments and shifts in device code: what is written, and what g++ still converts by itself."""

import os
import re
import subprocess

import pytest
from support.compiler import WORDS
from support.rewriting import rewrite
from support.workshop import FIXTURES, ROOT

from tools.cuda.analysis import Unit
from tools.cuda.arguments import Arguments
from tools.cuda.assignments import Assignments, result_of
from tools.cuda.number_types import Names, Types
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.shifts import shifts
from tools.cuda.sides import Sides
from tools.cuda.source import Source
from tools.cuda.to_host import HostRewriter

CXX = [
    *WORDS,
    "-std=c++17",
    f"-I{ROOT}/include",
    f"-I{ROOT}/include/host",
    "-DCAFFE_HOST_BACKEND=1",
    "-fsyntax-only",
]
CXX += ["-Wfloat-conversion"]
FILE = """
using Index = int;
struct Cell { int a; float b; };
template <typename T> struct Box { T a; __device__ void set(T x) { a = x; } };
__device__ int twice(int x) { return 2 * x; }
__device__ int size(int x) { return x; }
__device__ int size(float x) { return x; }
__device__ void f(float v, const float* in, int n, int* o, unsigned m) { BODY }
"""


def written(body: str, what) -> str:
    """The body of a function with its edits; the names short."""
    source = Source(FILE.replace("BODY", body), "x.cu")
    function, tokens = source.functions[-1], source.lexed.tokens
    first = next(i for i, t in enumerate(tokens) if t.start > function.body)
    last = next(i for i, t in enumerate(tokens) if t.end == function.end)
    types = Types([source])
    edits = what(tokens, source.lexed.partner, first, last, Names(types, source, function))
    text = source.text
    for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + new + text[end:]
    text = text[text.index("{", text.index("f(float v")) + 2 : text.rindex("}") - 1]
    text = text.replace("::cuda_host::gpu_", "").replace("::cuda_host::", "")
    return re.sub(r"plain<decltype\((.*?)\)>>", r"\1>", text)


def compiled(file):
    return subprocess.run(
        [*CXX, file], capture_output=True, text=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}
    )


def assignments(tokens, partner, first, last, names):
    return Assignments(tokens, partner, first, last, names, "::cuda_host::").edits("int")


def arguments(tokens, partner, first, last, names):
    return Arguments(tokens, partner, first, last, names, "::cuda_host::").edits()


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("int k = v;", "int k = into<int> = v;"),
        ("const Index k = v, j = n;", "const Index k = into<Index> = v, j = n;"),
        ("int k(v), j{v};", "int k(into<int> = v), j{v};"),
        ("int j{v};", "int j{into<int> = v};"),
        ("float k = v; k = v; auto j = v; int* p = o;", "float k = v; k = v; auto j = v; int* p = o;"),
        ("o[n] = v;", "o[n] = into<o [ n ]> = v;"),
        ("o[n] = n * 2 + m;", "o[n] = n * 2 + m;"),
        ("*(int*)o = v;", "*(int*)o = into<* ( int * ) o> = v;"),
        ("const int& k = v;", "const int& k = bound<int> = v;"),
        ("int k = 0; k += v; k *= 2; k |= m;", "int k = 0; k += onto<k> = v; k *= 2; k |= m;"),
        ("n <<= m; n >>= 3;", "n <<= by<n> = m; n >>= 3;"),
        ("return v;", "return into<int> = v;"),
        ("return n + 1;", "return n + 1;"),
        ("auto g = [=] { return v; };", "auto g = [=] { return v; };"),
        ("auto g = [=]() -> int { return v; };", "auto g = [=]() -> int { return into<int> = v; };"),
        ("auto g = [k = v] { return k; };", "auto g = [k = v] { return k; };"),
        ("enum { A = 1, B }; using T = int;", "enum { A = 1, B }; using T = int;"),
        ("Cell c = {v, v};", "Cell c = {into<Cell::a> = v, into<Cell::b> = v};"),
        ("int2 c = {v, 1};", "int2 c = {into<int> = v, 1};"),
        ("int (*g)(int) = twice; g = &twice;", "int (*g)(int) = twice; g = &twice;"),
        ("const char* s = \"a\"; int k = 'a';", "const char* s = \"a\"; int k = 'a';"),
        ("Cells q; q = NULL; q = (NULL); b.a = nullptr;", "Cells q; q = NULL; q = (NULL); b.a = nullptr;"),
        ("if (n) *o = v; else n = v;", "if (n) *o = into<* o> = v; else n = into<n> = v;"),
    ],
)
def test_assignments(body, wanted):
    assert written(body, assignments) == wanted


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("n = twice(v);", "n = twice(into<int> = v);"),
        ("n = twice(n) + twice(3);", "n = twice(n) + twice(3);"),
        ("n = size(v);", "n = size(v);"),
        ("auto g = [](int* p) {}; g(NULL); g(nullptr);", "auto g = [](int* p) {}; g(NULL); g(nullptr);"),
        (
            "Box<int> b; b.set(v);",
            "Box<int> b; b.set(into<takes<decltype(&plain<decltype(b)>::set), 0>> = v);",
        ),
        (
            "auto g = [](int k) { return k; }; g(v);",
            "auto g = [](int k) { return k; }; g(into<takes<decltype(g), 0>> = v);",
        ),
    ],
)
def test_arguments(body, wanted):
    assert written(body, arguments) == wanted


@pytest.mark.parametrize(
    "body, wanted",
    [
        ("n = m << n;", "n = m << shift << n;"),
        ("n = 1 << 3 | m >> 31;", "n = 1 << 3 | m >> 31;"),
        ("n = 1ull << 40;", "n = 1ull << shift << 40;"),
        ("n = m << 3 + n;", "n = m << shift << 3 + n;"),
        ("Box<Box<int>> b; n = m >> n;", "Box<Box<int>> b; n = m >> shift >> n;"),
        ("Box<(8 >> 1)> b;", "Box<(8 >> 1)> b;"),
    ],
)
def test_shifts(body, wanted):
    assert written(body, lambda tokens, partner, first, last, names: shifts(tokens, first, last)) == wanted


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("__device__ unsigned char f(float x) { return x; }", "unsigned char"),
        ("template <typename T> static __device__ T f(float x) { return x; }", "T"),
        ("__device__ auto f(float x) -> short { return x; }", "short"),
        ("struct A { __device__ operator int() const { return 1; } };", "int"),
        (
            "template <typename T> __device__ typename A<T>::type A<T>::f(float x) { return x; }",
            "typename A < T > :: type",
        ),
        ("template <typename T> struct A { __device__ operator T*() { return (T*)0; } };", None),
        *(
            (f"__device__ {t} f() {{ return x; }}", None)
            for t in ("float", "void", "int*", "const int&", "auto")
        ),
    ],
)
def test_what_a_function_returns(text, wanted):
    source = Source(text, "x.cu")
    assert result_of(source, source.functions[0], Types([source])) == wanted


@pytest.mark.parametrize(
    "text, left",
    [("a.b[c]->d", 0), ("f(x) + *p", 5), ("if (c) (*p).x", 4), ("g<int>(x)[2]", 0), ("a = b", 2)],
)
def test_the_left_side_of_a_sign(text, left):
    source = Source(f"{text} = 1;", "x.cu")
    tokens = source.lexed.tokens
    sign = max(i for i, token in enumerate(tokens) if token.text == "=")
    names = Names(Types([source]))
    assert Sides(tokens, source.lexed.partner, 0, len(tokens), names, "").left(sign) == left


@pytest.mark.parametrize(
    "text",
    [
        "struct A { template <typename U, typename = std::enable_if_t<!std::is_same<T, U>::value>> A(U u); };",
        "struct A { template <class U, typename std::enable_if<B<U>::value, int>::type = 0> __device__ void f(U u); };",
        "template <class T> struct A { template <typename = T> __device__ void f(); template <int n = 3> struct B; };",
        "#define CONSTANT(name) constexpr Kind k##name = Kind::name;\n__device__ int f() { return 1; }",
        "struct A { int* p; __device__ decltype(auto) at(int i) { return p[0]; } };",
        "#define DISPATCH(name, number) using name [[maybe_unused]] = typename OfType<number>::type;",
        "#define UNUSED __attribute__((unused))\n#define ALIAS(name) using name UNUSED = typename OfType<3>::type;",
        "template <typename T> __device__ void f() { using A [[maybe_unused]] = T; A a{}; }",
        "struct A { __device__ virtual int f() = 0; A& operator=(const A&) = default; };",
    ],
)
def test_what_is_no_assignment(text):
    """What the rewriters of assignments, results and arguments leave as it is."""
    texts, problems, _ = rewrite_unit(Unit(text, "x.cu"), HostRewriter, "", "")
    assert not problems and texts[""].endswith(text)


@pytest.mark.parametrize("name", ["valid", "implicit"])
def test_gxx_converts_nothing_by_itself(tmp_path, name):
    """It knows each conversion from a real number to an integer that nobody wrote."""
    texts, problems, _ = rewrite(str(FIXTURES / "conversions" / f"{name}.cu"))
    assert not problems
    (tmp_path / "x.cpp").write_text(texts[""])
    done = compiled(tmp_path / "x.cpp")
    assert done.returncode == 0, done.stderr[:3000]
    right = ("to 'float'", "to 'bool'")
    lines = [line for line in done.stderr.splitlines() if "float-conversion" in line]
    told = [line for line in lines if not any(words in line for words in right)]
    assert not told, "\n".join(told)


def test_gxx_says_where_it_converts(tmp_path):
    """The test above can fail."""
    (tmp_path / "x.cpp").write_text("int f(float x) { return x; }")
    done = compiled(tmp_path / "x.cpp")
    assert "'float' to 'int'" in done.stderr and "float-conversion" in done.stderr
