"""What was drawn can be drawn again."""

import torch

from cuffi.nets.solver.random_states import random_states, set_random_states


def test_the_same_numbers_come_again():
    device = torch.device("cpu")
    states = random_states(device)
    assert set(states) == {"cpu"}
    first = torch.rand(3)
    assert not torch.rand(3).equal(first)
    set_random_states({**states, "cuda": states["cpu"]}, device)  # of a machine with a GPU
    assert torch.rand(3).equal(first)
