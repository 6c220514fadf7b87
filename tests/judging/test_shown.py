"""What a judgement looks like: text, lines for editors, annotations, SARIF; and how the command ends."""

import os
import shlex
import signal
import subprocess
import sys
import time
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
    command = f"PYTHONUNBUFFERED=1 {shlex.quote(sys.executable)} -m cuffi.judge k.cu | true"
    done = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert not done.stderr


def test_remedies_are_shown(said):
    said["findings"][0]["remedy"] = "put a barrier there"
    assert "\n    remedy: put a barrier there\n" in shown(said)


def test_a_compiler_that_is_absent_is_named(tmp_path):
    (tmp_path / "k.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
    done = subprocess.run(
        [sys.executable, "-m", "cuffi.judge", "k.cu"], cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CXX": "no-such-compiler", "CUFFI_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 3 and not done.stderr, done.stderr
    assert "there is no no-such-compiler" in done.stdout and "name a C++ compiler in CXX" in done.stdout


def test_ctrl_c_ends_quietly_and_at_once(tmp_path):
    """What it runs ends, too: here a program that waits, as a compiler."""
    wait = tmp_path / "wait"
    wait.write_text(f"#!/bin/sh\ntouch {tmp_path / 'began'}\nexec sleep 60\n")
    wait.chmod(0o700)
    (tmp_path / "k.cu").write_text("__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
    code = (
        "import sys\nfrom pathlib import Path\nfrom cuffi import judge\nfrom cuffi.judging import limits, programs\n"
        f"waits = lambda *_, **__: limits.run(Path({str(wait)!r}), [], limits.Limits(), Path({str(tmp_path)!r}))\n"
        "programs.Program.run = waits\nsys.argv[1:] = ['k.cu']\nsys.exit(judge.command())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CUFFI_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=15)
    assert (process.returncode, out, errors) == (130, "", "")
