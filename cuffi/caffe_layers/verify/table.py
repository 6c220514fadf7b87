"""The rows of verify, the table, its last line and the exit status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tools.cases.races import LaneRead, Mistake, OfHost, Race

RIGHT, NO_GRADIENT, NO_CODE, WRONG, FAILED = "right", "no gradient", "no code", "WRONG", "FAILED"
# Wrong, or crashed, on guessed shapes, which may not fit the layer.
UNSURE, CRASHED = "wrong on a guess", "CRASHED"
STYLES = {RIGHT: "green", NO_GRADIENT: "yellow", NO_CODE: "dim", WRONG: "bold red", FAILED: "bold red",
          UNSURE: "yellow", CRASHED: "bold red"}  # fmt: skip
# Exit statuses. 2 means a wrong command line.
STATUS_RIGHT, STATUS_WRONG, STATUS_NO_SENSE, STATUS_NOT_RUN = 0, 1, 2, 3


@dataclass
class Row:
    """One line of the table: one setting, one code, one dtype."""

    setting: str
    code: str
    dtype: str
    forward: str = "-"
    backward: str = "-"
    error: str = "-"
    verdict: str = FAILED
    remark: str = ""
    # Is the whole gradient 0?
    zero: bool = False
    details: list[str] = field(default_factory=list)


def show(console: Console, layer: str, rows: list[Row]) -> None:
    table = Table(title=layer, title_justify="left", title_style="bold")
    for column, style in (("on", "cyan"), ("code", ""), ("dtype", "")):
        table.add_column(column, style=style, overflow="fold")
    for column in ("forward vs first", "backward vs first", "gradient error", "verdict"):
        table.add_column(column)
    before = None
    for row in rows:
        name, before = ("" if row.setting == before else row.setting), row.setting
        remark = f": {escape(row.remark)}" if row.remark else ""
        verdict = f"[{STYLES[row.verdict]}]{row.verdict}[/]{remark}"
        table.add_row(escape(name), row.code, row.dtype, row.forward, row.backward, row.error, verdict)
    console.print(table)
    for row in rows:
        for detail in row.details:
            text = f"  {row.setting}: {row.code}, {row.dtype}: {detail}"
            console.print(text, markup=False, emoji=False, highlight=False)


def closing(
    layer: str, rows: list[Row], races: Sequence[Race | LaneRead | Mistake | OfHost], idle: bool = False
) -> int:
    """The last line, and the exit status.

    Args:
        idle: the layer has kernels, and none of them ran.
    """
    wrong = [r for r in rows if r.verdict in (WRONG, CRASHED)]
    not_run = [r for r in rows if r.verdict in (FAILED, UNSURE)]
    ran = [r for r in rows if r.verdict not in (NO_CODE, FAILED)]
    right = [r for r in rows if r.verdict == RIGHT]
    crashed = [r for r in wrong if r.verdict == CRASHED]
    if wrong or races:
        ended = f"the layer ends its process: {crashed[0].remark}" if crashed else ""
        said = [ended or f"wrong in {len(wrong)} of {len(ran)} ways"] * bool(wrong)
        print(f"{layer}: {', '.join([*said, *[f'{len(races)} races'] * bool(races)])}")
        return STATUS_WRONG
    if any(r.verdict == UNSURE for r in rows):
        why = "the shapes were guessed, and may not fit the layer"
        print(f"{layer}: no verdict: {why}. Give SHAPES")
        return STATUS_NOT_RUN
    if not_run or not ran:
        what = f"{len(not_run)} ways" if ran else "any way"
        print(f"{layer}: could not be run in {what}")
        return STATUS_NOT_RUN
    ways = f"gradient right in {len(right)} ways" if right else "no gradient to check; the ways agree"
    if idle:  # such as Permute without an order
        print(f"{layer}: {ways}, but none of its kernels ran. Give PARAM or SHAPES with which they do")
        return STATUS_NOT_RUN
    print(f"{layer}: {ways}")
    return STATUS_RIGHT
