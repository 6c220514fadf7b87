"""Each tool's --help prints its arguments, and does nothing else."""

import runpy
import sys

import pytest

# The others are make's: their arguments are its settings, or files of a build.
TOOLS = [
    "cuffi.caffe_layers.make.proto",
    "cuffi.caffe_layers.port",
    "cuffi.caffe_layers.verify",
    "lab.caffetest",
    "lab.fuzz",
    "lab.mutate",
    "lab.wheel.check",
    "lab.wheel.tried",
    "tools.cases.run_cases",
    "tools.cuda.for_nvcc",
    "tools.cuda.to_host",
    "tools.make.build_call",
    "tools.make.requirements",
    "tools.make.sanitize",
    "tools.new_layer",
]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules")
@pytest.mark.parametrize("tool", TOOLS)
def test_help(tool, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", [tool, "--help"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(tool, run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ") and not list(tmp_path.iterdir())
