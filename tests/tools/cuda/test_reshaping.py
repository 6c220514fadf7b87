"""Bodies in a form with early returns and without changed parameters."""

import pytest

from tools.cuda.outline import Parameter
from tools.cuda.reshaping import with_own_parameters, with_returns

MEETINGS = {"__syncthreads"}
IFS = {
    "{ if (i < n) { a(); __syncthreads(); } }": "{ if (!(i < n)) return; { a(); __syncthreads(); } }",
    "{ if (i < n) { if (k) { __syncthreads(); } } }": (
        "{ if (!(i < n)) return; { if (!(k)) return; { __syncthreads(); } } }"
    ),
    "{ if (i < n) { a(); } }": None,
    "{ if (i < n) { __syncthreads(); } b(); }": None,
    "{ if (i < n) { __syncthreads(); } else { b(); } }": None,
    "{ if (int k = n) { __syncthreads(); } }": None,
    "{ for (;;) { if (i < n) { __syncthreads(); } } }": None,
}


@pytest.mark.parametrize("body", IFS)
def test_last_if(body):
    assert with_returns(body, MEETINGS) == (IFS[body] or body)


def test_changed_parameters():
    parameters = [
        Parameter("const float *", "x"),
        Parameter("int", "n"),
        Parameter("T &", "r"),
        Parameter("int", "m"),
    ]
    body = "{ x += n; ++m; y.m = s->x; r = 1; }"
    assert with_own_parameters(body, parameters) == (
        "{ const float * caffe_own_x = x; int caffe_own_m = m; caffe_own_x += n; ++caffe_own_m; y.m = s->x; r = 1; }"
    )
    assert with_own_parameters("{ y = x[n] + m == 2; }", parameters) == "{ y = x[n] + m == 2; }"
