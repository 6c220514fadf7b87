"""include/aten/numpy.h: py::array_t in and out, compared with numpy."""

import numpy as np
import pytest
from old_torch.conftest import SOURCES, builds

from cuffi.old_torch import cpp_extension


@pytest.fixture(scope="module")
def arrays(session_cache):
    with builds(session_cache):
        return cpp_extension.load("arrays", [SOURCES / "arrays.cpp"])


def test_any_dtype_order_and_list(arrays):
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    for given in (x, x.T, x.astype(np.float16), x.astype(np.int8)[:, ::2], [[1, 2], [3, 4]], x[:0], x > 2):
        got, wanted = arrays.doubled(given), 2 * np.asarray(given, np.float64)
        assert got.dtype == np.float64 and got.shape == wanted.shape and np.array_equal(got, wanted)


def test_by_strides(arrays):
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    for given in (x, x.T, x[::-1, ::2], x.astype(np.float64)):
        assert arrays.sum(given) == pytest.approx(given.astype(np.float64).sum(), rel=1e-5)


def test_memory_is_shared(arrays):
    x = np.zeros(6, np.int32)
    arrays.fill(x[::2], 7)
    assert x.tolist() == [7, 0, 8, 0, 9, 0]
    x.flags.writeable = False
    with pytest.raises(ValueError, match="array is not writeable"):
        arrays.fill(x, 1)
    assert x.tolist() == [7, 0, 8, 0, 9, 0]


def test_noconvert(arrays):
    """An array that C++ would have to copy is refused: what it writes would be lost."""
    x = np.zeros(4, np.int32)
    arrays.fill_itself(x, 3)
    assert x.tolist() == [3, 4, 5, 6]
    for given in (x[::2], x.astype(np.int64), x.astype(">i4"), [1, 2]):
        with pytest.raises(TypeError, match=r"argument 1 `x`: expected numpy\.ndarray i4"):
            arrays.fill_itself(given, 1)


def test_bytes_in_the_other_order(arrays):
    """They are converted for array_t; the memory of a py::array is the user's own."""
    x = np.arange(6.0).reshape(2, 3).astype(">f8")
    assert arrays.sum(x) == 15 and arrays.doubled(x).tolist() == [[0, 2, 4], [6, 8, 10]]
    with pytest.raises(TypeError, match=r"expected numpy\.ndarray of numbers in the processor's order"):
        arrays.facts(x)


def test_fields_and_values(arrays):
    assert arrays.facts(np.zeros((2, 3), np.int16)) == "2 6 2 12 6 1"
    got = arrays.of_values([1, 2.5])
    assert got.dtype == np.float32 and got.tolist() == [1, 2.5]
    assert arrays.element(np.arange(6).reshape(2, 3), 1, 2) == 5
    assert arrays.which(np.zeros(1, np.int32)) == 2 and arrays.which([1.5]) == 1


def test_what_is_no_array_of_numbers(arrays):
    x = np.arange(6).reshape(2, 3)
    for call, kind, text in (
        (lambda: arrays.sum("text"), TypeError, "argument 1: expected numpy.ndarray f4, got str"),
        (lambda: arrays.sum([[1], [2, 3]]), TypeError, "argument 1: expected numpy.ndarray f4, got list"),
        (lambda: arrays.sum(None), TypeError, "argument 1: expected numpy.ndarray f4, got None"),
        (lambda: arrays.sum(np.zeros(3)), ValueError, "incorrect number of dimensions: 1; expected 2"),
        (lambda: arrays.element(x, 2, 0), IndexError, "index 2 is out of bounds for axis 0 with size 2"),
        (lambda: arrays.element(x, 0, -1), IndexError, "index -1 is out of bounds"),
        (lambda: arrays.element(x[0], 0, 0), ValueError, "incorrect number of dimensions"),
    ):
        with pytest.raises(kind, match=text):
            call()
