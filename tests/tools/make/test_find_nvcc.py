"""The search for nvcc: its order, and links and scripts."""

import os
from pathlib import Path

import pytest

from tools.make import find_nvcc


class Places:
    """An executable file in each place where nvcc may be, and in those that a test asks for."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.home, self.path = self("home/bin/nvcc"), self("path/nvcc")
        self.old, self.new = (self(f"pip/nvidia/cu{n}/bin/nvcc") for n in (12, 13))

    def __call__(self, path: str, text: str = "\x7fELF") -> str:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return str(file)


@pytest.fixture
def places(tmp_path, monkeypatch) -> Places:
    """None in /usr/local."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(find_nvcc.sys, "path", ["", str(tmp_path / "none"), str(tmp_path / "pip")])
    real = os.access
    monkeypatch.setattr(
        find_nvcc.os, "access", lambda p, how: not p.startswith("/usr/local/") and real(p, how)
    )
    return Places(tmp_path)


def test_order(places, tmp_path):
    home = str(tmp_path / "home")
    assert list(find_nvcc.candidates(home)) == [
        places.home, places.path, "/usr/local/cuda/bin/nvcc", places.new, places.old
    ]  # fmt: skip
    for found in (places.home, places.path, places.new, places.old):
        assert find_nvcc.find(home) == found
        os.chmod(found, 0o644)  # root may not run it, either
    assert find_nvcc.find(home) == find_nvcc.find() == ""


def test_without_cuda_home(places):
    assert find_nvcc.find() == places.path


def test_behind_links_and_scripts(places, tmp_path):
    real = places("toolkit/nvcc")
    os.symlink(real, tmp_path / "link")
    assert find_nvcc.real(str(tmp_path / "link")) == real
    script = places(
        "script/nvcc", f"#!/bin/sh\nexec /nowhere/nvcc {tmp_path}/script/nvcc {tmp_path}/link {real} $@\n"
    )
    assert find_nvcc.real(script) == real
    other = places("other/nvcc", f"#!/bin/sh\nexec {script}\n")
    assert find_nvcc.real(other) == real
    assert find_nvcc.real(places("odd/nvcc", "#!/bin/sh\nexec cicc\n")) == str(tmp_path / "odd" / "nvcc")


def test_a_cuda_home_without_nvcc_is_told(places, tmp_path):
    home = str(tmp_path / "home")
    assert find_nvcc.elsewhere(home, places.home) == find_nvcc.elsewhere("", places.path) == ""
    os.chmod(places.home, 0o644)
    assert find_nvcc.elsewhere(home, places.path) == (
        f"CUDA_HOME={home}: there is no bin/nvcc in it. {places.path} is used: "
        "give the folder that has bin/nvcc, or leave CUDA_HOME out"
    )
    assert "No other nvcc is used: give the folder" in find_nvcc.elsewhere("/nowhere", "")
