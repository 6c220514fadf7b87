"""The check by finite differences: which elements it tests, and when they are wrong."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cuffi.caffe_layers.verify.gradient import GradientCheck, sample


class Largest:
    """The largest of a bottom's values, as the prober of a layer gives it. Backward goes to the first one."""

    def __init__(self, values: list[float], dtype: torch.dtype):
        self.bottoms, self.blobs = [torch.tensor(values, dtype=dtype)], []

    def run_forward(self, wanted=None):
        self.tops = [self.bottoms[0].max().view(1)]
        return self.tops

    def run_backward(self, diffs, wanted, fill=0.0):
        diff = torch.zeros_like(self.bottoms[0])
        diff[self.bottoms[0].argmax()] = diffs[0][0]
        return [diff]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_no_number_is_no_gradient(number):
    """NaN from Backward and NaN from differences do not agree."""
    probe: Any = Largest([1.0, 0.5], torch.float64)
    probe.run_backward = lambda *_: [torch.full_like(probe.bottoms[0], number)]
    found = GradientCheck(probe, [True]).run()
    assert found.wrong_count == 4 and found.error == float("inf")


@pytest.mark.parametrize("gap, wrong", [(1e-1, 0), (3e-5, 0), (3e-6, 0), (0, 4)])
def test_values_close_to_each_other(gap, wrong):
    """Steps in float are wider than these gaps; a tie has no gradient."""
    values = [1.0, 1.0 - gap, 0.5]
    check = GradientCheck(Largest(values, torch.float32), [True], lambda: Largest(values, torch.float64))
    assert check.run().wrong_count == wrong


class Slow:
    """The sum of two bottoms' squares. Each call takes a second, of a clock of its own."""

    def __init__(self, factor: float):
        self.factor, self.seconds = factor, 0
        self.bottoms, self.blobs = [torch.rand(300, dtype=torch.float64) for _ in range(2)], []

    def run_forward(self, wanted=None):
        self.seconds += 1
        self.tops = [torch.stack([b.square().sum() for b in self.bottoms]).sum().view(1)]
        return self.tops

    def run_backward(self, diffs, wanted, fill=0.0):
        self.seconds += 1
        return [self.factor * 2 * b * diffs[0] for b in self.bottoms]


@pytest.mark.parametrize(("factor", "checked", "wrong"), [(1.0, 4, 0), (0.5, 2, 2)])
def test_a_slow_layer_has_an_end(monkeypatch, factor, checked, wrong):
    """The check ends after one element of each tensor, or after a wrong one."""
    probe = Slow(factor)
    monkeypatch.setattr(
        "cuffi.caffe_layers.verify.gradient.time", SimpleNamespace(perf_counter=lambda: probe.seconds)
    )
    found = GradientCheck(probe, [True, True], None, 0.4).run()
    assert (found.checked, found.wrong_count, found.sampled) == (checked, wrong, True)
    assert probe.seconds <= 20
    probe = Slow(factor)
    monkeypatch.undo()
    assert GradientCheck(probe, [True, True], None, 1e9).run().checked == 1200


def test_what_is_looked_at_of_many():
    """Half of the positions are preferred ones, which come first."""
    telling = torch.zeros(100_000, dtype=torch.bool)
    telling[[5, 70_000]] = True
    places = sample(len(telling), 6, telling)
    assert len(set(places)) == 6 and set(places[:2]) == {5, 70_000} and max(places) < len(telling)
    assert telling[sample(len(telling), 2, telling)].sum() == 1
    assert sample(3, 6, telling[:3]) == [0, 1, 2]


def test_nothing_but_zeros_is_told():
    probe: Any = Largest([1.0, 0.5], torch.float64)
    assert not GradientCheck(probe, [True]).run().zero
    probe.run_forward = lambda wanted=None: [probe.bottoms[0].new_ones(1)]
    probe.tops = probe.run_forward()
    probe.run_backward = lambda *_: [torch.zeros_like(probe.bottoms[0])]
    assert GradientCheck(probe, [True]).run().zero
