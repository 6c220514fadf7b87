"""The kernel loop: the same unedited Caffe body with our CUDA_KERNEL_LOOP and with Caffe's own, and copy_."""

import ctypes

import torch

from . import _kernels, _machine, _make, _plot
from ._machine import GPU
from ._report import Report, Settings
from ._timing import in_turns, limit_on_gpu, on_gpu, sets_beyond_cache

GROUP = "elementwise"
OURS, CLASSIC, COPY = "ours", "Caffe's macro", "copy_"
# name -> (tensors in, the same in torch)
KERNELS = {"relu": (1, torch.relu), "mult": (2, torch.mul)}
# dtype -> (code in caffe_ffi.h, share of copy_ to reach from 2^22 elements)
DTYPES = {torch.float32: (0, 0.95), torch.float16: (2, 0.90), torch.bfloat16: (3, 0.90)}
SPEEDUP = 1.4  # over Caffe's macro, from 2^22 elements
LARGE = 1 << 22


def measure(settings: Settings) -> Report:
    title = "The same kernel body under our CUDA_KERNEL_LOOP, Caffe's, and copy_ (by size: JSON, plot)"
    report = Report(title)
    if not torch.cuda.is_available() or not _make.has_nvcc():
        report.notes.append("Nothing was measured: this needs a GPU and nvcc.")
        return report
    libraries = {
        OURS: _kernels.by_toolkit("elementwise", settings.out),
        CLASSIC: _kernels.classic("elementwise", settings.out),
    }
    exponents = [12, 16, 20, 22, 24, 26, 29] if settings.quick else [*range(12, 30)]
    report.notes += [
        "From 2^22 elements, the least and where: share of copy_'s speed, speed-up over Caffe's macro.",
        f"If small: the least speed-up below 2^22. GB/s at 2^{exponents[-1]}. Launches are in CUDA graphs.",
    ]
    for kernel in KERNELS:
        for dtype in DTYPES:
            rows = [one(report, libraries, kernel, dtype, 1 << exponent) for exponent in exponents]
            summarise(report, kernel, dtype, rows)
    report.plots["elementwise"] = lambda figure: draw(figure, report.rows, [1 << e for e in exponents])
    return report


def one(report: Report, libraries: dict, kernel: str, dtype: torch.dtype, count: int) -> dict:
    """The row of one kernel, dtype and size."""
    arity, reference = KERNELS[kernel]
    moved = (arity + 1) * count * dtype.itemsize
    sets = [
        [torch.randn(count, dtype=dtype, device=GPU) for _ in range(arity)]
        for _ in range(sets_beyond_cache(moved))
    ]
    tops = [torch.empty_like(inputs[0]) for inputs in sets]
    check(libraries, kernel, reference, sets[0], tops[0])
    calls = {
        name: [caller(library, kernel, *buffers) for buffers in zip(sets, tops, strict=True)]
        for name, library in libraries.items()
    }
    # copy_ moves as many bytes as the kernel: it reads one half and writes the other.
    halves = [torch.empty(moved // 2, dtype=torch.uint8, device=GPU).random_() for _ in sets]
    pairs = [(torch.empty_like(half), half) for half in halves]
    calls[COPY] = [lambda pair=pair: pair[0].copy_(pair[1]) for pair in pairs]
    timers = {name: on_gpu(calls[name]) for name in libraries}
    timers[COPY] = limit_on_gpu(calls[COPY], bytes_each=moved)
    times = in_turns(timers, seconds=0.06)
    speeds = {f"{name} GB/s": moved / times.median(name) / 1e9 for name in times}
    row = {
        "kernel": kernel,
        "dtype": str(dtype).removeprefix("torch."),
        "elements": count,
        **speeds,
        "of copy_": times.ratio(COPY, OURS),
        "speed-up": times.ratio(CLASSIC, OURS),
    }
    report.rows.append(row)
    del calls, timers, sets, tops, halves, pairs
    torch.cuda.empty_cache()
    return row


def check(libraries: dict, kernel: str, reference, inputs: list, top: torch.Tensor) -> None:
    for name, library in libraries.items():
        top.fill_(float("nan"))
        caller(library, kernel, inputs, top)()
        if not torch.equal(top, reference(*inputs)):
            raise RuntimeError(f"{kernel} {top.dtype} of {top.numel()} elements under {name} is wrong")


def caller(library, kernel: str, inputs: list, top: torch.Tensor):
    """A function that launches the kernel on the current stream."""
    numbers = [*(t.data_ptr() for t in (*inputs, top)), top.numel(), DTYPES[top.dtype][0]]
    if isinstance(library, ctypes.CDLL):
        function = getattr(library, f"{kernel}_forward")
        pointers = [ctypes.c_void_p] * (len(inputs) + 1)
        function.argtypes = [*pointers, ctypes.c_int64, ctypes.c_int, ctypes.c_void_p]
    else:
        function = getattr(library, f"{kernel}_forward_ffi")

    def call(keep=(inputs, top)) -> None:
        if function(*numbers, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(f"{kernel}: the launch failed")

    return call


def summarise(report: Report, kernel: str, dtype: torch.dtype, rows: list[dict]) -> None:
    large = [row for row in rows if row["elements"] >= LARGE]
    worst, slowest = (min(large, key=lambda row: row[key]) for key in ("of copy_", "speed-up"))
    small = min((row["speed-up"] for row in rows if row["elements"] < LARGE), default=None)
    name = f"{kernel} {str(dtype).removeprefix('torch.')}"
    report.shown.append(
        {
            "kernel": name,
            "of copy_": worst["of copy_"],
            "at": f"2^{worst['elements'].bit_length() - 1}",
            "speed-up": slowest["speed-up"],
            "at ": f"2^{slowest['elements'].bit_length() - 1}",
            "speed-up if small": small,
            **{f"{n} GB/s": large[-1][f"{n} GB/s"] for n in (OURS, CLASSIC, COPY)},
        }
    )
    here = _machine.here(GPU)
    for what, value, aim in (
        ("share of copy_", worst["of copy_"], DTYPES[dtype][1]),
        ("speed-up over Caffe's macro", slowest["speed-up"], SPEEDUP),
    ):
        report.figure(f"{name} from 2^22, least {what}", here, value, aim, at_most=False)


def draw(figure, rows: list[dict], sizes: list[int]) -> None:
    kernels, dtypes = (list(dict.fromkeys(row[key] for row in rows)) for key in ("kernel", "dtype"))
    figure.set_size_inches(3.2 * len(dtypes), 2.4 * len(kernels) + 0.2)
    grid = figure.subplots(len(kernels), len(dtypes), sharex=True, sharey=True, squeeze=False)
    for i, kernel in enumerate(kernels):
        for j, dtype in enumerate(dtypes):
            mine, axes = [row for row in rows if (row["kernel"], row["dtype"]) == (kernel, dtype)], grid[i][j]
            for name, colour in ((COPY, _plot.LIMIT), (CLASSIC, _plot.PEER), (OURS, _plot.OURS)):
                axes.plot(sizes, [row[f"{name} GB/s"] for row in mine], color=colour, label=name, marker=".")
            axes.set_title(f"{kernel}, {dtype}", loc="left")
            _plot.sizes_axis(axes, sizes)
            axes.label_outer()
        grid[i][0].set_ylabel("GB/s")
    grid[0][0].legend(fontsize=7)
