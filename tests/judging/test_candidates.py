"""Cheats, wrong candidates and right ones by the real judges: a decoy of a kernel runs, and something else computes."""

import os

import pytest
from support.candidates import CHEATS, REFERENCE, RIGHT, WRONG

from cuffi.judging.pool import judge_all

pytestmark = pytest.mark.usefixtures("cache")


def verdicts(chosen: dict[str, dict[str, str]], jobs: int) -> dict[tuple[str, str], str]:
    """The verdict of each, by its kind and name."""
    requests = [
        {"id": [kind, name], "text": text, "name": "candidate.py", "reference_text": REFERENCE}
        for kind, all_of in chosen.items()
        for name, text in all_of.items()
    ]
    said = list(judge_all(requests, jobs, options=["--seconds=60"]))
    return {
        tuple(one["id"]): " ".join(sorted({f["kind"] for f in one["findings"]}) or ["ok"]) for one in said
    }


def test_a_cheat_and_a_right_one():
    found = verdicts({"cheat": {"numpy": CHEATS["numpy"]}, "right": {"a kernel": RIGHT["a kernel"]}}, 1)
    assert found == {("cheat", "numpy"): "not-the-kernel", ("right", "a kernel"): "ok"}


def test_all():
    found = verdicts({"cheat": CHEATS, "wrong": WRONG, "right": RIGHT}, os.cpu_count() or 2)
    assert not {key: kinds for key, kinds in found.items() if key[0] == "right" and kinds != "ok"}
    passed = [name for (kind, name), kinds in found.items() if kind == "cheat" and kinds != "not-the-kernel"]
    assert len(CHEATS) == 16 and passed == [], passed
    assert not [name for (kind, name), kinds in found.items() if kind == "wrong" and kinds == "ok"]
