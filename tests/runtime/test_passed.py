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


# The names of three launchers, and which of them are grid and block. The second kernel has a grid_y of its own.
LINE = ("y", "n", "grid", "block"), ("grid", "block")
SPACE = ("y", "grid_x", "grid_y", "grid_z", "block"), ("grid_x", "grid_y", "grid_z", "block")
OWN = ("y", "grid_y", "grid_x", "grid_y_", "grid_z", "block"), ("grid_x", "grid_y_", "grid_z", "block")


@pytest.mark.parametrize(
    ("launcher", "arguments", "named", "expected"),
    [
        (LINE, (0, 1), dict(grid=2, block=3), (0, 1, 2, 3)),
        (LINE, (0, 1), dict(grid_x=2, block_x=3), (0, 1, 2, 3)),
        (LINE, (0, 1), dict(grid_x=2, grid_y=1, grid_z=1, block=(3, 1)), (0, 1, 2, 3)),
        (LINE, (0, 1, 2), dict(block_x=3), (0, 1, 2, 3)),
        (SPACE, (0,), dict(grid_x=2, block_x=3), (0, 2, 1, 1, 3)),
        (SPACE, (0,), dict(grid=2, block=3), (0, 2, 1, 1, 3)),
        (SPACE, (0,), dict(grid=(2, 5), block=3), (0, 2, 5, 1, 3)),
        (SPACE, (0,), dict(grid=[2, 5, 6], block=[3]), (0, 2, 5, 6, 3)),
        (SPACE, (0, 2, 5), dict(block=3), (0, 2, 5, 1, 3)),
        (OWN, (0, 7), dict(grid_x=2, block=3), (0, 7, 2, 1, 1, 3)),
        (OWN, (0, 7), dict(grid=(2, 5), block=3), (0, 7, 2, 5, 1, 3)),
        (OWN, (0,), dict(grid_y=7, grid_x=2, block=3), (0, 7, 2, 1, 1, 3)),
    ],
)
def test_grid_and_block_are_called_the_same_in_every_launcher(launcher, arguments, named, expected):
    names, geometry = launcher
    assert in_order(names, arguments, named, geometry) == expected


@pytest.mark.parametrize(
    ("launcher", "named", "why"),
    [
        (LINE, dict(n=1, grid_x=2, grid_y=2, block=3), "grid_y: this kernel's grid has one dimension, grid"),
        (LINE, dict(n=1, grid=2, grid_x=2, block=3), "grid is given twice"),
        (LINE, dict(n=1, grid_y=1, block=3), "grid: missing"),
        (SPACE, dict(grid=(1, 2, 3, 4), block=3), "grid: expected at most three sizes"),
        (SPACE, dict(grid=2, grid_x=2, block=3), "grid_x is given twice"),
        (SPACE, dict(grid_y=2, block=3), "grid_x: missing"),
        (OWN, dict(grid_x=2, block=3), "grid_y: missing"),
        ((("y", "n"), ()), dict(n=1, grid=2), "no argument is called 'grid'"),
    ],
)
def test_grid_and_block_that_are_wrong(launcher, named, why):
    names, geometry = launcher
    with pytest.raises(CaffeTypeError, match=why):
        in_order(names, (0,), named, geometry)


@pytest.mark.parametrize(
    "named",
    [dict(block=64), dict(block_x=64), dict(block_x=64, block_y=1, block_z=1), dict(block=(64, 1)), {}],
)
def test_the_file_s_own_block_may_be_repeated(named):
    assert in_order(("y", "grid"), (0,), dict(grid=3) | named, ("grid",), {"block": [64, 1, 1]}) == (0, 3)


@pytest.mark.parametrize(
    ("named", "why"), [(dict(block=32), "block_x: 32, but"), (dict(block_y=2), "block_y: 2, but")]
)
def test_another_block_than_the_file_s_own(named, why):
    with pytest.raises(CaffeTypeError, match=f"{why} the file launches this kernel with"):
        in_order(("y", "grid"), (0,), dict(grid=3) | named, ("grid",), {"block": [64, 1, 1]})


def test_the_file_s_own_shared_memory_may_be_repeated():
    launched = {"shared_bytes": [256, 1, 1]}
    assert in_order(("y",), (0,), dict(shared_bytes=256), (), launched) == (0,)
    with pytest.raises(CaffeTypeError, match="shared_bytes: 128, but the file launches this kernel with 256"):
        in_order(("y",), (0,), dict(shared_bytes=128), (), launched)


def test_a_kernel_s_own_parameter_is_no_block():
    assert in_order(("y", "block"), (0,), dict(block=7), (), {"block": [64, 1, 1]}) == (0, 7)


def test_without_the_launcher_s_word_no_name_is_left_out():
    """A kernel may have a grid_y of its own: only the declaration tells."""
    with pytest.raises(CaffeTypeError, match="grid_y, grid_z: missing"):
        in_order(SPACE[0], (0,), dict(grid_x=1, block=1))
