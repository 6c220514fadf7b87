"""The names of arrays in a line."""

import pytest

from cuffi.judging.arrays import array_of, kernel_text, origin, read, shared_by, written


@pytest.mark.parametrize(
    "line, writes, reads",
    [
        ("if (i < n && values[i] % 2 == 0) *total += 1;", "total", "total values"),
        ("y[i] = x[i];", "y", "x"),
        ("s[t] += s[t + d];", "s", "s"),
        ("atomicAdd(&hist[v[i]], 1);", "hist", "hist v"),
        ("p->x = q[3];", "p", "q"),
        ("float v = *p;", "", "p"),
        ("t[threadIdx.y][threadIdx.x] = in[y * w + x];", "t", "in"),
        ("const int e = data[idx[i]];", "", "data idx"),
        ("++a[b[i]];", "a", "a b"),
        ("*(y + i) = 2 * *(x + i);", "y", "x"),
        ("if (a[0] < 3) b[threadIdx.x] = 1;", "b", "a"),
        ("int i = blockIdx.x * blockDim.x;", "", ""),
        ("to[(*more)++] = next;", "to more", "more"),
        ("to[(*(more) += 1) - 1] = next;", "to more", "more"),
    ],
)
def test_what_a_line_writes_and_reads(line, writes, reads):
    assert written(line) == set(writes.split()) and read(line) == set(reads.split())


HEAD = "__global__ void k(float* y, const float* x) {\n  float* own = y + blockIdx.x * 4;\n"


def test_a_pointer_of_its_own_is_of_a_parameter():
    assert origin("own", HEAD) == "y" and origin("x", HEAD) == "x"
    assert origin("p", "auto* p = reinterpret_cast<float4*>(x); ") == "x"
    assert array_of("own[1] = x[2];", True, HEAD) == "y" and array_of("z = a[1] + b[2];", False) == ""


def test_the_array_of_a_race():
    assert shared_by(("own[i] = 1;", "z = y[3];"), "written, then read", HEAD) == "y"
    assert shared_by(("s[i] = 1;", "s[i] = 2;"), "written twice", "") == "s"
    assert shared_by(("s[i] = 1;", "z = y[3];"), "written, then read", HEAD) == ""
    assert shared_by(("*total += 1;", "*total += 1;"), "written, then read", "") == "total"
    # What both sides change by atomics alone does not race.
    counted = "if (atomicCAS(&seen[next], 0, 1) == 0) to[(*(more) += 1) - 1] = next;"
    assert shared_by((counted, counted), "written, then read", "") == "more"
    marked = "if (seen[next] == 0) { seen[next] = 1; to[atomicAdd(more, 1)] = next; }"
    assert shared_by((marked, marked), "written, then read", "") == "seen"
    assert shared_by(("atomicAdd(n, 1);", "x = *n;"), "written, then read", "") == "n"


def test_the_text_of_a_kernel(tmp_path):
    (tmp_path / "k.cu").write_text(f"int before[3];\n{HEAD}  own[0] = 1;\n  own[1] = 2;\n}}\n")
    assert kernel_text(f"{tmp_path / 'k.cu'}:4") == f"{HEAD}  own[0] = 1;"
    assert kernel_text("/no.cu:3") == kernel_text("") == ""
