"""The arguments of a launcher's call: tuples, dicts and names."""

import pytest

from cuffi import CaffeTypeError
from cuffi.runtime.passed import in_order

NAMES = ("y", "p_n", "p_k_0", "p_k_1", "p_v_x", "p_v_y", "n")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 1, 2, 3, 4, 5, 6), {}),
        ((0, 1, (2, 3), (4, 5), 6), {}),
        ((0, {"n": 1, "k": (2, 3), "v": (4, 5)}, 6), {}),
        ((0, {"v": [4, 5], "k_1": 3, "k_0": 2, "n": 1}, 6), {}),
        ((0, 1, 2), dict(p_v_y=5, p_v_x=4, p_k_1=3, n=6)),
        ((0, {"n": 1, "k": (2, 3), "v": (4, 5)}), {"n": 6}),
        ((), dict(zip(NAMES, range(7), strict=True))),
    ],
)
def test_one_value_for_each_name(arguments, named):
    assert in_order(NAMES, arguments, named) == tuple(range(7))


@pytest.mark.parametrize(
    ("arguments", "named", "why"),
    [
        ((0, {"n": 1, "k": (2, 3)}, 4, 5, 6), {}, "p_v_x: missing in a dict"),
        ((0, {"n": 1, "k": (2,), "v": (4, 5)}, 6), {}, "p_k: expected more than 1 values"),
        ((0, {"n": 1, "k": (2, 3, 4), "v": (4, 5)}, 6), {}, "p_k: expected 2 values, got 3"),
        ((0, {"n": 1, "k": (2, 3), "v": (4, 5), "z": 1}, 6), {}, "p_z: expected no values, got 1"),
        ((0, {"n": 1, "k": 2, "v": (4, 5)}, 6), {}, r"p_k: expected a tuple, got 2"),
        ((0, {"z": 1}), {}, "p_n: a dict has no such field: it has z"),
        ((0, 1, 2, 3, 4, 5, 6, {"n": 1}), {}, "a dict, after the last argument"),
        ((0, 1), {"p_n": 1}, "p_n is given twice"),
        ((0, 1), {"m": 1}, "no argument is called 'm'"),
        ((0, 1), {"n": 1}, "p_k_0, p_k_1, p_v_x, p_v_y: missing"),
    ],
)
def test_what_is_wrong(arguments, named, why):
    with pytest.raises(CaffeTypeError, match=why):
        in_order(NAMES, arguments, named)


def test_too_few_are_for_the_launcher_to_tell():
    assert in_order(NAMES, (0, (1, 2)), {}) == (0, 1, 2)
