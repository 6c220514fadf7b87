"""Calls of functions in which threads meet become these functions' text."""

import pytest
from support.typed import not_none

from tools.cuda.analysis import Unit
from tools.cuda.expanding import expanded
from tools.cuda.reasons import Reason

HEAD = """
__device__ float sum(float v) { v += __shfl_xor_sync(~0u, v, 1); return v; }
template <typename T, int N = 4> __device__ T tile(T v) { T own = v; own += __shfl_xor_sync(~0u, own, N); return own; }
template <typename T> __device__ T twice(const T v) { return tile<T>(v) * 2; }
__device__ void change(float& v, const float* from) { v += __shfl_xor_sync(~0u, from[0], 1); }
__device__ float other(float v) { return v; }
__device__ float many(float v) { return sum(v); }
__device__ float many(double v) { return sum(v); }
__device__ float many(float v, int by, float at = 0.5f) { return sum(v) * by + at; }
using Inner = float (*)(float);
template <Inner inner> __device__ float by(float v) { __syncwarp(); return inner(v); }
__device__ float early(float v) { if (v > 0) return 1; return sum(v); }
"""
KERNEL = "__global__ void k(float* y, const float* x, double d) {%s}"


def text_of(body: str) -> str | None:
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    text = expanded(unit.main, unit.main.functions[-1], unit.meetings)
    return None if isinstance(text, Reason) else " ".join(text.split())


@pytest.mark.parametrize(
    "body, wanted",
    [
        (
            "float v = x[0]; y[0] = sum(v) / 2;",
            "{float v = x[0]; float caffe_in1; { float caffe_in1_v = (v); caffe_in1_v += __shfl_xor_sync ( ~ 0u ,"
            " caffe_in1_v , 1 ) ; caffe_in1 = caffe_in1_v ; } y[0] = caffe_in1 / 2;}",
        ),
        (
            "double v = d; if (d > 0) v = tile(v);",
            "{double v = d; if (d > 0) { double caffe_in1; { double caffe_in1_v = (v); double caffe_in1_own ="
            " caffe_in1_v ; caffe_in1_own += __shfl_xor_sync ( ~ 0u , caffe_in1_own , 4 ) ; caffe_in1 ="
            " caffe_in1_own ; } v = caffe_in1; }}",
        ),
        (
            "float v = 1; change(v, x + 1);",
            "{float v = 1; { const float * caffe_in1_from = (x + 1); v += __shfl_xor_sync ( ~ 0u ,"
            " caffe_in1_from [ 0 ] , 1 ) ; } }",
        ),
        ("y[0] = other(x[0]);", "{y[0] = other(x[0]);}"),
        # What is not replaced.
        ("float v = 1; v = early(v);", None),
        ("float v = 1; v = v > 0 && sum(v) > 0;", None),
        ("float v = 1; v = v > 0 ? sum(v) : v;", None),
        ("float v = 1; while (sum(v) > 0) v -= 1;", None),
        ("auto v = x[0]; v = tile(v);", None),  # of which type?
        ("float v = tile(x[0] + 1);", None),
        ("float v = 1; v = tile(v * 1e-3);", None),  # a double
        ("float v = 1; v = tile(v + 0.5);", None),
        ("float v = 1; v = tile((double)v);", None),
        ("float v = 1; v = tile(v * pick(v));", None),
        ("float v = 1; int n = 2; v = tile(v * n);", None),
        ("int v = 1; v = many(v);", None),
    ],
)
def test_texts(body, wanted):
    assert text_of(body) == wanted


def test_a_template_within_another_one_and_explicit_arguments():
    text = not_none(text_of("float v = 1; v = twice(v) + tile<float, 16>(v);"))
    assert text.count("__shfl_xor_sync") == 2 and "tile" not in text and ", 4 )" in text and ", 16 )" in text


def test_overloads_defaults_functions_and_deduced_types():
    text = not_none(text_of("float v = 1; v = many(v); v = by<sum>(v); y[0] = tile(x[0]) + tile(v * 2.f);"))
    assert text.count("__shfl_xor_sync") == 4 and "many" not in text
    text = not_none(text_of("float v = many(3, 4);"))
    assert "caffe_in1_at = (0.5f);" in text and "int caffe_in1_by = (4);" in text


def test_lines_stay():
    body = "\n float v = 1;\n v = sum(\n  v) + 1;\n"
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    text = not_none(expanded(unit.main, unit.main.functions[-1], unit.meetings))
    assert text.count("\n") == body.count("\n")
