"""The LLTM cell, forward + backward in a user's program, against eager torch and torch.compile of the same cell."""

import statistics
import time

import torch

from cuffi.runtime.cases import Draw, cast

from . import _machine, _plot
from ._cases import benched, check_passes, compiled, forward_backward
from ._machine import GPU
from ._report import Report, Settings, brief
from ._timing import Timer, in_turns, on_cpu, on_wall

GROUP = "layers"
LAYER = "lltm"

OURS, EAGER, COMPILED = "ours", "eager", "compiled"
COLOURS = {OURS: _plot.OURS, EAGER: _plot.PEER, COMPILED: _plot.OTHER}
DTYPES = {GPU: (torch.float32, torch.float16), "cpu": (torch.float32,)}
QUICK = ("16x32x128", "4096x32x1024")
HOST = ("16x32x128", "256x32x128")
TARGET = 1.0  # of the better peer, at every size
# Seconds from a device's start. After the first, a new size is compiled with a batch that varies, for all sizes of the
# same state. After the second, nothing more is compiled.
STATIC_UNTIL, COMPILE_UNTIL = 20, 32
KEY = "better / ours"


def measure(settings: Settings) -> Report:
    report = Report("LLTM cell (batch x features x state), forward + backward, wall time in us")
    for device in _machine.devices():
        start = time.perf_counter()
        for _, case in benched(device, LAYER, report.notes):
            sizes = HOST if device == "cpu" else QUICK if settings.quick else case.bench
            varying = {}
            for dtype in DTYPES[device]:
                for size in sizes:
                    if size in case.bench:
                        one(report, settings, case, device, dtype, size, start, varying)
        report.notes.append(f"{device}: {time.perf_counter() - start:.0f} s.")
    report.notes += [
        "Gradients of all five inputs. GPU: many calls, then one wait for it; launches and Python count.",
        f"{KEY}: of eager torch operators and torch.compile (default mode), the faster; compile: its shapes.",
    ]
    report.for_each_device("lltm", summarise, draw)
    return report


def one(report: Report, settings, case, device, dtype, size, start, varying: dict) -> None:
    """The row of one size and dtype."""
    name = {torch.float32: "float", torch.float16: "half"}[dtype]
    arguments = cast(case.bench[size](Draw()), dtype, device, grad=True)
    check_passes(LAYER, case, arguments, cast(arguments, torch.float64, device, grad=True), backward=True)
    with torch.no_grad():
        top_diffs = tuple(torch.randn_like(top) for top in case.reference(*arguments))
    run = forward_backward(arguments, top_diffs)
    functions = {OURS: case.function, EAGER: case.reference}
    shapes = None
    if device == GPU or not settings.quick:  # on a CPU, compiling starts a C++ compiler
        try:
            if found := peer(case, arguments, dtype, time.perf_counter() - start, varying):
                function, shapes = found
                run(function)
                functions[COMPILED] = function
            else:
                report.notes.append(f"{size} {name}: {COMPILED} is absent: no time was left to compile.")
        except Exception as error:
            report.notes.append(f"{size} {name}: {COMPILED} is absent: {brief(error)}")
    timers = {n: timer(lambda f=function: run(f), device) for n, function in functions.items()}
    seconds = (0.15 if settings.quick else 0.4) if device == GPU else (0.5 if settings.quick else 3.0)
    times = in_turns(timers, seconds, least=5 if device == GPU else 9)
    better = min((n for n in times if n != OURS), key=times.median)
    report.row(
        on=device,
        size=size,
        dtype=name,
        **{n: times.median(n) * 1e6 if n in times else None for n in COLOURS},
        **{
            "eager / ours": times.ratio(EAGER, OURS),
            "compiled / ours": times.ratio(COMPILED, OURS) if COMPILED in times else None,
            KEY: times.ratio(better, OURS),
            "spread": times.spread(OURS),
            "compile": shapes if COMPILED in times else None,
        },
    )


def peer(case, arguments: tuple, dtype, passed: float, varying: dict) -> tuple | None:
    """(torch.compile of the plain function, for which shapes), as time allows, the best first."""
    state = arguments[-1].shape
    kind = (dtype, state[1])
    if arguments[0].device.type == "cpu" or (passed < STATIC_UNTIL and kind not in varying):
        return compiled(case.reference), "static"
    if kind not in varying:
        if passed > COMPILE_UNTIL:
            return None
        varying[kind] = compiled(case.reference, dynamic=None)
    for tensor in (arguments[0], *arguments[3:]):  # what has a batch
        torch._dynamo.mark_dynamic(tensor, 0)
    return varying[kind], "batch varies"


def timer(call, device: str) -> Timer:
    """A timer of a call among many. The time includes the wait for the end of the last call."""
    if device == "cpu":
        return on_cpu([call] * 8)

    calls = max(4, min(100, round(0.01 / on_wall([call], rounds=5)())))
    return on_wall([call], calls)


def summarise(report: Report, device: str, rows: list[dict]) -> None:
    here, target = _machine.here(device), TARGET if device == GPU else None
    for dtype in dict.fromkeys(row["dtype"] for row in rows):
        mine = [row for row in rows if row["dtype"] == dtype]
        worst = min(mine, key=lambda row: row[KEY])
        what = f"LLTM {dtype}, {KEY}"
        report.figure(f"{what}, least ({worst['size']})", here, worst[KEY], target, at_most=False)
        mean = statistics.geometric_mean(row[KEY] for row in mine)
        report.figure(f"{what}, geometric mean", here, mean, at_most=False)


def draw(figure, rows: list[dict]) -> None:
    """A panel for each dtype: bars by size."""
    dtypes = list(dict.fromkeys(row["dtype"] for row in rows))
    figure.set_size_inches(max(4.8 * len(dtypes), 6), 3.2)
    grid = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for axes, dtype in zip(grid, dtypes, strict=True):
        mine = [row for row in rows if row["dtype"] == dtype]
        series = {name: [row[name] for row in mine] for name in COLOURS if any(row[name] for row in mine)}
        _plot.groups(axes, [row["size"] for row in mine], series, COLOURS)
        axes.set_title(f"LLTM forward + backward, {dtype}", loc="left")
    grid[0].set_ylabel("us")
    handles, names = grid[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=3, fontsize=7)
