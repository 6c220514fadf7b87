"""One Caffe layer object, called as Caffe's own gradient checker would call it, without autograd around it."""

from __future__ import annotations

import contextlib
import importlib
import re
from typing import NamedTuple

import torch
from torch import Tensor

from layers._backends import BACKENDS, GPU, HOST
from layers._runtime import served

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
    *(Code(f"its kernels, {'GPU' if b.device == GPU else b.name}", b.name, "gpu") for b in served()),
)


class NoCode(Exception):
    """The layer says NOT_IMPLEMENTED, or a library for this is missing."""


def facts_of(module):
    """What a module's layer says of itself, and of which bottoms it would give a gradient."""
    definition = module.definition
    facts = definition.facts(definition.layer.any_backend().name)
    return facts, facts.allow_force_backward


class Probe:
    """A layer object set up for these bottoms.

    Args:
        module: whose layer, type and parameters count.
        blobs: values for the parameter blobs; those of its fillers if not given.
    """

    def __init__(self, module, code: Code, dtype: torch.dtype, bottoms: list[Tensor], blobs=None):
        definition = module.definition
        if code.backend not in definition.layer.backends():
            raise NoCode(f"not built for {code.backend}")
        # The runtime may be the toolkit's or a copy of it, under the layer's own package.
        package = type(definition).__module__.rpartition(".")[0]
        self.services = importlib.import_module(f"{package}.services")
        self.CaffeError = importlib.import_module(f"{package.rpartition('.')[0]}._runtime").CaffeError
        instances = importlib.import_module(f"{package}.instance")
        device, stream = -1, 0
        if code.device == GPU:
            device, stream = torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream
        site = instances.Site(code.backend, device, stream, dtype, int(not module.training))
        self.mode, self.in_place = instances.MODES[code.mode], definition.in_place
        self.bottoms = [b.to(code.device, dtype).contiguous() for b in bottoms]
        torch.manual_seed(1701)  # for its fillers
        self.instance = instances.Instance(definition, site, self.mode, self.bottoms, iteration=0)
        given = self.instance.initial_blobs() if blobs is None else blobs
        self.blobs = [b.to(code.device, dtype).contiguous() for b in given]
        self.draws = True  # random numbers; known after the first forward

    @contextlib.contextmanager
    def in_words(self):
        """NOT_IMPLEMENTED as a sentence of the layer's own: LOG(FATAL) << "Forward CPU not implemented"."""
        try:
            yield
        except self.CaffeError as error:
            if re.search(r"\bnot implemented\b", str(error), re.IGNORECASE):
                raise NoCode(str(error)) from None
            raise

    def run_forward(self, wanted: list[bool] | None = None) -> list[Tensor]:
        """Forward on the bottoms and blobs as they are now; the same random numbers every time."""
        if self.draws:
            torch.manual_seed(1701)
        # What runs in place overwrites its bottom, and some layers write into their blobs.
        self.given = [b.clone() for b in self.bottoms] if self.in_place else self.bottoms
        self.kept = [b.clone() for b in self.blobs]
        wanted = wanted or [True] * len(self.bottoms + self.blobs)
        with self.services.recording() as drawn, self.in_words():
            self.tops = self.instance.forward(self.mode, 0, self.given, self.kept, wanted)
        self.draws = bool(drawn)
        if self.tops is None:
            raise NoCode("NOT_IMPLEMENTED")
        return self.tops

    def run_backward(
        self, top_diffs: list[Tensor], wanted: list[bool], fill: float = 3.0
    ) -> list[Tensor | None]:
        """Backward after run_forward: diffs of bottoms and blobs.

        As in Caffe, bottoms' diffs hold what was there before, here `fill` and its multiples, and blobs' diffs 0.
        """
        top_diffs = [d.clone() for d in top_diffs]  # a layer may use them as scratch
        before = [torch.full_like(b, fill * (i + 1)) for i, b in enumerate(self.given)]
        before += [torch.zeros_like(b) for b in self.kept]
        with self.in_words():
            diffs = self.instance.backward(
                self.mode, 0, self.given, self.tops, self.kept, top_diffs, wanted, before
            )
        if diffs is None:
            raise NoCode("NOT_IMPLEMENTED")
        return diffs
