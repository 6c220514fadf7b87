"""What became worse than the figures that were kept for a card (benchmarks/_kept.py)."""

import json

from benchmarks import _kept
from benchmarks._report import Report

MACHINE = {"gpu": "A card", "cpu": "A processor", "commit": "abc", "date": "today", "torch": "2"}


def reports(took: float, ratio: float) -> dict[str, Report]:
    report = Report("a title")
    report.figure("took", "here", took)
    report.figure("ratio", "here", ratio, at_most=False)
    return {"bench": report}


def test_what_is_worse_by_a_twentieth_is_told(tmp_path):
    file, key = tmp_path / "kept.json", _kept.key_of(MACHINE, quick=False)
    assert _kept.fallen(file, key, reports(9, 9)) == []
    _kept.keep(file, key, reports(2.0, 1.0), MACHINE)
    assert _kept.fallen(file, key, reports(2.08, 0.96)) == []
    assert _kept.fallen(file, key, reports(1.0, 3.0)) == []
    assert _kept.fallen(file, key, reports(2.11, 0.95)) == [
        "bench: ratio: 1.000 at abc, now 0.950",
        "bench: took: 2.000 at abc, now 2.110",
    ]
    assert _kept.fallen(file, "another card", reports(9, 0.1)) == []


def test_figures_of_benchmarks_that_did_not_run_stay(tmp_path):
    file, key = tmp_path / "kept.json", _kept.key_of(MACHINE, quick=True)
    _kept.keep(file, key, reports(2.0, 1.0), MACHINE)
    _kept.keep(file, key, {"other": reports(3.0, 1.0)["bench"]}, MACHINE)
    assert key == "A card, quick"
    assert json.loads(file.read_text())[key]["figures"] == {
        "bench: ratio": 1.0,
        "bench: took": 2.0,
        "other: ratio": 1.0,
        "other: took": 3.0,
    }


def test_details_are_kept_as_figures_are(tmp_path):
    file = tmp_path / "kept.json"
    before = reports(1, 1)
    before["bench"].details.append(before["bench"].figures[1])
    before["bench"].figures.clear()
    _kept.keep(file, "card", before, MACHINE)
    assert list(json.loads(file.read_text())["card"]["figures"]) == ["bench: ratio"]
    assert "ratio" in _kept.fallen(file, "card", reports(1, 0.5))[0]
