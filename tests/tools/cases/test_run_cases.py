"""The run of every case, for the checkers of make sanitize, on copies of the toolkit's layers."""

import shutil
import sys
from pathlib import Path

import pytest
from conftest import FOLDERS, ROOT

from tools.cases import run_cases


@pytest.fixture
def ran(tmp_path, monkeypatch, capsys):
    """Copies of layers, some files left out or replaced: the status and what is printed."""

    def run(layer: str, without: str = "", **files: str) -> tuple[int, str]:
        leave_out = shutil.ignore_patterns(without, "__pycache__")
        copy = shutil.copytree(FOLDERS[layer], tmp_path / layer, ignore=leave_out)
        for stem, text in files.items():
            (copy / f"{stem}.py").write_text(text)
        monkeypatch.setattr(sys, "argv", ["run_cases", f"--layers-dir={tmp_path}", "--dtypes", "float32"])
        return run_cases.main(), capsys.readouterr().out

    return run


def test_a_layer_with_cases_is_held_to_them(ran):
    status, said = ran("normalize")
    assert status == 0 and said.endswith("runs on cpu, wrong: none\n") and not said.startswith("0 ")


def test_a_wrong_result_is_named(ran):
    right = (ROOT / "cuffi/caffe_layers/layers/normalize/cases.py").read_text()
    wrong = "from dataclasses import replace\nCASES = [replace(CASES[0], reference=lambda x, *_: x + 1)]\n"
    status, said = ran("normalize", cases=right + wrong)
    assert status == 1 and "wrong: normalize-" in said


def test_a_caffe_layer_without_cases_runs_on_guessed_inputs(ran):
    """Its own code and its kernels."""
    assert ran("normalize", without="cases.py") == (0, "2 runs on cpu, wrong: none\n")


def test_a_kernel_without_cases_is_said_not_to_run(ran):
    status, said = ran("depthwise_conv", without="cases.py")
    assert status == 3 and said.startswith("0 runs") and said.endswith("Write depthwise_conv/cases.py.\n")


def test_a_layer_that_fails_does_not_stop_the_others(ran):
    """It is named with its error, and the next one runs."""
    assert ran("correlation", cases="raise ValueError('no')\n")[0] == 1
    status, said = ran("normalize")
    assert (
        status == 1 and said.endswith("runs on cpu, wrong: correlation: ValueError: no\n") and said[0] != "0"
    )


def test_the_bundled_layers_are_run_without_a_word(monkeypatch):
    """`make test` of an installed toolkit names no folder. _runtime has a library, too, but is not a layer."""
    asked = []
    monkeypatch.setattr(sys, "argv", ["run_cases"])
    monkeypatch.setattr(run_cases, "run_layer", lambda package, name, *_: asked.append(name))
    run_cases.main()
    assert "normalize" in asked and "_runtime" not in asked
    monkeypatch.setattr(
        run_cases, "ROOT", ROOT / "nosuch"
    )  # as in an installed toolkit, which has no folder `layers`
    assert run_cases.folders_of("layers")[0] == ROOT / "layers" and run_cases.folders_of("mine") == [
        Path("mine")
    ]
