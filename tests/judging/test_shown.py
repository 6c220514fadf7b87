"""What a judgement looks like: text, lines for editors, annotations, SARIF; and how the command ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from cuffi.judging.shown import for_github, lines, sarif, shown


@pytest.fixture
def said(tmp_path, monkeypatch):
    """A judgement of a file here, with an error and a warning."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "k \u00e4.cu"
    file.write_text("__global__ void k(int* a) {\n    a[0] += 1;\n}\n")
    place = f"{file}:2"
    race = {
        "kind": "race",
        "text": f"race in kernel k\n    {place}: a",
        "place": place,
        "kernel": "k",
        "is_warning": False,
    }
    warning = {"kind": "barrier", "text": "allowed", "place": "", "kernel": "k", "is_warning": True}
    return {
        "verdict": "race",
        "status": 1,
        "findings": [race, warning],
        "files": [str(file)],
        "ran": ["k"],
        "not_run": [],
        "seconds": 1,
    }


def test_lines_for_editors(said):
    assert lines(said).splitlines() == [
        "k \u00e4.cu:2:5: error: race in kernel k [race]",
        "k \u00e4.cu:1:1: warning: allowed [barrier]",
    ]


def test_annotations_and_text(said):
    assert "::error file=k \u00e4.cu,line=2,title=cuffi judge: race::race in kernel k%0A" in for_github(said)
    assert shown(said).splitlines()[0].endswith("k \u00e4.cu: race")


def test_sarif(said):
    told = sarif([said, said])
    (run,) = told["runs"]
    rules, results = run["tool"]["driver"]["rules"], run["results"]
    assert told["version"] == "2.1.0" and len(results) == 4
    for one in results:
        assert rules[one["ruleIndex"]]["id"] == one["ruleId"] and one["level"] in ("error", "warning")
        (where,) = one["locations"]
        place = where["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "k%20%C3%A4.cu" and place["region"]["startLine"] >= 1
    assert results[0]["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 2, "startColumn": 5, "snippet": {"text": "a[0] += 1;"}
    }  # fmt: skip
    assert [one["level"] for one in results[:2]] == ["error", "warning"]


def test_sarif_names_files_elsewhere_by_their_whole_path(said, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere"))
    uri = sarif([said])["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"][
        "uri"
    ]
    assert uri.startswith("file:///") and uri.endswith("/k%20%C3%A4.cu")


def test_nobody_reads_what_it_prints(tmp_path):
    (tmp_path / "k.cu").write_text("int f();\n")
    command = f"PYTHONUNBUFFERED=1 {sys.executable} -m cuffi.judge k.cu | true"
    done = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert not done.stderr
