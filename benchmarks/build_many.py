"""Build many copies of one layer for both backends, then make again, and again after a change of one copy."""

import tempfile
from pathlib import Path

from . import _machine, _make
from ._report import Report, Settings

GROUP = "build"


def measure(settings: Settings) -> Report:
    report = Report(f"make -j{_machine.cores()} of copies of `round`, every backend there is")
    counts = (2, 4, 8) if settings.quick else (10, 25, 50)
    seconds = {count: copies(report, count) for count in counts}
    per_layer = {count: time / count for count, time in seconds.items()}
    few, many = counts[0], counts[-1]
    here = _machine.here("cpu")
    # The time must be linear: a layer among many takes as long as one among few.
    growth = per_layer[many] / per_layer[few]
    report.figure(f"build per layer, {many} copies / {few} copies", here, growth, 1.1)
    last = report.rows[-1]
    report.figure(f"second make of {many} copies, seconds", here, last["second make, s"], 1.0)
    report.figure(f"steps of the second make of {many}", here, last["steps again"], 0)
    one_layers = (last["steps"] - report.rows[0]["steps"]) / (many - few)
    report.figure(f"steps after touching one of {many}", here, last["its steps"], one_layers)
    return report


def copies(report: Report, count: int) -> float:
    """Build `count` copies and add their row. Returns the seconds of the cold build."""
    source = _make.ROOT / "layers" / "round"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for i in range(count):
            _make.copy_layer(source, folder, f"copy{i:03d}")
        cold = _make.make(folder, "libraries")
        _make.make(folder, "all")  # runs each layer once, for the table
        second = _make.make(folder, "all")
        (folder / "layers" / "copy001" / "copy001.cu").touch()
        touched = _make.make(folder, "libraries")
    report.row(
        **{
            "layers": count,
            "cold, s": cold.seconds,
            "s per layer": cold.seconds / count,
            "steps": cold.steps,
            "second make, s": second.seconds,
            "steps again": second.steps,
            "after touching one, s": touched.seconds,
            "its steps": touched.steps,
        }
    )
    return cold.seconds
