"""Draw plots by matplotlib without a display. Below each is the name of the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _machine

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

# One colour per role, the same in every plot (and told apart by colour-blind readers).
OURS, PEER, OTHER, LIMIT = "#0072b2", "#d55e00", "#999999", "#000000"

STYLE: dict[RcKeyType, Any] = {
    "svg.hashsalt": "benchmarks",  # the same numbers give the same file
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
}


def save(path: Path, draw: Callable[[Figure], None], machine: dict) -> None:
    # Imported here, because it takes 0.4 s, and most imports of a benchmark draw nothing.
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained")
        draw(figure)
        figure.supxlabel(_machine.line(machine), fontsize=7, color="#555555", x=0.01, ha="left")
        figure.savefig(path, metadata={"Date": None})


def sizes_axis(axes, sizes: list[int]) -> None:
    """A horizontal axis of powers of two."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes), max(sizes))
    axes.set_xlabel("elements")


def groups(axes, labels: list[str], series: dict[str, list[float | None]], colours: dict[str, str]) -> None:
    """Vertical bars on a log axis, with a group for each label. A value that is None has no bar."""
    width = 0.84 / len(series)
    for i, (name, values) in enumerate(series.items()):
        at = [j + (i - (len(series) - 1) / 2) * width for j in range(len(labels))]
        drawn = [(x, v) for x, v in zip(at, values, strict=True) if v is not None]
        axes.bar(*zip(*drawn, strict=True), width, color=colours[name], label=name) if drawn else None
    axes.set_yscale("log")
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=7)
