"""The launchers of kernels."""

import pytest
from support.new_layer import derive, kernel


@pytest.mark.parametrize(
    ("given", "pointer"), [(["float", "half"], "float *"), (["float", "double", "half"], "void *")]
)
def test_half_types_are_left_out(given, pointer):
    launches = "".join(f"Run<{name}><<<1, 1>>>(x);" for name in given)
    text = "using half = __half;\n" + kernel("T* x", "x[0] = 0;", "template <typename T>", launches)
    assert derive(text)[0]["Run"].arguments[0].type == pointer
