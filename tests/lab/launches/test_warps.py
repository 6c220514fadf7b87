"""Kernels whose warps part and meet, compared with a simulation."""

import pytest

from lab.launches.warps import STEPS, differing


@pytest.mark.usefixtures("cache")
def test_kernels_compute_what_the_simulation_does():
    assert len(STEPS) == 8 and differing(16, 1, "cpu") == []
