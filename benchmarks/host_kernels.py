"""CUDA kernels of the usual kinds on the processor, one thread, against the same loops in C++ at -O3."""

import ctypes
import subprocess
import time
from pathlib import Path

import torch

from cuffi import load_inline

from . import _kernels, _machine
from ._report import Report, Settings
from ._timing import in_turns

GROUP = "host"
SOURCES = _kernels.HERE / "host"
# A kernel, and the most times as long as C++ that it should take; None: it is only shown.
KERNELS = {
    "guarded": 1.3,
    "early_return": 1.3,
    "gather": 1.3,
    "index_function": None,
    "grid_stride": None,
    "caffe_loop": 1.3,
    "two_axes": 2.5,
    "stencil": 2.5,
    "histogram": 4,
    "block_sum": 8,
    "warp_sum": None,
    "tiled_product": 2,
}
SQUARE = {"two_axes": (32, 8), "stencil": (32, 8), "tiled_product": (16, 16)}  # and their blocks


def measure(settings: Settings) -> Report:
    report = Report("Usual kernels on one thread of the processor, ns an element; the least of many")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        ours = load_inline("usual", (SOURCES / "usual.cu").read_text(), backends="host")
        plain = ctypes.CDLL(str(_plain(settings.out)))
        for name, target in KERNELS.items():
            _one(report, name, target, ours, plain, settings.quick)
    finally:
        torch.set_num_threads(before)
    report.notes.append("tiled_product is the time of a multiply-add. Processor time of the process.")
    return report


def _plain(out: Path) -> Path:
    library = out.resolve() / "plain.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    source = str(SOURCES / "plain.cpp")
    subprocess.run(["g++", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def arguments(name: str) -> tuple[int, list[torch.Tensor], torch.Tensor, float]:
    """The size, the inputs, the output and the number of elements that a time is divided by."""
    torch.manual_seed(1)
    size = 256 if name == "tiled_product" else 1000
    count = size * size
    inputs = [torch.randn(count)]
    if name in ("gather", "histogram"):
        indices = torch.randint(0, count, (count,), dtype=torch.int32)
        inputs = [indices, *inputs] if name == "gather" else [indices]
    work = size**3 if name == "tiled_product" else count
    return size if name in SQUARE else count, inputs, torch.zeros(count), work


def _one(report: Report, name: str, target: float | None, ours, plain, quick: bool):
    size, inputs, top, work = arguments(name)
    x, y = SQUARE.get(name, (256, 1))
    geometry = [-(-size // x), -(-size // y) if name in SQUARE else 1, 1, x, y, 1]
    if name == "caffe_loop":  # its launcher knows it
        geometry = []
    kernel, loop, other = getattr(ours, f"usual_{name}"), getattr(plain, name), torch.zeros_like(top)
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, other)]
    calls = {
        "ours": lambda: kernel(size, *inputs, top, *geometry),
        "C++": lambda: loop(size, *pointers),
    }
    for call in calls.values():
        call()
    torch.testing.assert_close(top, other)
    timers = {key: lambda call=call: _seconds(call) for key, call in calls.items()}
    times = in_turns(timers, seconds=0.3 if quick else 2, least=5, most=400)
    least = {key: times.least(key) for key in calls}
    ratio = least["ours"] / least["C++"]
    report.row(kernel=name, **{key: least[key] / work * 1e9 for key in calls}, **{"ours / C++": ratio})
    report.figure(f"{name} on the processor, ours / C++ -O3", _machine.here("cpu"), ratio, target)


def _seconds(call) -> float:
    start = time.process_time_ns()
    call()
    return (time.process_time_ns() - start) * 1e-9
