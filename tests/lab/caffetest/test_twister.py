"""The random numbers of Caffe's tests are boost's."""

import numpy
import pytest
from support.twister import BERNOULLI, BITS, NORMAL, UNIFORM, reference

from lab.caffetest.twister import Twister


@pytest.mark.parametrize("seed", [1701, 0, 5])
def test_draws_are_boosts(seed):
    drawn, word = Twister(seed), reference(seed)
    assert drawn.fill(BITS, 3, 2, 0, 0).tolist() == [word() for _ in range(3)]
    got = drawn.fill(UNIFORM, 4, 1, -1, 3)
    assert got.dtype == numpy.float64 and got.tolist() == [word() / 2**32 * 4 - 1 for _ in range(4)]
    assert drawn.fill(BERNOULLI, 20, 2, 0.3, 0).tolist() == [
        int(word() <= 0.3 * 0xFFFFFFFF) for _ in range(20)
    ]
    # Two normal values of two draws; of an odd count the last one is lost.
    pairs = [(word() / 2**32, word() / 2**32) for _ in range(2)]
    radii = [(first, (-2 * numpy.log(1 - second)) ** 0.5) for first, second in pairs]
    wanted = [r * f(2 * numpy.pi * a) for a, r in radii for f in (numpy.cos, numpy.sin)][:3]
    numpy.testing.assert_allclose(drawn.fill(NORMAL, 3, 1, 5, 2), 5 + 2 * numpy.array(wanted), rtol=1e-12)
    assert drawn.fill(BITS, 1, 2, 0, 0).tolist() == [word()]
    assert drawn.fill(NORMAL, 4, 0, 0, 1).dtype == numpy.float32


def test_a_seed_begins_anew():
    drawn = Twister()
    first = drawn.words(2).tolist()
    assert drawn.words(2).tolist() != first == [(word := reference(1701))(), word()]
    drawn.seed(1701 + 2**32)
    assert drawn.words(2).tolist() == first
    drawn.seed(2)
    assert drawn.words(2).tolist() != first


def test_what_rounds_to_one_is_drawn_again(monkeypatch):
    drawn, words = Twister(), iter([2**32 - 1, 2**31, 2**32 - 200, 2**30])
    monkeypatch.setattr(
        drawn, "words", lambda count: numpy.array([next(words) for _ in range(count)], numpy.uint64)
    )
    assert drawn.unit(2, numpy.float32).tolist() == [0.5, 1 - 2**-24]
