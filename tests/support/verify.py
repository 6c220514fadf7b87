"""Runs make verify on a layer, and returns its output."""

import re
from typing import NamedTuple


class Outcome(NamedTuple):
    status: int
    text: str

    @property
    def verdicts(self) -> set[str]:
        return set(
            re.findall(r"\b(right|no gradient|no code|WRONG|FAILED|CRASHED|wrong on a guess)\b", self.table)
        )

    @property
    def table(self) -> str:
        return "\n".join(line for line in self.text.splitlines() if line.startswith("│"))


# A mistake shows in the few elements that are looked at in this time.
QUICK = ("--seconds", "0.02")
