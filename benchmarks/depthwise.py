"""Depthwise convolution in both layouts, compared with torch: its layouts, cuDNN's search, torch.compile."""

import statistics
import time

import torch

from cuffi.runtime.cases import Draw, cast

from . import _machine, _plot
from ._cases import benched, both_passes, check_passes, compiled, least_bytes
from ._machine import GPU
from ._report import Report, Settings, brief
from ._timing import Timer, in_turns, limit_on_gpu, on_cpu, on_gpu, on_wall, queued_on_gpu
from .layer_cases import copies, repeated

GROUP = "layers"
LAYER = "depthwise_conv"

NCHW, LAST = "", " last"  # the suffixes of a contender's name for the layouts
OURS, TORCH, COMPILED, COPY = "ours", "torch", "compiled", "copy_"
COLOURS = {
    OURS: _plot.OURS,
    OURS + LAST: "#56b4e9",
    TORCH: _plot.PEER,
    TORCH + LAST: "#e69f00",
    COMPILED: _plot.OTHER,
}
EAGER = " eager"  # the suffix for its wall time, called from Python
DTYPES = {GPU: (torch.float32, torch.float16, torch.bfloat16), "cpu": (torch.float32,)}
FORWARD, BOTH = "forward", "forward + backward"
# (run, ratio) -> (geometric mean to reach, least of any shape)
TARGETS = {
    (FORWARD, "x NCHW"): (3.0, 1.5),
    (FORWARD, "x best"): (1.5, 1.0),
    (BOTH, "x NCHW"): (4.0, None),
    (BOTH, "x best"): (1.5, None),
    # In the same layout, as users call it.
    (FORWARD, "eager x NCHW"): (1.5, 1.0),
    (FORWARD, "eager x last"): (1.5, 1.0),
    (BOTH, "eager x NCHW"): (1.5, 1.0),
    (BOTH, "eager x last"): (1.5, 1.0),
}
OF_COPY, OF_COPY_AT = 0.70, "32x112 k3"
ON_HOST = 1.0  # the target against torch on the CPU, for 3 x 3 kernels
HOST_BATCH = 4
# Seconds from the GPU's start. Later nothing more is compiled for a run, so that the benchmark takes less than 60 s.
COMPILE_UNTIL = {FORWARD: 22, BOTH: 40}


def measure(settings: Settings) -> Report:
    report = Report("Depthwise convolution, us")
    for device in _machine.devices():
        for _, case in benched(device, LAYER, report.notes):
            if case.name != "depthwise_conv2d":
                continue
            start = time.perf_counter()
            with torch.backends.cudnn.flags(enabled=True, benchmark=True):
                drawn = inputs(device)
                for run in (FORWARD, BOTH) if device == GPU else (FORWARD,):
                    all_shapes(report, settings, case, device, drawn, run, start)
            report.notes.append(f"{device}: {time.perf_counter() - start:.0f} s.")
    report.notes += [
        "last: channels_last. x NCHW, x last: torch's time over ours in one layout, the kernels' alone (a CUDA graph). "
        "eager: the same of wall times, called from Python one after the other. x best: torch's best over "
        "our better; NCHW x best: over ours in NCHW.",
        "of copy_: copy_'s time for the least possible bytes (all tensors in and out once) over our better.",
        "forward + backward: gradients to input and weight. compiled: torch.compile of torch's faster layout.",
    ]
    for column in COLOURS:
        if all(row.get(column) is None for row in report.shown):  # no row has this contender
            for row in report.shown:
                row.pop(column, None)
    report.for_each_device("depthwise", summarise, draw)
    return report


def all_shapes(
    report: Report, settings: Settings, case, device: str, drawn: dict, run: str, start: float
) -> None:
    compiles = device == GPU and (run == FORWARD or not settings.quick)
    until = start + COMPILE_UNTIL[run] / (2 if settings.quick else 1) if compiles else start
    for shape, arguments in drawn.items():
        for dtype in DTYPES[device]:
            one(report, settings, case, device, run, shape, arguments, dtype, until)
            if device == GPU:
                torch.cuda.empty_cache()


def inputs(device: str) -> dict[str, tuple]:
    """The arguments in double, by shape. The batch is that of the issue on the GPU, and a small one on the CPU."""
    from cuffi.depthwise_conv.cases import BENCH, arguments  # imports the layer, which must be built

    drawn = {}
    for name, (size, *rest) in BENCH.items():
        batch = size[0] if device == GPU else HOST_BATCH
        drawn[name] = arguments((batch, *size[1:]), *rest)(Draw())
    return drawn


def in_layout(arguments: tuple, layout: torch.memory_format) -> tuple:
    """The arguments with the bottom in a layout. The filters have one channel: both layouts are the same."""
    x, *rest = arguments
    return x.detach().contiguous(memory_format=layout).requires_grad_(x.requires_grad), *rest


def one(report: Report, settings, case, device, run, shape, arguments, dtype, until) -> None:
    """The row of one shape, dtype and run."""
    backward = run == BOTH
    nchw = cast(arguments, dtype, device, grad=backward)
    ready = {NCHW: nchw, LAST: in_layout(nchw, torch.channels_last)}
    exact = cast(nchw, torch.float64, device, grad=backward)
    for own in ready.values():
        check_passes(LAYER, case, own, exact, backward)
    del exact
    moved = least_bytes(case, nchw, backward)
    label = f"{shape} {str(dtype).removeprefix('torch.')} {run}"
    timers = {}

    def enter(name: str, function, layout: str) -> None:
        """A contender that fails is left out. Ours must not fail."""
        try:
            calls = repeated(function, ready[layout], backward, moved, device)
            timers[name] = gpu_timer(calls, label, name, report.notes) if device == GPU else on_cpu(calls)
            timers[name]()
            if device == GPU and name != COMPILED:
                timers[name + EAGER] = on_wall(calls, rounds=max(1, 20 // len(calls)))
        except Exception as error:
            timers.pop(name, None)
            if name.startswith(OURS):
                raise
            report.notes.append(f"{label}: {name} is absent: {brief(error)}")

    for layout in ready:
        enter(OURS + layout, case.function, layout)
        enter(TORCH + layout, case.reference, layout)
    if time.perf_counter() < until:
        try:
            torchs = [n for n in (TORCH, TORCH + LAST) if n in timers]
            layout = min(torchs, key=lambda name: timers[name]()).removeprefix(TORCH)
            function = compiled(conv_of(nchw))
            given = (torch.zeros_like(case.reference(*ready[layout]).detach()),)
            both_passes(function, ready[layout], given, backward)
        except Exception as error:
            report.notes.append(f"{label}: {COMPILED} is absent: {brief(error)}")
        else:
            enter(COMPILED, function, layout)
    copied = copies(moved, device)
    timers[COPY] = limit_on_gpu(copied, moved) if device == GPU else on_cpu(copied)
    seconds = (0.08 if settings.quick else 0.2) if device == GPU else (0.3 if settings.quick else 1.5)
    times = in_turns(timers, seconds, most=60 if device == GPU else 200)
    timers.clear()  # their graphs hold the memory that the next ones need
    add(report, times, device, run, shape, dtype, moved)


def conv_of(arguments: tuple):
    """torch's operator as users write it, without arithmetic that dynamo would trace."""
    channels = arguments[0].shape[1]

    def conv(x, weight, bias, stride, padding, dilation):
        return torch.nn.functional.conv2d(x, weight, bias, stride, padding, dilation, groups=channels)

    return conv


def gpu_timer(calls: list, label: str, name: str, notes: list[str]) -> Timer:
    try:
        return on_gpu(calls)
    except Exception as error:
        torch.cuda.synchronize()
        notes.append(f"{label}: {name} is timed without a graph: {brief(error)}")
        return queued_on_gpu(calls)


def add(report: Report, times, device, run, shape, dtype, moved) -> None:
    def best(names) -> str:
        return min((n for n in names if n in times), key=times.median)

    ours, peer = best((OURS, OURS + LAST)), best((TORCH, TORCH + LAST, COMPILED))

    def ratio(of: str, over: str) -> float | None:
        return times.ratio(of, over) if of in times else None

    report.row(
        on=device,
        shape=shape,
        dtype={torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat16"}[dtype],
        run=run,
        **{name: times.median(name) * 1e6 if name in times else None for name in (*COLOURS, COPY)},
        **{
            "x NCHW": ratio(TORCH, OURS),
            "x last": ratio(TORCH + LAST, OURS + LAST),
            "eager x NCHW": ratio(TORCH + EAGER, OURS + EAGER),
            "eager x last": ratio(TORCH + LAST + EAGER, OURS + LAST + EAGER),
            "x best": ratio(peer, ours),
            "NCHW x best": ratio(peer, OURS),
            "of copy_": ratio(COPY, ours),
        },
    )
    # These are only in the JSON, because the table is wide enough.
    report.rows[-1] = {**report.rows[-1], "best of torch": peer, "better of ours": ours, "bytes": moved}
    report.rows[-1] |= {f"{name} spread": times.spread(name) for name in times}
    report.shown[-1]["run"] = {FORWARD: "fwd", BOTH: "fwd+bwd"}[run]


def summarise(report: Report, device: str, rows: list[dict]) -> None:
    here = _machine.here(device)
    for run in dict.fromkeys(row["run"] for row in rows):
        for key in ("x NCHW", "x last", "eager x NCHW", "eager x last", "x best", "NCHW x best"):
            for dtypes in all_and_each(rows):
                mine = [row[key] for row in rows if row["run"] == run and row["dtype"] in dtypes]
                found = [ratio for ratio in mine if ratio is not None]
                if not found:
                    continue
                aims = TARGETS.get((run, key), (None, None)) if device == GPU else (None, None)
                values = statistics.geometric_mean(found), min(found)
                what = f"depthwise {run}, {' and '.join(dtypes)}, {key}"
                for kind, value, aim in zip(("geometric mean", "least"), values, aims, strict=True):
                    report.figure(f"{what}, {kind}", here, value, aim, at_most=False)
    for row in rows:
        if device == GPU and row["run"] == FORWARD and row["shape"] == OF_COPY_AT:
            for layout in (NCHW, LAST):
                what = f"depthwise {row['shape']} {row['dtype']} ours{layout}, share of copy_"
                report.figure(what, here, row[COPY] / row[OURS + layout], OF_COPY, at_most=False)
        if device == "cpu" and row["x NCHW"]:
            aimed = ON_HOST if row["shape"].endswith("k3") else None
            report.figure(f"depthwise {row['shape']}, x NCHW", here, row["x NCHW"], aimed, at_most=False)


def all_and_each(rows: list[dict]) -> list[tuple[str, ...]]:
    dtypes = tuple(dict.fromkeys(row["dtype"] for row in rows))
    return [dtypes, *((d,) for d in dtypes)] if len(dtypes) > 1 else [dtypes]


def draw(figure, rows: list[dict]) -> None:
    """A panel for each run and dtype: bars by shape, and copy_ of the least bytes as a line over each group."""
    runs, dtypes = (list(dict.fromkeys(row[key] for row in rows)) for key in ("run", "dtype"))
    figure.set_size_inches(max(4.8 * len(dtypes), 7), 2.6 * len(runs) + 0.5)
    grid = figure.subplots(len(runs), len(dtypes), sharex=True, sharey="row", squeeze=False)
    for i, run in enumerate(runs):
        for j, dtype in enumerate(dtypes):
            mine, axes = [r for r in rows if (r["run"], r["dtype"]) == (run, dtype)], grid[i][j]
            shapes = [row["shape"] for row in mine]
            series = {name: [row[name] for row in mine] for name in COLOURS if any(r[name] for r in mine)}
            _plot.groups(axes, shapes, series, COLOURS)
            ends = [at - 0.46 for at in range(len(mine))], [at + 0.46 for at in range(len(mine))]
            limits = [row[COPY] for row in mine]
            axes.hlines(limits, *ends, color=_plot.LIMIT, linewidth=1.2, label="copy_ of the least bytes")
            axes.set_title(f"{run}, {dtype}", loc="left")
        of_run = [row for row in rows if row["run"] == run]
        slowest = max(row[name] for row in of_run for name in COLOURS if row[name])
        grid[i][0].set_ylim(min(row[COPY] for row in of_run) / 1.5, slowest * 1.3)
        grid[i][0].set_ylabel("us")
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=6, fontsize=7)
