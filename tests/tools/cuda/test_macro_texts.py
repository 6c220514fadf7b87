"""Macros that a body uses, replaced by their texts as the preprocessor does it."""

import pytest
from support.compiler import preprocessed

from tools.cuda.analysis import Unit

HEAD = """
#define FLOAT4(v) (reinterpret_cast<float4*>(&(v))[0])
#define OFFSET(row, col, ld) ((row) * (ld) + (col))
#define BOTH(a, b) OFFSET(a, b, 4) + WIDTH
#define WIDTH 16
#define TX threadIdx.x
#define MEET() __syncthreads()
#define JOIN(a, b) a##b
#define TEXT(a) #a
#define ANY(...) f(__VA_ARGS__)
#define TWICE(a) a
#undef TWICE
#define TWICE(a) a + a
#ifdef UNKNOWN
#define MAYBE(a) a
#endif
"""
BODIES = [
    "FLOAT4(y[i]) = FLOAT4(x[i]);",
    "y[OFFSET(i, TX, 32)] = BOTH(i + 1, f(2, 3)); MEET();",
    "y[OFFSET((i, 2), g<1>(3), x->WIDTH)] = 1;",
    "y[0] = OFFSET(OFFSET(1, 2, 3), 4,\n 5);",
]
STAY = ["JOIN(a, b)", "TEXT(a)", "ANY(1)", "TWICE(2)", "MAYBE(2)", "OFFSET(1)", "LATER(1)", "a = WIDTH"]


def replaced(body: str) -> str:
    unit = Unit(f"{HEAD}__global__ void k(float* y) {{ {body} }}\n#define LATER(a) a\n", "x.cu")
    (function,) = unit.main.functions
    own = unit.main.text[function.body : function.end]
    return unit.plain_macros.replaced(own, unit.main, function.body)


def words(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("body", BODIES)
def test_as_the_preprocessor(body):
    found = replaced(body)
    assert found.count("\n") == body.count("\n")
    text = HEAD + "=====\n" + body
    right = words(preprocessed(text).partition("=====")[2])
    assert words(found.replace("WIDTH", "16")) == "{" + right + "}"


@pytest.mark.parametrize("body", STAY)
def test_others_stay(body):
    assert replaced(body) == f"{{ {body} }}"
