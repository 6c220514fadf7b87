"""The states of torch's random numbers, on the processor and on a GPU."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def random_states(device: torch.device) -> dict[str, Tensor]:
    """The states by which what comes now can be drawn again."""
    states = {"cpu": torch.get_rng_state()}
    return states | {"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else states


def set_random_states(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Go back to these states. A GPU's state is left out where there is no GPU."""
    torch.set_rng_state(states["cpu"])
    if (of_gpu := states.get("cuda")) is not None and device.type == "cuda":
        torch.cuda.set_rng_state(of_gpu, device)
