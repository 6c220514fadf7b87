"""The last figures of a card, kept in the tree: what a run compares itself with (kept.json)."""

import json
from collections.abc import Iterable
from pathlib import Path

from ._report import Figure, Report

FILE = Path(__file__).parent / "kept.json"
FALLS = 0.05  # what is worse by this share is told


def key_of(machine: dict, quick: bool) -> str:
    """The card, or the processor where there is none. A quick run has figures of its own."""
    card = machine["cpu"] if machine["gpu"] == "none" else machine["gpu"]
    return f"{card}, quick" if quick else str(card)


def _named(reports: dict[str, Report]) -> dict[str, Figure]:
    return {
        f"{name}: {figure.what}": figure
        for name, report in reports.items()
        for figure in (*report.figures, *report.details)
    }


def fallen(file: Path, key: str, reports: dict[str, Report]) -> list[str]:
    """A line for each figure that is worse than the kept one; none if nothing is kept for this card."""
    known = json.loads(file.read_text()).get(key) if file.exists() else None
    return list(_lines(known, _named(reports))) if known else []


def _lines(known: dict, now: dict[str, Figure]) -> Iterable[str]:
    for name, before in known["figures"].items():
        figure = now.get(name)
        if figure is None or before <= 0 or figure.value <= 0:
            continue
        worse = figure.value / before if figure.at_most else before / figure.value
        if worse >= 1 + FALLS:
            yield f"{name}: {before:.3f} at {known['commit']}, now {figure.value:.3f}"


def keep(file: Path, key: str, reports: dict[str, Report], machine: dict) -> None:
    """Keep this run's figures for the card. Figures of benchmarks that did not run stay as they were."""
    kept = json.loads(file.read_text()) if file.exists() else {}
    figures = kept.get(key, {}).get("figures", {})
    figures |= {name: round(figure.value, 4) for name, figure in _named(reports).items()}
    kept[key] = {"commit": machine["commit"], "date": machine["date"], "torch": machine["torch"]}
    kept[key]["figures"] = dict(sorted(figures.items()))
    file.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
