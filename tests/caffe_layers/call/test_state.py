"""A layer that keeps values in its members gets a warning when its calls overlap. On layers of caffe_zoo."""

import warnings

import pytest
import torch

from cuffi.caffe_layers.call.state import _others, same


def test_state_and_overlapping_calls(zoo, place):
    m, x = place(zoo.Counting()), place.draw(2, grad=True)
    with pytest.warns(
        UserWarning, match="Counting keeps values in its members, and calls of this module overlap"
    ):
        tops = [m(x) for _ in range(3)]
    assert [int(top[0]) for top in tops] == [1, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once only
        assert int(m(x)[0]) == 1


def test_calls_one_after_the_other_follow_the_state(zoo, place):
    m, x = place(zoo.Counting()), place.draw(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [int(m(x)[0]) for _ in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["Ramp", "Rewriting", "Noise", "Running", "Positive", "Writing", "Sided"])
def test_other_layers_are_quiet(zoo, place, name):
    """Random numbers, parameters that Forward writes, and sizes that depend on values are no such state."""
    bottoms = [place.draw(4, grad=True) for _ in range(2 if name in ("Rewriting", "Writing") else 1)]

    def two_calls():
        m = place(getattr(zoo, name)())
        torch.manual_seed(5)
        m.setup(*bottoms)
        return m(*bottoms), m(*bottoms)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        overlapping = two_calls()
    with torch.no_grad():
        torch.testing.assert_close(overlapping, two_calls())  # the look draws no numbers


def test_other_values_for_the_look():
    assert _others([torch.tensor([[1.0, 2], [3, 4]]), torch.tensor(5.0)])[0].tolist() == [[1, 2], [1, 2]]


def test_results_that_are_the_same():
    one = torch.tensor([1.0, float("nan")])
    assert same(one, one.clone()) and not same(one, one[:1]) and not same(one, -one)
    assert same(one, one * (1 + 1e-7)) and not same(one, one * 1.01)
