"""The elements that a kernel's loop certainly uses, and no more."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.certain import touched_elements


def touched(body: str, head: str = "CUDA_KERNEL_LOOP(i, n)"):
    text = f"__global__ void k(const int n, const int m, const float* a, float* b) {{ {head} {body} }}"
    unit = Unit(text, "k.cu")
    return touched_elements(unit.main, unit.kernels(unit.main)[0])


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ("{ b[i] = a[i]; }", ["a", "b"]),
        ("b[i] = a[i];", ["a", "b"]),
        ("{ b[i] = a[n - 1 - i]; }", ["b"]),
        ("{ if (a[i] > 0) b[i] = 1; }", ["a"]),
        ("{ if (m > 0) { b[i] = 1; } else { a[i]; } }", []),
        ("{ b[i] = m ? a[i] : 0; }", ["b"]),
        ("{ b[i] = 0; if (m) return; a[i]; }", ["b"]),
        ("{ if (m) continue; b[i] = a[i]; }", []),
        ("{ float s = 0; for (int j = 0; j < m; ++j) s += a[i]; b[i] = s; }", ["b"]),
        ("{ for (int j = 0; j < m; ++j) { if (j > 2) break; } b[i] = 0; }", ["b"]),
        ("{ for (int j = 0; j < m; ++j) for (;;) break; b[i] = 0; }", ["b"]),
        ("{ while (m) { if (a[0]) return; } b[i] = 0; }", []),
        ("{ do { b[i] = 0; } while (0); }", []),
        ("{ switch (m) { case 0: b[i] = a[i]; } }", []),
        ("{ a += m; b[i] = a[i]; }", ["b"]),
        ("{ const float* row = a; b[i] = row[i] + a[i]; }", ["b"]),
        ("{ float a[3]; b[i] = a[i]; }", ["b"]),
        ("{ b[i / 2] = a[i]; }", ["a"]),
    ],
)
def test_pointers_of_every_element(body, pointers):
    assert touched(body) == ("n", pointers)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("if (m) CUDA_KERNEL_LOOP(i, n)", "{ b[i] = 0; }"),
        ("if (m) return; CUDA_KERNEL_LOOP(i, n)", "{ b[i] = 0; }"),
        ("CUDA_KERNEL_LOOP(j, m) { b[j] = 0; } CUDA_KERNEL_LOOP(i, n)", "{ b[i] = 0; }"),
        ("CUDA_AXIS_KERNEL_LOOP(i, n, x)", "{ b[i] = 0; }"),
        ("\n#if 1\nCUDA_KERNEL_LOOP(i, n)", "{ b[i] = 0; }\n#endif\n"),
        ("\n\t#if 1\nCUDA_KERNEL_LOOP(i, n)", "{ b[i] = 0; }\n#endif\n"),
        ("int i = threadIdx.x;", "b[i] = 0;"),
        ("CUDA_KERNEL_LOOP(i, n)", "{ i = i / 2; b[i] = 0; }"),
        ("CUDA_KERNEL_LOOP(i, n)", "{ ++i; b[i] = 0; }"),
    ],
)
def test_loops_that_say_nothing(head, body):
    assert touched(body, head) is None


def test_the_count_is_what_the_loop_says():
    assert touched("{ b[i] = 0; }", "CUDA_KERNEL_LOOP(i, n*m)") == ("n * m", ["b"])


def test_a_bracket_without_its_partner():
    """Text that the compiler will refuse must not stop an earlier tool."""
    body = "{ if (a[i] > 0) { b[i] = min(max(a[i], 0), m); } }"
    for at in (k for k, letter in enumerate(body) if letter in "()[]"):
        assert touched(body[:at] + body[at + 1 :]) is None
