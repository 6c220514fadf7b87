"""The GPU's time of an elementwise kernel of a ported Caffe layer, against that of a native layer and copy_."""

import torch

from . import _kernels, _machine, _make
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, limit_on_gpu, on_gpu, sets_beyond_cache
from .caffe_call import build
from .elementwise import COPY, LARGE

GROUP = "elementwise"
PORTED, NATIVE = "ported Ramp", "native relu"
TARGET = 1.02  # ported / native, from 2^22 elements


def measure(settings: Settings) -> Report:
    report = Report("An elementwise kernel, max(x, slope * x), of a ported Caffe layer, float (forward)")
    if not torch.cuda.is_available() or not _make.has_nvcc():
        report.notes.append("Nothing was measured: this needs a GPU and nvcc.")
        return report
    module = build(settings.out).Ramp()
    native = _kernels.by_toolkit("elementwise", settings.out)
    exponents = [12, 16, 20, 22, 24, 26, 28] if settings.quick else [*range(12, 29)]
    for exponent in exponents:
        report.row(**one(module, native, 1 << exponent))
    large = [row["ported / native"] for row in report.rows if row["elements"] >= LARGE]
    what = "ported elementwise kernel from 2^22, ported / native, worst"
    report.figure(what, _machine.here(GPU), max(large), TARGET)
    report.notes.append("GB/s. Calls are in CUDA graphs, with a module's own allocation.")
    return report


def one(module, native, count: int) -> dict:
    """The row of one size."""
    moved = 2 * count * 4
    bottoms = [torch.randn(count, device=GPU) for _ in range(sets_beyond_cache(moved))]

    def relu(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        stream = torch.cuda.current_stream().cuda_stream
        if native.relu_forward_ffi(x.data_ptr(), y.data_ptr(), count, 0, stream):
            raise RuntimeError("relu: the launch failed")
        return y

    for name, function in ((PORTED, module), (NATIVE, relu)):
        if not torch.equal(function(bottoms[0]), torch.relu(bottoms[0])):
            raise RuntimeError(f"{name} of {count} elements is wrong")
    pairs = [(torch.empty_like(x), x) for x in bottoms]
    timers = {
        name: on_gpu([lambda x=x, function=function: function(x) for x in bottoms])
        for name, function in ((PORTED, module), (NATIVE, relu))
    }
    copies = [lambda pair=pair: pair[0].copy_(pair[1]) for pair in pairs]
    timers[COPY] = limit_on_gpu(copies, bytes_each=moved)
    times = in_turns(timers, seconds=0.06)
    return {
        "elements": count,
        **{name: moved / times.median(name) / 1e9 for name in times},
        "ported / native": times.ratio(PORTED, NATIVE),
        "of copy_": times.ratio(COPY, PORTED),
    }
