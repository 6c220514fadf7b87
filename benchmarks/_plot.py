"""Draw plots by matplotlib without a display. Below each is the name of the machine."""

from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from . import _machine

# One colour per role, the same in every plot (and told apart by colour-blind readers).
OURS, PEER, OTHER, LIMIT = "#0072b2", "#d55e00", "#999999", "#000000"

STYLE = {
    "svg.hashsalt": "benchmarks",  # the same numbers give the same file
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
}


def save(path: Path, draw: Callable[[Figure], None], machine: dict) -> None:
    with plt.rc_context(STYLE):
        figure = plt.figure(layout="constrained")
        draw(figure)
        figure.supxlabel(_machine.line(machine), fontsize=7, color="#555555", x=0.01, ha="left")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def sizes_axis(axes, sizes: list[int]) -> None:
    """A horizontal axis of powers of two."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes), max(sizes))
    axes.set_xlabel("elements")


def bars(axes, values: dict[str, float], colours: list[str], unit: str) -> None:
    """Horizontal bars, in order from the top, each with its number."""
    drawn = axes.barh(list(values), list(values.values()), color=colours)
    axes.bar_label(drawn, fmt=lambda v: f" {v:.3g}")
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.margins(x=0.12)


def panels(figure, medians: dict[str, dict[str, float]], colours: dict[str, str], unit: str) -> None:
    """A panel with bars for each title, two panels per row. Names without a colour get that of OTHER."""
    rows = (len(medians) + 1) // 2
    figure.set_size_inches(8, 1.9 * rows + 0.3)
    for axes, (title, values) in zip(figure.subplots(rows, 2).flat, medians.items(), strict=True):
        bars(axes, values, [colours.get(name, OTHER) for name in values], unit)
        axes.set_title(title, loc="left")


def groups(axes, labels: list[str], series: dict[str, list[float | None]], colours: dict[str, str]) -> None:
    """Vertical bars on a log axis, with a group for each label. A value that is None has no bar."""
    width = 0.84 / len(series)
    for i, (name, values) in enumerate(series.items()):
        at = [j + (i - (len(series) - 1) / 2) * width for j in range(len(labels))]
        drawn = [(x, v) for x, v in zip(at, values, strict=True) if v is not None]
        axes.bar(*zip(*drawn, strict=True), width, color=colours[name], label=name) if drawn else None
    axes.set_yscale("log")
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=7)
