"""Calls of functions that ask for the lanes at their place say where they stand."""

import pytest
from support.rewriting import rewrite_text

from tools.cuda.lanes import LANES

ASK = "__device__ int count() { return __popc(__activemask()); }\n__device__ int twice(int v) { return 2 * v; }\n"


@pytest.mark.parametrize(
    "call, wanted",
    [
        ("use(count());", "use((::cuda_host::From(__LINE__, 5), count()));"),
        ("use(::count());", "use((::cuda_host::From(__LINE__, 7), ::count()));"),
        ("use(twice(3));", "use(twice(3));"),
    ],
)
def test_calls(call, wanted):
    text = rewrite_text(ASK + "__global__ void k(int* y) {\n" + call + "\n}")
    assert text.splitlines()[3] == wanted
    assert "__activemask" in LANES


def test_a_macros_calls_are_told_apart_by_a_number():
    text = rewrite_text(
        ASK + "#define COUNT() count()\n__global__ void k(int* y) { y[0] = COUNT() + COUNT(); }"
    )
    assert "(::cuda_host::From(__LINE__, 4096 + __COUNTER__), count())" in text
