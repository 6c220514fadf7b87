"""Call one Caffe layer object directly, without autograd, as Caffe's own gradient checker does."""

from __future__ import annotations

import contextlib
import ctypes
import re
from typing import NamedTuple

import torch
from torch import Tensor

from ...backends import BACKENDS, GPU, HOST
from ...base import CaffeError
from ...runtime import backends_here
from ..call import instance, services

FLOATING = (torch.float64, torch.float32)


class Code(NamedTuple):
    """One of the ways to run a layer."""

    label: str
    backend: str
    mode: str  # 'cpu': Forward_cpu and Backward_cpu; 'gpu': Forward_gpu and Backward_gpu

    @property
    def device(self) -> str:
        return BACKENDS[self.backend].device


CODES = (
    Code("its own CPU code", HOST.name, "cpu"),
    *(Code(f"its kernels, {'GPU' if b.device == GPU else b.name}", b.name, "gpu") for b in backends_here()),
)


LIBC = ctypes.CDLL(None)
SEED = 1701


def seed_c() -> None:
    """Seed the C library's random numbers: of rand() and random(), and of drand48()."""
    LIBC.srand(SEED)
    LIBC.srand48(SEED)


def next_of_c() -> tuple[int, int]:
    return LIBC.rand(), LIBC.lrand48()


seed_c()
FIRST_OF_C = next_of_c()


class NoCode(Exception):
    """The layer has no code for this (NOT_IMPLEMENTED), or the library is missing."""


def facts_of(module):
    """The layer's facts, and the bottoms that get a gradient."""
    definition = module.definition
    facts = definition.facts(definition.layer.any_backend().name)
    return facts, facts.allow_force_backward


class Probe:
    """A layer object set up for these bottoms.

    Args:
        module: has the layer, the type and the parameters.
        blobs: values for the parameter blobs. Default: the fillers' values.
        memory: the byte of which the object's memory consists before its constructor runs.

    Attributes:
        draws: does it draw random numbers? Known after the first forward.
        draws_by_c: does it draw them by the C library's functions?
    """

    def __init__(
        self, module, code: Code, dtype: torch.dtype, bottoms: list[Tensor], blobs=None, memory: int = 0
    ):
        definition = module.definition
        if code.backend not in definition.layer.backends():
            raise NoCode(f"not built for {code.backend}")
        self.services = services
        device, stream = -1, 0
        if code.device == GPU:
            device, stream = torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream
        site = instance.Site(code.backend, device, stream, dtype, instance.phase_of(module.training))
        self.mode, self.in_place = code.mode, definition.in_place
        self.bottoms = [b.to(code.device, dtype).contiguous() for b in bottoms]
        torch.manual_seed(SEED)  # for its fillers
        seed_c()
        lib = definition.library(code.backend).lib
        lib.caffe_layer_memory_ffi(memory)
        try:
            self.instance = instance.Instance(definition, site, self.mode, self.bottoms, iteration=0)
        finally:
            lib.caffe_layer_memory_ffi(0)
        values = self.instance.initial_blobs() if blobs is None else blobs
        self.blobs = [b.to(code.device, dtype).contiguous() for b in values]
        self.draws, self.draws_by_c = True, False

    @contextlib.contextmanager
    def in_words(self):
        """Is this the layer's own way to say NOT_IMPLEMENTED? LOG(FATAL) << "Forward CPU not implemented",
        CHECK(false).
        """
        try:
            yield
        except CaffeError as error:
            if re.search(r"\bnot implemented\b|Check failed: false\b", str(error), re.IGNORECASE):
                raise NoCode(str(error)) from None
            raise

    def run_forward(self, wanted: list[bool] | None = None, before=None) -> list[Tensor]:
        """Run Forward on the current bottoms and blobs, with the same random numbers every time.

        Args:
            before: the tops' values before Forward. Default: zeros.
        """
        if self.draws:
            torch.manual_seed(SEED)
        seed_c()
        # Copies, because layers in place overwrite their bottom, and some layers write to their blobs.
        self.inputs = [b.clone() for b in self.bottoms] if self.in_place else self.bottoms
        self.own_blobs = [b.clone() for b in self.blobs]
        wanted = wanted or [True] * len(self.bottoms + self.blobs)
        with self.services.watched_draws() as drawn, self.in_words():
            self.tops = self.instance.forward(
                self.mode, 0, self.inputs, self.own_blobs, wanted, before=before
            )
        self.draws_by_c = next_of_c() != FIRST_OF_C
        self.draws = bool(drawn) or self.draws_by_c
        if self.tops is None:
            raise NoCode("NOT_IMPLEMENTED")
        return self.tops

    def run_backward(
        self, top_diffs: list[Tensor], wanted: list[bool], fill: float = 3.0
    ) -> list[Tensor | None]:
        """Run Backward after run_forward. Returns the diffs of bottoms and blobs.

        As in Caffe, diffs are not cleared before: those of bottoms have `fill` and its multiples, those of blobs 0.
        """
        top_diffs = [d.clone() for d in top_diffs]  # copies, because a layer may write to them
        before = [torch.full_like(b, fill * (i + 1)) for i, b in enumerate(self.inputs)]
        before += [torch.zeros_like(b) for b in self.own_blobs]
        with self.in_words():
            diffs = self.instance.backward(
                self.mode, 0, self.inputs, self.tops, self.own_blobs, top_diffs, wanted, before
            )
        if diffs is None:
            raise NoCode("NOT_IMPLEMENTED")
        return diffs
