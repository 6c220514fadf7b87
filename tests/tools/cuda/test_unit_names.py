"""Which types are plain, which functions take no reference, and which names are constants."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.unit_names import UnitNames, is_number


def names(text: str) -> UnitNames:
    return Unit(text, "x.cu").names


@pytest.mark.parametrize(
    "kind, is_plain",
    [
        ("int", True),
        ("const unsigned long long", True),
        ("const T*", True),
        ("float4", True),
        ("__half2", True),
        ("Pair", True),
        ("Word", True),
        ("T", True),
        ("Real", True),
        ("int&", False),
        ("const Pair&", False),
        ("Vec<float, 4>", False),
        ("typename Ref<T>::type", False),
        ("std::vector", False),
        ("Hidden", False),
    ],
)
def test_types(kind, is_plain):
    text = "#define Real float\n#define Hidden int&\nstruct Pair { int a; };\ntypedef int Word;\n"
    assert names(text).is_plain(kind, {"T"}) == is_plain


@pytest.mark.parametrize("text", ["typedef int& Slot;", "using Slot = int&;", "struct S { ~S() {} };"])
def test_a_typedefs_name_may_be_a_reference_or_have_a_destructor(text):
    assert names("typedef int Word;").is_plain("Word") and not names(text).is_plain("Word")


@pytest.mark.parametrize(
    "text, is_constant",
    [
        ("constexpr int step = 4;", True),
        ("static const int step = 4;", True),
        ("#define step 4", True),
        ("__device__ int step = 4;", False),
        ("struct Limits { static const int step = 4; };", False),
        ("struct Limits { static const int step = 4; };\n__device__ int step = 3;", False),
        ("namespace a { const int step = 4; }\nnamespace b { __device__ int step; }", False),
        ("void f() { const int step = 4; }", False),
        ("const float step = 4;", False),
        ("#define step 4.0f", False),
    ],
)
def test_constants(text, is_constant):
    assert names(text).is_constant("step") == is_constant


def test_functions_of_one_name_count_together():
    one = "__device__ int f(int v) { return v; }\n"
    assert names(one).changes_nothing("f", "")
    assert not names(one + "__device__ int f(float& v) { return v; }").changes_nothing("f", "")
    assert names(one).changes_nothing("min", "") and not names(
        "int min(int& v) { return v; }"
    ).changes_nothing("min", "")
    assert is_number(names("#define N (1 << 4)").macros["N"])
