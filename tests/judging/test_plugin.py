"""pytest --cuffi-judge, and the GitHub Action's script."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT
from support.workshop import FIXTURES

CLEAN = "__global__ void set(int* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 1; }\n"


@pytest.fixture
def repository(tmp_path):
    """Somebody's repository: a clean kernel, and then a change that brings a racy one."""
    (tmp_path / "clean.cu").write_text(CLEAN)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    subprocess.run([*git, "checkout", "-qb", "change"], check=True)
    (tmp_path / "racy.cu").write_bytes((FIXTURES / "judge" / "missing_atomic.cu").read_bytes())
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "two"], check=True)
    return tmp_path


def around(**settings):
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path} | settings


def test_one_test_for_each_kernel(repository):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cuffi_judge",
        "-p",
        "cuffi.judging.plugin",
        "--cuffi-judge",
        "-v",
        ".",
    ]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=repository, env=around(), capture_output=True, text=True
    )
    assert "clean.cu::set PASSED" in done.stdout and "racy.cu::count_even FAILED" in done.stdout, done.stdout
    assert "racy.cu:7: thread" in done.stdout and done.returncode == 1


def test_the_action_judges_what_changed(repository):
    script = ROOT / ".github" / "actions" / "judge" / "judge.sh"
    done = subprocess.run(
        ["bash", script], cwd=repository, env=around(BASE="main", FILES=""), capture_output=True, text=True
    )
    assert done.returncode == 1 and "clean.cu" not in done.stdout, done.stdout + done.stderr
    assert "::error file=racy.cu,line=7,title=cuffi judge: race::" in done.stdout
    clean = around(BASE="main", FILES="clean.cu")
    assert subprocess.run(["bash", script], cwd=repository, env=clean, capture_output=True).returncode == 0
