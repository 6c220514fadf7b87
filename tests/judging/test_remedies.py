"""What usually helps."""

import pytest

from cuffi.judging.findings import CLASSES, Finding, access_at
from cuffi.judging.remedies import USUAL, remedy


def race(file, first, second, lines=(1, 2), text="race"):
    places = [f"{file}:{line}" for line in lines]
    accesses = [access_at(place, *who) for place, who in zip(places, (first, second), strict=True)]
    return remedy(Finding("race", text, places[1], "k", array="total", accesses=accesses))


def test_of_a_race(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text("  s[i] = 1;\n  y[i] = s[i + 1];\n  *total += 1;\n")
    assert "__syncwarp()" in race(file, (0, 3), (0, 4)) and "__syncthreads()" in race(file, (0, 3), (0, 40))
    assert "second launch" in race(file, (0, 3), (1, 3))
    assert "change total by an atomic" in race(file, (0, 3), (0, 40), (3, 3))
    assert "change total by an atomic" in race(file, (0, 3), (0, 4), (3, 3))
    file.write_text("  s[t] += s[t + 16];\n")
    assert "__syncwarp()" in race(file, (0, 3), (0, 4), (1, 1))
    assert "wait for the copy" in race(file, (0, 3), (0, 3), text="by an asynchronous copy that nothing")
    assert "without _block" in race(file, (0, 3), (1, 3), (1, 1), "changed atomically for one block only")


@pytest.mark.parametrize("kind", USUAL)
def test_of_a_class(kind):
    assert kind in CLASSES and remedy(Finding(kind, "")) == USUAL[kind]


def test_none():
    assert remedy(Finding("hang", "")) == ""
