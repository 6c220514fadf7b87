"""Findings of a file without a main(): blocks and numbers were invented, and what depends on them is no mistake.

A finding is certain if it is there with other numbers and with each block that the kernel's own text allows. A text
refuses a block if an index of an array whose size the code says is outside of it, and is inside with another block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .findings import NO_VERDICT, SIZED, Finding, in_doubt

OTHERS = {
    "CAFFE_JUDGE_NUMBER": "1020"
}  # all whole numbers but the first: rows are then longer than any block
FIRST = {"CAFFE_JUDGE_FIRST": "1024"}  # the first
BLOCKS = 4  # as in harness.py

# Run with these settings, and return what is found.
Again = Callable[..., list[Finding]]


@dataclass
class Invented:
    """How to run the two programs again: under the race finder, and under AddressSanitizer."""

    races: Again
    memory: Again

    def certain(self, found: list[Finding]) -> list[Finding]:
        """The findings, of which those that may be an invented argument's are in doubt."""
        asked = [one for one in found if not one.is_warning and one.kind not in NO_VERDICT]
        if not asked:
            return found
        told = [_told(self.races(**settings)) for settings in (OTHERS, FIRST)]
        doubtful = [one for one in asked if _is_of_races(one) and any(_key(one) not in all for all in told)]
        doubtful += self._of_other_blocks([one for one in asked if one not in doubtful])
        return [in_doubt(one) if one in doubtful else one for one in found]

    def _of_other_blocks(self, asked: list[Finding]) -> list[Finding]:
        """Those that another block does not have."""
        doubtful = []
        refused = {_key(one) for one in asked if SIZED.search(one.text)}
        for number in range(1, BLOCKS):
            settings = {"CAFFE_JUDGE_BLOCK": str(number)}
            memory = self.memory(**settings) if asked else []
            sized = {_key(one) for one in memory if SIZED.search(one.text)}
            if sized - refused:  # the text refuses this block
                continue
            told = _told(self.races(**settings)) | _told(memory)
            doubtful += [one for one in asked if _key(one) not in told]
            asked = [one for one in asked if one not in doubtful]
        return doubtful


def _is_of_races(one: Finding) -> bool:
    return one.kind in ("race", "lane", "unset", "barrier", "constant")


def _key(one: Finding) -> tuple[str, str]:
    return one.kind, one.place


def _told(found: list[Finding]) -> set[tuple[str, str]]:
    return {_key(one) for one in found}
