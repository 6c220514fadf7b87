"""Each tool's --help prints its arguments, and does nothing else."""

import runpy
import sys

import pytest

# The others are make's: their arguments are its settings, or files of a build.
TOOLS = [
    "caffe.proto",
    "caffetest",
    "cuda.for_nvcc",
    "cuda.to_host",
    "fuzz",
    "make.build_call",
    "make.requirements",
    "make.sanitize",
    "new_layer",
    "port",
    "verify",
    "verify.run_cases",
]
TOOLS = [f"tools.{tool}" for tool in TOOLS] + ["lab.mutate", "lab.wheel.check", "lab.wheel.tried"]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("tool", TOOLS)
def test_help(tool, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", [tool, "--help"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(tool, run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ") and not list(tmp_path.iterdir())
