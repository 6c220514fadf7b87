"""`cuffi info`: the versions on stderr, the folder on stdout."""

import re
import shlex
import sys

import torch
from conftest import ROOT

from cuffi.commands import info


def test_versions_are_on_stderr(monkeypatch, capsys):
    monkeypatch.setenv("CXX", f"{shlex.quote(sys.executable)} -I")
    monkeypatch.setenv("NVCC", "no-such-nvcc")
    assert info.main() == 0
    out, told = capsys.readouterr()
    assert out == f"{ROOT}\n" and f"torch {torch.__version__.partition('+')[0]}" in told
    assert f"-I: Python {sys.version.split()[0]}" in told and "no-such-nvcc: not found" in told
    assert re.search("libraries beside the layers: .*_host", told)


def test_without_kernels_there_is_no_folder(monkeypatch, capsys):
    monkeypatch.setattr(info, "has_kernels", lambda: False)
    assert info.main() == 0 and capsys.readouterr().out == ""
