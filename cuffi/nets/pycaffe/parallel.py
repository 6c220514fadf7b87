"""pycaffe's clock, and its names for several GPUs, of which one process here uses one."""

from __future__ import annotations

import time

import torch

from ...base import CaffeRuntimeError
from . import mode


class Timer:
    """caffe.Timer: `start`, `stop`, and then `ms`, `us` and `seconds`. On a GPU it waits for the GPU's work."""

    def __init__(self):
        self._begin = self._end = 0.0

    def _now(self) -> float:
        if mode.device().type != "cpu":
            torch.cuda.synchronize(mode.device())
        return time.perf_counter()

    def start(self) -> None:
        """Begin to measure."""
        self._begin = self._now()

    def stop(self) -> None:
        """End the measurement."""
        self._end = self._now()

    @property
    def seconds(self) -> float:
        """The time from `start` to `stop` in seconds."""
        return self._end - self._begin

    @property
    def ms(self) -> float:
        """The same in milliseconds."""
        return 1e3 * self.seconds

    @property
    def us(self) -> float:
        """The same in microseconds."""
        return 1e6 * self.seconds


class NCCL:
    """caffe.NCCL is not supported: `torchrun -m cuffi.train` trains on several GPUs."""

    def __init__(self, *_):
        raise CaffeRuntimeError(
            "caffe.NCCL: several GPUs: torchrun --nproc_per_node 4 -m cuffi.train solver.prototxt"
        )

    @staticmethod
    def new_uid() -> str:
        """A CaffeRuntimeError that says how to train on several GPUs."""
        raise CaffeRuntimeError(
            "caffe.NCCL: several GPUs: torchrun --nproc_per_node 4 -m cuffi.train solver.prototxt"
        )


def has_nccl() -> bool:
    """False: one process uses one GPU."""
    return False


def solver_count() -> int:
    """1: the solvers of this process."""
    return 1


def solver_rank() -> int:
    """0: the number of this solver."""
    return 0
