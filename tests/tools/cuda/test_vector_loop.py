"""Which kernel loops become vector loops: the decision for each body, and its pointers."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.vector_loop import decide

KERNEL = """#define SQUARE(v) ((v) * (v))
#define TWICE(v) ((v) + (v))
template <typename Dtype>
__global__ void k(const int n, const Dtype* x, const Dtype* z, Dtype* y, {more}const Dtype s) {{
  CUDA_KERNEL_LOOP(i, n) {body}
}}
"""


def decided(body: str, more: str = ""):
    unit = Unit(KERNEL.format(body=body, more=more), "k.cu")
    (source,) = unit.sources
    (kernel,) = unit.kernels(source)
    return decide(unit, source, kernel)


X, Z, Y, U = ("x", "READ"), ("z", "READ"), ("y", "WRITE"), ("y", "UPDATE")


@pytest.mark.parametrize(
    ("body", "windows"),
    [
        ("{ y[i] = x[i]; }", [X, Y]),
        ("y[i] = x[i];", [X, Y]),
        ("y[i] = TWICE(x[i]) + z[i];", [X, Z, Y]),
        ("{ y[i] += x[i]; }", [X, U]),
        ("{ y[i] = y[i] + x[i]; }", [X, U]),
        ("{ y[i]++; }", [U]),
        ("{ ++y[i]; }", [U]),
        ("{ y[i / 2] = x[i]; }", [X]),
        ("{ y[i] = x[i + 1] + z[i]; }", [Z, Y]),
        ("{ y[i] = x[i] + x[i / 2] + z[i]; }", [Z, Y]),
        # What is behind a condition may be of a pointer that is NULL.
        ("{ y[i] = s > 0 ? x[i] : z[i]; }", [Y]),
        ("{ y[i] = x[i] > 0 ? x[i] : z[i]; }", [X, Y]),
        ("{ y[i] = s && x[i]; }", [Y]),
        ("{ y[i] = x[i] || z[i]; }", [X, Y]),
        ("{ if (s) y[i] = x[i]; }", None),
        ("{ if (x[i] > s) y[i] = z[i]; }", [X]),
        ("{ if (x[i] > s && z[i] > s) y[i] = 0; }", [X]),
        ("{ if (s) { y[i] = z[i]; } else { s; } s + x[i]; }", "memory is read after the write"),
        ("{ Dtype v = 0; if (s) v = z[i]; else v = 1; y[i] = v + x[i]; }", [X, Y]),
        ("{ Dtype v = 0; if (s) { v = z[i]; v = 2; } else if (n) { v = 1; } y[i] = v + x[i]; }", [X, Y]),
        ("{ Dtype v = 0; if (s) if (n) v = z[i]; y[i] = v + x[i]; }", [X, Y]),
        ("{ Dtype v = 0; { v = z[i]; } y[i] = v + x[i]; }", [X, Y]),
        ("{ if (s) continue; y[i] = x[i]; }", None),
        ("{ Dtype v = x[i]; if (v > s) continue; y[i] = z[i]; }", [X]),
        ("{ Dtype v = x[i]; if (v > s) { continue; } else { v = 1; } y[i] = v + z[i]; }", [X]),
        ("{ Dtype v = max(x[i], Dtype(0)); y[i] = v; }", [X, Y]),
        # Why a loop stays as it is.
        ("{ y[i] = x[i]; y[i] += z[i]; }", "2 writes to memory"),
        ("{ s + x[i]; }", "0 writes to memory"),
        ("{ Dtype v = y[i] = x[i]; v + z[i]; }", "memory is read after the write"),
        ("{ y[i] = *x; }", "x is used other than as x[...]"),
        ("{ y[i] = f(z) + x[i]; }", "z is used other than as z[...]"),
        ("{ y[i] = SQUARE(x[i]); }", "the macro SQUARE"),
        ("{ for (int c = 0; c < 3; ++c) y[i] = x[i]; }", "'for' in the loop"),
        ("{ Dtype v = x[i]; Dtype& w = v; y[i] = w; }", "an address or a reference is taken"),
        ("{ Dtype v[2] = {0, 1}; y[i] = v[0] + x[i]; }", "v[...] is not a parameter"),
        ("{ y[i] = f(s)[2] + x[i]; }", ")[...] is not a parameter"),
        ("{ if (x[i] > 0) return; y[i] = x[i]; }", "a return in the loop"),
        ("{ if (x[i] > 0) break; y[i] = x[i]; }", "a break out of the loop"),
        ("{ int i = 3; y[i] = x[i]; }", "another i"),
        ("{ y[i] = x[i]" + " + 1" * 120 + "; }", [X, Y]),
        ("{ y[i] = x[i]" + " + 1" * 121 + "; }", "a long body"),
        ("{\n#if 1\n y[i] = x[i];\n#endif\n}", "preprocessor lines in the kernel"),
    ],
)
def test_decided(body, windows):
    loop = decided(body)
    if windows is None:
        windows = "no pointer that is always used as [i]"
    assert (loop if isinstance(loop, str) else list(loop.windows)) == windows


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("const Dtype** rows, ", "rows is of type const Dtype**"),
        ("Dtype* const __restrict__ rows, ", ""),
        ("unsigned char* rows, ", ""),
        ("const std::vector<int>* rows, ", "rows is of type const std::vector<int>*"),
    ],
)
def test_types_of_pointers(more, why):
    loop = decided("{ y[i] = x[i]; }", more)
    assert loop == why if why else list(loop.windows) == [X, Y]


@pytest.mark.parametrize(
    "body",
    [
        "{ y[i] = x[i]; }",
        "y[i] = x[i];",
        "if (x[i] > 0) { y[i] = x[i]; s; }",
        "if (x[i] > 0) y[i] = x[i]; else if (s) { s; } else s;",
    ],
)
def test_where_the_loop_stands(body):
    text = KERNEL.format(body=body, more="")
    loop = decided(body)
    assert text[slice(*loop.head)] == "CUDA_KERNEL_LOOP(i, n)" and text[slice(*loop.body)] == body
    assert (loop.index, loop.count) == ("i", "n")
