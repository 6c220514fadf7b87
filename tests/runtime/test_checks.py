"""Checks of arguments: accepted values, and the errors."""

import numpy as np
import pytest
import torch

from cuffi.runtime import CaffeTypeError, CaffeValueError
from cuffi.runtime.checks import Checks

checks = Checks("foo")


@pytest.mark.parametrize("value", [0, 7, np.int64(3), 2**31 - 1])
def test_integers(value):
    assert checks.integer("n", value, 0) == int(value) and type(checks.integer("n", value, 0)) is int


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (-1, CaffeValueError, "foo: n: expected an int from 0 to 2147483647, got -1"),
        (2**31, CaffeValueError, "got 2147483648"),
        (True, CaffeTypeError, "foo: n: expected an int, at least 0, got bool True"),
        (1.0, CaffeTypeError, "got float 1.0"),
        (None, CaffeTypeError, "got NoneType None"),
    ],
)
def test_what_is_no_integer(value, error, words):
    with pytest.raises(error) as raised:
        checks.integer("n", value, 0)
    assert words in str(raised.value)


def test_pairs():
    assert checks.pair("k", 3, 1) == (3, 3)
    assert checks.pair("k", [1, np.int32(2)], 1) == (1, 2)
    assert checks.pair("k", torch.zeros(4, 5).shape, 1) == (4, 5)
    for wrong in (0, (1, 0), [3], (1, 2, 3), 2**31):
        with pytest.raises(CaffeValueError, match=r"^foo: k: expected"):
            checks.pair("k", wrong, 1)
    for wrong in (True, (1, 2.0), "33"):
        with pytest.raises(CaffeTypeError, match=r"^foo: k: expected"):
            checks.pair("k", wrong, 1)


def test_tensors():
    checks.check_tensor("x", torch.zeros(2))
    checks.check_tensor("x", torch.zeros(2, device="meta"), meta=True)
    for wrong, words in (
        ([1.0], "a tensor, got list"),
        (torch.zeros(2, device="meta"), "a tensor on cpu or cuda, got meta float32 [2]"),
        (torch.zeros(2, 2).to_sparse(), "a dense tensor, got sparse_coo cpu float32 [2, 2]"),
    ):
        with pytest.raises(CaffeTypeError) as raised:
            checks.check_tensor("x", wrong)
        assert str(raised.value).startswith(f"foo: x: expected {words}")


def test_a_check_describes_a_tensor_and_shows_all_else():
    with pytest.raises(CaffeValueError, match=r"^foo: x: expected 3 rows, got cpu float64 \[2\]$"):
        checks.check(False, "x", "3 rows", torch.zeros(2, dtype=torch.float64))
    checks.check(True, "x", "3 rows", 2)
