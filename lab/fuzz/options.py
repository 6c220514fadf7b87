"""The command line of lab.fuzz. make fuzz reads it, too, before it builds anything, so this file imports no torch."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def parser(description: str, of_layers: bool = True) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if of_layers:
        made.add_argument("--layers-dir", default=str(ROOT / "layers"), help="one or several, separated by :")
        made.add_argument("--layers", nargs="*", help="default: all that are built for the host")
    made.add_argument("--minutes", type=positive, default=1)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--examples", type=int, default=1000, help="calls of one round, in one process")
    return made


def positive(text: str) -> float:
    """A number above 0, because no time would mean no calls."""
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text}")
    return number
