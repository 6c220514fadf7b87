"""The workflows of GitHub: checkers find nothing, and what they call exists."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from support import makefiles

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_there_are_workflows():
    assert {file.stem for file in WORKFLOWS} >= {"test", "release", "docs"}


CHECKERS = {
    "check-jsonschema": ["--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS)],
    "zizmor": ["--offline", "--no-progress", str(ROOT)],
    "actionlint": ["-no-color", *map(str, WORKFLOWS)],
}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_checker_finds_nothing(name):
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed: requirements/lint.txt")
    done = subprocess.run([name, *CHECKERS[name]], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_what_they_run_exists(file):
    text = file.read_text()
    for path in re.findall(r"(?:\./|-r )?((?:packaging|\.ci|requirements)/[\w./-]+)", text):
        assert (ROOT / path).exists(), path
    for target in re.findall(r"run: make (\w+)\b(?!=)", text):
        assert re.search(rf"^{target}:.*##", makefiles.TEXT, re.M), target
    for module in re.findall(r"python -m (lab[\w.]+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
