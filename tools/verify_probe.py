"""One Caffe layer object, called as Caffe's own gradient checker would call it, without autograd around it."""

from __future__ import annotations

import ctypes
import importlib
from typing import NamedTuple

import torch
from torch import Tensor

FLOATING = (torch.float64, torch.float32)


class Code(NamedTuple):
    """One of the ways to run a layer."""

    label: str
    backend: str
    mode: str  # 'cpu': Forward_cpu and Backward_cpu; 'gpu': Forward_gpu and Backward_gpu
    device: str


CODES = (
    Code("its own CPU code", "host", "cpu", "cpu"),
    Code("its kernels, host", "host", "gpu", "cpu"),
    Code("its kernels, GPU", "cuda", "gpu", "cuda"),
)


class NoCode(Exception):
    """The layer says NOT_IMPLEMENTED, or a library for this is missing."""


def facts_of(module):
    """What a module's layer says of itself, and of which bottoms it would give a gradient."""
    engine = module._engine
    engine_module = importlib.import_module(type(engine).__module__)
    library = engine.library("host" if "host" in engine.layer.backends() else "cuda")
    kind, text = (ctypes.create_string_buffer(s) for s in (engine.type.encode(), engine.parameter))
    handle = library.lib.caffe_layer_create_ffi(
        ctypes.addressof(kind), ctypes.addressof(text), len(engine.parameter), 1
    )
    if handle < 0:
        engine.fail(library, "created")
    words = (ctypes.c_int64 * 32)()
    library.lib.caffe_layer_facts_ffi(handle, ctypes.addressof(words))
    library.lib.caffe_layer_destroy_ffi(handle)
    count = len(engine_module.Facts._fields)
    return engine_module.Facts(*words[:count]), [bool(w) for w in words[count : count + 16]]


def probe_class(package: str):
    """The Probe for layers of this package, whose runtime is its own."""
    engine_module = importlib.import_module(f"{package}._caffe_engine")
    record_module = importlib.import_module(f"{package}._caffe_record")
    services = importlib.import_module(f"{package}._caffe_services")
    DIFF, WANTED = record_module.DIFF, record_module.WANTED

    class Probe(engine_module.Instance):
        """A layer object set up for these bottoms.

        Args:
            module: whose layer, type and parameters count.
            blobs: values for the parameter blobs; those of its fillers if not given.
        """

        def __init__(self, module, code: Code, dtype: torch.dtype, bottoms: list[Tensor], blobs=None):
            self.own = engine = type(module._engine)(
                *module._engine.__reduce__()[1]
            )  # an Instance does not keep it
            engine.iteration = 0
            if code.backend not in engine.layer.backends():
                raise NoCode(f"not built for {code.backend}")
            device, stream = -1, 0
            if code.device == "cuda":
                device, stream = torch.cuda.current_device(), torch.cuda.current_stream().cuda_stream
            site = engine_module.Site(code.backend, device, stream, dtype, int(not module.training))
            self.mode = engine_module.MODES[code.mode]
            bottoms = [b.to(code.device, dtype).contiguous() for b in bottoms]
            shapes = tuple(tuple(b.shape) for b in bottoms)
            torch.manual_seed(1701)  # for its fillers
            super().__init__(engine, site, self.mode, shapes, [engine.address(b) for b in bottoms])
            engine.weights = [1.0] * len(self.record.tops)
            self.bottoms = bottoms
            given = self.initial_blobs() if blobs is None else blobs
            self.blobs = [b.to(code.device, dtype).contiguous() for b in given]
            self.in_place = engine.in_place
            self.draws = True  # random numbers; known after the first forward

        def run_forward(self, wanted: list[bool] | None = None) -> list[Tensor]:
            """Forward on the bottoms and blobs as they are now; the same random numbers every time."""
            if self.draws:
                torch.manual_seed(1701)
            # What runs in place overwrites its bottom, and some layers write into their blobs.
            self.given = [b.clone() for b in self.bottoms] if self.in_place else self.bottoms
            self.kept = [b.clone() for b in self.blobs]
            wanted = wanted or [True] * len(self.bottoms + self.blobs)
            with services.recording() as drawn:
                self.tops = self.forward(self.mode, self.given, self.kept, wanted)
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
            if self.in_place:
                diffs = self.backward(self.mode, self.given, self.tops, self.kept, top_diffs, wanted)
                if diffs is None:
                    raise NoCode("NOT_IMPLEMENTED")
                return diffs
            record, engine, diffs = self.backward_record, self.engine, []
            self._place(record, self.mode)
            values = self.given + self.kept
            for i, (at, value, want) in enumerate(
                zip(record.bottoms + record.blobs, values, wanted, strict=True)
            ):
                diff = None
                if want:
                    before = fill * (i + 1) if i < len(self.given) else 0.0
                    diff = torch.full_like(value, before)
                address = engine.address(diff) if want else 0
                record.put(at, tuple(value.shape), engine.address(value), address, WANTED if want else 0)
                diffs.append(diff)
            for at, top, diff in zip(record.tops, self.tops, top_diffs, strict=True):
                record.put(at, tuple(top.shape), engine.address(top), engine.address(diff))
            if self._call("caffe_layer_backward", record.address):
                raise NoCode("NOT_IMPLEMENTED")
            return [
                self.result(record, at, DIFF, diff, top_diffs) if want else None
                for at, diff, want in zip(record.bottoms + record.blobs, diffs, wanted, strict=True)
            ]

    return Probe
