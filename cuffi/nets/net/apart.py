"""Run a net for our own purposes, such as a certificate or a question about shapes, and leave no trace."""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Generator, Iterable

import numpy as np
import torch


@contextlib.contextmanager
def apart(net, evaluated: bool = True, kept: Iterable = ()) -> Generator:
    """A twin of the net in phase TEST, for calls without gradients.

    The twin has the net's parameters. States of recurrent layers, statistics, counters and the modes are its own, and
    states begin at zero. Afterwards the generators of torch, numpy and Python continue as if nothing had run.

    Args:
        evaluated: False: the twin is in the net's own phase.
        kept: parts of the net that the twin shares with it.

    Raises:
        CaffeRuntimeError: the net was not built for phase TEST.
    """
    shared = [*net.parameters(), net.phases, net.specs, *kept]
    twin = copy.deepcopy(net, {id(value): value for value in shared})
    twin.train(not evaluated and net.training)
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(), torch.no_grad():
            yield twin
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def remembered(net) -> Callable[[], None]:
    """What calls change in a net, as it is now: statistics, states, counters and torch's random numbers.

    Returns:
        A function that brings it back.
    """
    buffers = [(buffer, buffer.clone()) for buffer in net.buffers()]
    kept = [
        (module, name, copy.copy(getattr(module, name)))
        for module in net.modules()
        for name in getattr(module, "kept", ())
    ]
    random = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    @torch.no_grad()
    def back() -> None:
        for buffer, value in buffers:
            if not torch.equal(buffer, value):
                buffer.copy_(value)
        for module, name, value in kept:
            setattr(module, name, copy.copy(value))
        torch.set_rng_state(random)
        if on_gpu:
            torch.cuda.set_rng_state_all(on_gpu)

    return back
