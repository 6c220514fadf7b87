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


TWO = """__global__ void fine(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i]; }
__global__ void shifted(const float* x, float* y, int n) { int i = threadIdx.x; if (i <= n) y[i] = 2 * x[i]; }
int main() {
  int n = 100; float *x, *y; cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMemset(x, 0, n * 4);
  fine<<<1, 128>>>(x, y, n); shifted<<<1, 128>>>(x, y, n); return cudaDeviceSynchronize();
}
"""


def test_the_kernel_that_is_wrong_fails_alone(tmp_path):
    (tmp_path / "k.cu").write_text(TWO)
    words = [
        "-pno:cuffi_judge",
        "-pno:cacheprovider",
        "-pcuffi.judging.plugin",
        "--cuffi-judge",
        "-q",
        "k.cu",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=tmp_path, env=around(), capture_output=True, text=True
    )
    assert "FAILED k.cu::shifted" in done.stdout and "FAILED k.cu::fine" not in done.stdout, done.stdout
    assert "k.cu:2: thread 100 of block 0" in done.stdout


def test_the_action_takes_any_name_and_follows_headers(repository):
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(repository)]
    (repository / "racy.cu").unlink()
    (repository / "user.cu").write_text('#include "sub/k.cuh"\nint main() { return 0; }\n')
    (repository / "other.cu").write_text('#include "sub/kk.cuh"\n')
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "three"], check=True)
    (repository / "sub").mkdir()
    (repository / "sub" / "k.cuh").write_text("inline int f() { return 1; }\n")
    (repository / "k\u00e4r nel.cu").write_text("int f();\n")
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "four"], check=True)
    script, summary = ROOT / ".github" / "actions" / "judge" / "judge.sh", repository / "summary"
    done = subprocess.run(
        ["bash", script], cwd=repository, capture_output=True, text=True,
        env=around(BASE="HEAD~1", FILES="", GITHUB_STEP_SUMMARY=str(summary), SARIF=str(repository)),
    )  # fmt: skip
    judged = [
        line.partition(": ")[0]
        for line in done.stdout.splitlines()
        if ".cu: " in line and line[0] not in " :"
    ]
    assert {name.rpartition("/")[2] for name in judged} == {"user.cu", "k\u00e4r nel.cu"}, (
        done.stdout + done.stderr
    )
    assert (
        done.returncode == 0
        and "no-kernel" in summary.read_text()
        and len(list(repository.glob("*.sarif"))) == 2
    )
