"""The report of a benchmark: rows for its table, figures with their targets, and plots."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import _machine


@dataclass(frozen=True)
class Settings:
    """The options of a run: few repetitions, only one layer, the folder for the results."""

    quick: bool
    layer: str | None
    out: Path


@dataclass(frozen=True)
class Figure:
    """A line of the last table: a value, most often ours / peer, and its target."""

    what: str
    on: str
    value: float
    target: float | None = None
    at_most: bool = True

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


@dataclass
class Report:
    """One benchmark's results.

    Attributes:
        title: the table's heading.
        notes: facts that a reader needs to understand the numbers. They are printed below the table.
        rows: one dict per line, with the columns as its keys, for the JSON.
        shown: the rows that are in the table, too.
        figures: the lines of the last table.
        details: further figures that a later run compares itself with (_kept.py).
        plots: functions that draw into a matplotlib figure, by file name.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)
    shown: list[dict] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    details: list[Figure] = field(default_factory=list)
    plots: dict[str, Callable] = field(default_factory=dict)
    seconds: float = 0.0

    def row(self, **columns) -> None:
        self.rows.append(columns)
        self.shown.append(columns)

    def calls(self, times, ours: str, device: str, grad: bool, ratio: str = "ours / it", names=None) -> None:
        """A row for each contender of one eager call, or for those with these names."""
        for name in names or times:
            self.row(
                on=device,
                grad="yes" if grad else "no",
                call=name,
                us=times.median(name) * 1e6,
                least=times.least(name) * 1e6,
                spread=times.spread(name),
                **{ratio: times.ratio(ours, name)},
            )

    def figure(
        self, what: str, on: str, value: float, target: float | None = None, at_most: bool = True
    ) -> None:
        self.figures.append(Figure(what, on, value, target, at_most))

    def for_each_device(self, name: str, summarise: Callable, draw: Callable) -> None:
        """Summarise the rows of each device, and draw them into a plot."""
        for device in dict.fromkeys(row["on"] for row in self.rows):
            rows = [row for row in self.rows if row["on"] == device]
            summarise(self, device, rows)
            plot = name if device == _machine.GPU else f"{name}_{device}"
            self.plots[plot] = lambda figure, rows=rows: draw(figure, rows)

    def table(self) -> Table:
        columns = list(dict.fromkeys(key for row in self.shown for key in row))
        caption = "\n".join([*self.notes, f"({self.seconds:.0f} s)"])
        table = Table(
            title=self.title, title_justify="left", caption=caption, caption_justify="left", box=None
        )
        for column in columns:
            numbers = any(isinstance(row.get(column), int | float) for row in self.shown)
            table.add_column(column, justify="right" if numbers else "left", no_wrap=numbers)
        for row in self.shown:
            table.add_row(*(show(row.get(column)) for column in columns))
        return table


def brief(error: Exception) -> str:
    """The kind of an error, and the beginning of its text."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:100]}"


def show(value) -> str:
    """The text of a table cell. Benchmarks are not more exact than three digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def console() -> Console:
    plain = Console()
    return plain if plain.is_terminal else Console(width=130)  # a log file has no width of its own


def closing_table(reports: dict[str, Report], machine: dict) -> Table:
    """The table of all figures, with their values, their targets, and whether they reach them."""
    table = Table("figure", "on", title=_machine.line(machine), title_justify="left", box=None)
    for column in ("measured", "reach", "met"):
        table.add_column(column, justify="right", no_wrap=True)
    for report in reports.values():
        for figure in report.figures:
            sign = "<=" if figure.at_most else ">="
            target = "" if figure.target is None else f"{sign} {figure.target:.3g}"
            met = {True: "[green]yes", False: "[red]no", None: ""}[figure.met]
            table.add_row(figure.what, figure.on, f"{figure.value:.3f}", target, met)
    return table


def write_json(path: Path, name: str, report: Report, machine: dict) -> None:
    figures = [{**asdict(figure), "met": figure.met} for figure in report.figures]
    content = {
        "benchmark": name,
        "title": report.title,
        "notes": report.notes,
        "machine": machine,
        "seconds": round(report.seconds, 1),
        "figures": figures,
        "rows": report.rows,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
