"""`cuffi explain` is the toolkit's own command, under its own name."""

import pytest

from cuffi.commands import explain
from tools.cuda import explain as tool


def test_it_is_the_tools_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.cu").write_text("__global__ void k(float* y) { y[threadIdx.x] = 1; }\n")
    assert tool.main(["x.cu", "--text"]) == 0
    said = capsys.readouterr().out
    assert explain.main(["x.cu", "--text"]) == 0
    assert capsys.readouterr().out == said and said.startswith("x.cu:1: k: a loop over")


def test_errors_name_the_command(capsys):
    assert explain.main(["none.cu"]) == 2
    said = "cuffi explain: none.cu: No such file or directory: give the path of a .cu file\n"
    assert capsys.readouterr().err == said
    with pytest.raises(SystemExit) as error:
        explain.main(["--no-such"])
    assert error.value.code == 2
