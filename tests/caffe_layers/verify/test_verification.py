"""make verify's judgement: differences between two ways, the checked gradients, and races."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cuffi.base import CaffeError
from cuffi.caffe_layers.verify import verification
from cuffi.caffe_layers.verify.gradient import flat, relative
from cuffi.caffe_layers.verify.probe import NoCode
from cuffi.caffe_layers.verify.table import NO_GRADIENT, RIGHT, WRONG, Row
from cuffi.caffe_layers.verify.verification import ALIKE, Verification, moved


class Refused(CaffeError):
    """An error of the runtime."""


@pytest.fixture
def judge():
    made: Any = object.__new__(Verification)
    made.crashed, made.codes = {}, ["a code"]
    return made


def compared(judge, one, other, dtype=torch.float32, draws=False, column="forward"):
    row = Row("s", "c", "float", verdict=RIGHT)
    judge.compare(row, {column: one}, None if other is None else {column: other}, dtype, draws)
    return getattr(row, column), row.verdict, len(row.details)


@pytest.mark.parametrize("dtype", list(ALIKE), ids=str)
@pytest.mark.parametrize("column", ["forward", "backward"])
def test_two_ways_may_differ_by_rounding(judge, dtype, column):
    """They may differ by a share of the largest value, or of 1 where that is less."""
    limit = ALIKE[dtype]
    for largest in (0.1, 1.0, 100.0):
        other = torch.tensor([largest, 0.0]).double()
        for factor, verdict in ((0.9, RIGHT), (1.1, WRONG)):
            difference = torch.tensor([0.0, factor * limit * max(1.0, largest)]).double()
            said = compared(judge, other + difference, other, dtype, column=column)
            assert said == (f"{factor * limit:.1e}", verdict, int(verdict == WRONG))


def test_what_two_ways_may_differ_by_is_the_limit_itself(judge, monkeypatch):
    monkeypatch.setitem(verification.ALIKE, torch.float32, 2.0**-10)
    one = torch.ones(3).double()
    for other, verdict in ((1 - 2.0**-10, RIGHT), (1 - 2.0**-10 - 2.0**-50, WRONG)):
        assert compared(judge, one, other * one)[1] == verdict


@pytest.mark.parametrize(
    ("columns", "own", "first", "verdict", "said"),
    [
        ("backward", RIGHT, WRONG, RIGHT, "the first way is wrong"),
        ("backward", RIGHT, RIGHT, WRONG, "from the first way"),
        ("backward", WRONG, RIGHT, WRONG, "3 of 9 elements"),
        ("forward", RIGHT, RIGHT, WRONG, "two functions, and each Backward fits its own Forward"),
        ("forward", RIGHT, WRONG, WRONG, "its Backward fits its own Forward, the first way's does not"),
        (
            "forward backward",
            RIGHT,
            WRONG,
            WRONG,
            "its Backward fits its own Forward, the first way's does not",
        ),
        ("forward", NO_GRADIENT, RIGHT, WRONG, "from the first way"),
    ],
)
def test_which_of_two_ways_is_wrong(judge, columns, own, first, verdict, said):
    """Both gradient checks decide."""
    x = torch.ones(3).double()
    row = Row("s", "c", "float", verdict=own, remark="3 of 9 elements" if own == WRONG else "")
    found = dict.fromkeys(("forward", "backward"), x)
    judge.compare(
        row, found, found | dict.fromkeys(columns.split(), x + 1) | {"verdict": first}, torch.float32, False
    )
    assert row.verdict == verdict and row.remark.endswith(said) and len(row.details) == len(columns.split())


def test_what_cannot_be_compared(judge):
    x = torch.ones(3).double()
    assert compared(judge, x, None) == ("-", RIGHT, 0)
    assert compared(judge, x, x + 1, draws=True) == ("random", RIGHT, 0)
    assert compared(judge, x, x[:2]) == ("another shape", WRONG, 1)
    assert compared(judge, x[:0], x[:0]) == ("0.0e+00", RIGHT, 0)
    assert compared(judge, x * float("nan"), x) == ("inf", WRONG, 1)
    row = Row("s", "c", "float", verdict=RIGHT)
    judge.compare(row, {"forward": x}, {"forward": x, "backward": x}, torch.float32, False)
    assert (row.forward, row.backward) == ("0.0e+00", "-")


def test_relative():
    """The error is relative to the larger of the two, or to 1. NaN is infinitely far."""
    one, other = torch.tensor([0.5, 4.0, -2.0, 3.0]), torch.tensor([0.25, 5.0, 2.0, float("nan")])
    assert relative(one, other).tolist() == pytest.approx([0.25, 0.2, 2.0, float("inf")])
    assert flat([torch.ones(2, 1), torch.zeros(1).half()]).tolist() == [1, 1, 0] and flat([]).shape == (0,)


def test_constant_blobs_are_moved():
    def generator():
        return torch.Generator().manual_seed(3)

    noise = torch.rand(4, generator=generator(), dtype=torch.float64)
    for value in (2.0, -3.0):
        assert torch.equal(moved(torch.full((4,), value).double(), generator()), value * (0.5 + noise))
    assert torch.equal(moved(torch.zeros(4).double(), generator()), noise)
    for blob in (torch.tensor([1.0, 2]), torch.zeros(0), torch.tensor([0.0, 0, 1])):
        assert moved(blob, generator()) is blob


@pytest.mark.parametrize(
    "refuses, smooth, wanted, said",
    [
        (lambda wanted: None, [True, True], [True, True, True], []),
        (lambda wanted: None, [True, False], [True, False, True], []),
        (lambda wanted: wanted[1], [True, True], [True, False, True], ["no gradient for bottom 1: refused"]),
        (lambda wanted: wanted[0] and wanted[1], [True, True], [False] * 3, ["refused"]),
        (lambda wanted: any(wanted), [True, True], [False] * 3, ["refused"]),
        (lambda wanted: wanted[2], [True, True], [False] * 3, ["refused"]),
        (None, [True, True], [False] * 3, ["Backward: no code"]),
    ],
    ids=["all", "a label", "not the second", "not both", "none", "no blob", "no code"],
)
def test_whose_gradients_are_asked_for(judge, monkeypatch, refuses, smooth, wanted, said):
    """The layer has two bottoms and a blob."""

    def backward(probe, asked):
        if refuses is None:
            raise NoCode("no code")
        if refuses(asked):
            raise Refused("refused")

    monkeypatch.setattr(judge, "run_backward", backward)
    setting = SimpleNamespace(module=SimpleNamespace(propagate_down=None), smooth=smooth)
    probe = SimpleNamespace(bottoms=[1, 2], blobs=[3])
    assert judge.find_wanted(probe, setting) == (wanted, said)


def test_propagate_down_says_whose_gradients_count(judge, monkeypatch):
    monkeypatch.setattr(judge, "run_backward", lambda probe, asked: None)
    setting = SimpleNamespace(module=SimpleNamespace(propagate_down=[False, True]), smooth=[True, True])
    assert judge.find_wanted(SimpleNamespace(bottoms=[1, 2], blobs=[]), setting) == ([False, True], [])
