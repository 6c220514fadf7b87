"""A run of make: its content, and the folders that it may empty."""

import os
import subprocess
import sys

from conftest import ROOT
from support.workshop import steps

from tools.make.job import Job
from tools.make.settings import Settings


def test_a_layer_of_that_name_from_another_folder(workshop, tmp_path):
    """Both are built in one BUILD, whose objects are all newer than the other folder's files."""
    other = type(workshop)(tmp_path / "other")
    for value, shop in (("1", workshop), ("2", other)):
        for file in shop.layer("one", value=value).iterdir():
            os.utime(file, (0, 0))
    build = f"BUILD={tmp_path / 'build'}"
    plain = ["make", f"PYTHON={sys.executable}"]  # with no options: the Makefile looks at them
    for shop, value in ((workshop, 1), (other, 2), (workshop, 1)):
        subprocess.run([*plain, *shop.settings("libraries", build)], cwd=ROOT, check=True)
        assert shop.fill("one") == value
    assert steps(workshop.build("libraries", build)) == []
    other.make("-n", "libraries", build)  # which only says what it would do
    assert steps(workshop.build("libraries", build)) == []
    other.build("libraries", build)
    assert other.fill("one") == 2


def test_a_folder_of_the_users_is_not_emptied(workshop, tmp_path):
    """It lies in BUILD, under the name of the one for temporary files; a link may lead anywhere."""
    workshop.layer("one")
    own = tmp_path / "b" / "_tmp"
    own.mkdir(parents=True)
    (own / "thesis.tex").write_text("x")
    for _ in range(2):
        said = workshop.make(f"BUILD={tmp_path / 'b'}", "libraries")
        assert (
            said.returncode and "_tmp: make would empty this folder, but did not create it" in said.output
        ), said.output
    assert (own / "thesis.tex").exists()
    own.rename(tmp_path / "elsewhere")
    own.symlink_to(tmp_path / "elsewhere")
    assert workshop.make(f"BUILD={tmp_path / 'b'}", "libraries").returncode
    assert (tmp_path / "elsewhere/thesis.tex").exists()
    own.unlink()
    workshop.build(f"BUILD={tmp_path / 'b'}", "libraries")


def test_no_file_of_a_build_in_the_toolkit_has_its_place(tmp_path, monkeypatch):
    """So a copy of a built tree builds nothing again: not the mark of the objects, nor the rules' files."""
    monkeypatch.chdir(ROOT)
    job = Job(Settings({"NVCC": "", "LAYERS": "round", "BUILD": "build"}))
    assert job.rules.files and not [path for path, text in job.rules.files.items() if str(ROOT) in text]
    monkeypatch.chdir(tmp_path)
    job._claim("round", dry=False)
    assert (tmp_path / "build" / "round" / "from").read_text() == "layers\n"
    job.settings.build = str(tmp_path / "outside")
    job._claim("round", dry=False)
    assert (tmp_path / "outside" / "round" / "from").read_text() == f"{ROOT}/layers\n"
