"""The time of an eager call of a ported Caffe layer on 1024 floats: one like ReLU, against a native layer's module."""

import importlib
from pathlib import Path

import torch

from layers._runtime.cases import load_package
from layers.sigmoid import Sigmoid

from . import _machine, _make, _plot
from ._machine import GPU
from ._report import Report, Settings
from ._timing import Times
from .call import ELEMENTS, measure_calls

GROUP = "call"
PORTED, NATIVE = "ported Ramp", "native Sigmoid"
TARGET = 1.2  # ported / native, on a GPU


def measure(settings: Settings) -> Report:
    report = Report(f"One eager call of a module, {ELEMENTS} floats (forward)")
    ported = build(settings.out)

    def contenders(bottom: torch.Tensor, grad: bool) -> dict[str, torch.nn.Module]:
        found = {PORTED: ported.Ramp(), NATIVE: Sigmoid(), "torch.nn.ReLU": torch.nn.ReLU()}
        if not torch.equal(found[PORTED](bottom), torch.relu(bottom)):
            raise RuntimeError("the ported layer computes something else")
        with torch.no_grad():
            found[PORTED](bottom)
        return found

    medians = measure_calls(report, settings, contenders, add)
    colours = {PORTED: _plot.OURS, NATIVE: _plot.PEER}
    report.plots["caffe_call"] = lambda figure: _plot.panels(figure, medians, colours, "us per call")
    return report


def build(out: Path):
    """The package of the tests' tiny Caffe layers."""
    folder = out.resolve() / "caffe"
    if not (folder / "layers" / "zoo").exists():
        _make.copy_layer(_make.ROOT / "tests" / "caffe_zoo", folder, "zoo")
    settings = {"ARCH": "native"} if GPU in _machine.devices() else {"NVCC": ""}
    _make.make(folder, "libraries", **settings)
    return importlib.import_module(f"{load_package(folder / 'layers', 'benchmark_caffe')}.zoo")


def add(report: Report, times: Times, device: str, grad: bool) -> None:
    report.calls(times, PORTED, device, grad, ratio="ported / it")
    target = TARGET if device == GPU else None
    what = f"eager call {'with' if grad else 'without'} grad, ported / native module"
    report.figure(what, _machine.here(device), times.ratio(PORTED, NATIVE), target)
