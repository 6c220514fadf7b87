"""The time of an eager call of a ported Caffe layer on 1024 floats: one like ReLU, against a native layer's module."""

import importlib
from collections.abc import Callable
from pathlib import Path

import torch
from cuffi.sigmoid import Sigmoid

from cuffi.runtime.cases import load_package

from . import _machine, _make
from ._machine import GPU
from ._report import Report, Settings
from ._timing import Times
from .call import ELEMENTS, measure_calls

GROUP = "call"
PORTED, NATIVE, TORCHS = "ported Ramp", "native Sigmoid", "torch.nn.ReLU"
BACKWARD = ", and backward"
TARGET = 1.2  # ported / native, on a GPU


def measure(settings: Settings) -> Report:
    report = Report(f"One eager call of a module, {ELEMENTS} floats")
    ported = build(settings.out)

    def contenders(bottom: torch.Tensor, grad: bool) -> dict[str, Callable]:
        found = {PORTED: ported.Ramp(), NATIVE: Sigmoid(), TORCHS: torch.nn.ReLU()}
        if not torch.equal(found[PORTED](bottom), torch.relu(bottom)):
            raise RuntimeError("the ported layer computes something else")
        with torch.no_grad():
            found[PORTED](bottom)
        trained = {name + BACKWARD: with_backward(module, bottom) for name, module in found.items()}
        return found | trained if grad else found

    measure_calls(report, settings, contenders, add)
    return report


def with_backward(module: torch.nn.Module, bottom: torch.Tensor) -> Callable:
    """The module's forward and backward."""
    top_diff = torch.ones_like(bottom)
    return lambda bottom: torch.autograd.grad(module(bottom), bottom, top_diff)


def build(out: Path):
    """The package of the tests' tiny Caffe layers."""
    folder = out.resolve() / "caffe"
    if not (folder / "layers" / "zoo").exists():
        _make.copy_layer(_make.ROOT / "tests" / "fixtures" / "caffe_zoo", folder, "zoo")
    settings = {"ARCH": "native"} if GPU in _machine.devices() else {"NVCC": ""}
    _make.make(folder, "libraries", **settings)
    return importlib.import_module(f"{load_package(folder / 'layers', 'benchmark_caffe')}.zoo")


def add(report: Report, times: Times, device: str, grad: bool) -> None:
    what = f"eager call {'with' if grad else 'without'} grad, ported / native module"
    for end in ("", BACKWARD) if grad else ("",):
        names = [name + end for name in (PORTED, NATIVE, TORCHS)]
        report.calls(times, PORTED + end, device, grad, "ported / it", names)
        ratio = times.ratio(PORTED + end, NATIVE + end)
        report.figure(what + end, _machine.here(device), ratio, TARGET if device == GPU else None)
