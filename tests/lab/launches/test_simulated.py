"""Random kernels with barriers, by the simulator and by the toolkit."""

import random

import pytest

from lab.launches import lanes
from lab.launches.phases import compare
from lab.launches.simulated import Comparison, Kernel, Outcome


@pytest.mark.usefixtures("cache")
def test_phases_compute_what_the_simulator_does():
    outcome = Outcome()
    compare(8, 5, outcome)
    assert not outcome.wrong and not outcome.races, str(outcome)
    assert outcome.modes["kPhases"] >= 4 and outcome.calls == 48


@pytest.mark.usefixtures("cache")
def test_lanes_compute_what_the_simulator_does():
    outcome = Outcome()
    lanes.compare(8, 4, outcome)
    assert not outcome.wrong and not outcome.races, str(outcome)
    assert outcome.modes["kWarps"] >= 3


@pytest.mark.usefixtures("cache")
def test_another_number_is_found():
    """On the toolkit's side the kernel adds one in a thread."""
    head = "#ifdef CAFFE_HOST_BACKEND\n#define MORE 1\n#else\n#define MORE 0\n#endif\n"
    outcome = Outcome()
    kernel = Kernel("more", "y[threadIdx.x] = x[threadIdx.x] + (threadIdx.x == 31 ? MORE : 0);")
    Comparison("another", head, [kernel], fibres=False).run(random.Random(1), 1, outcome, ((32, 1, 1),))
    assert len(outcome.wrong) == 1 and "y[31] is " in outcome.wrong[0]


@pytest.mark.usefixtures("cache")
def test_a_race_is_the_generators_fault():

    outcome = Outcome()
    kernel = Kernel("racy", "y[0] = threadIdx.x;")
    Comparison("races", "", [kernel], fibres=False).run(random.Random(1), 1, outcome, ((32, 1, 1),))
    assert outcome.races == ["racy"] and not outcome.wrong
