"""Running a script or a program of 2017."""

import os
import subprocess
from pathlib import Path

from cuffi.old_torch.ffi import front


def test_programs_come_back_and_the_real_nvcc_has_a_name(tmp_path, monkeypatch):
    """`python x.py` in a Makefile runs here, too; `python -c` does not."""
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("NVCC", "/opt/cuda/bin/nvcc")
    front.put_programs_first()
    folder = Path(os.environ["PATH"].partition(os.pathsep)[0])
    assert os.environ["NVCC"] == "/opt/cuda/bin/nvcc" and folder == front.programs()
    assert sorted(os.listdir(folder)) == ["nvcc", "python", "python2", "python3"]
    done = subprocess.run(["python2", "-c", "print('plain')"], capture_output=True, text=True)
    assert done.stdout == "plain\n", done.stderr
    assert f'"{front.PROGRAM}" nvcc "$@"' in (folder / "nvcc").read_text()


def test_words_and_exit_statuses(tmp_path, capsys):
    assert front.main([]) == 2 and front.main(["--help"]) == 0
    assert front.main(["nvcc", "--version"]) == 0
    assert "python -m cuffi.ffi build.py" in capsys.readouterr().out


def test_a_program_that_is_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("NVCC", "")
    assert front.main(["no-such-make", "all"]) == 127
    assert capsys.readouterr().err == "no-such-make: No such file or directory\n"
