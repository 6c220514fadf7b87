"""Fixtures of this folder."""

import re
import sys

import pytest

from cuffi.caffe_layers.port import __main__ as port
from tools.make.settings import Settings


@pytest.fixture
def said(fork, tmp_path, monkeypatch, capsys):
    """Runs it in this process; returns (status, its lines, where a line of dashes or an empty one does not count)."""
    layers = tmp_path / "mine"
    layers.mkdir()
    build, core = str(tmp_path / "build"), str(tmp_path / "core")
    settings = Settings({"NVCC": "", "BUILD": build, "CORE": core, "LAYERS_DIR": str(layers)})
    monkeypatch.setattr(port, "from_environment", lambda words: (settings, words))

    def run(*arguments):
        command = ["port", "--caffe", str(fork.root), "--layers-dir", str(layers), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        status = port.main()
        text = capsys.readouterr().out.replace(str(tmp_path), "")
        lines = [" ".join(re.sub("[┃│]", " | ", line).strip(" |").split()) for line in text.splitlines()]
        return status, [line for line in lines if line and not set(line) & set("━─")]

    return run
