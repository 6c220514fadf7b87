"""The Python packages and programs that `make` needs: found, installed, or named with a command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from tools.make import requirements
from tools.refused import Refused


@pytest.fixture
def lacking(monkeypatch, tmp_path):
    """A requirements file with a package that nobody has; pip's commands are recorded."""
    (tmp_path / "some.txt").write_text(
        "# comment\n-r other.txt\npytest\nno-such-package-anywhere>=1  # why\n"
    )
    monkeypatch.setattr(requirements, "file_of", lambda group: str(tmp_path / f"{group}.txt"))
    ran = []
    monkeypatch.setattr(
        subprocess, "run", lambda command: ran.append(command) or subprocess.CompletedProcess(command, 1)
    )
    return ran


def test_missing_package_in_a_managed_python(lacking, monkeypatch, tmp_path):
    """The operating system's Python is not changed; the message says what to do instead."""
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(Refused) as said:
        requirements.need(["some"], str(tmp_path / "stamp"))
    assert not lacking and "no-such-package-anywhere" in str(said.value) and "pytest" not in str(said.value)
    assert "python3 -m venv" in str(said.value) and not (tmp_path / "stamp").exists()


def test_without_a_network(lacking, tmp_path):
    """pip is run once and fails; the message has the command."""
    with pytest.raises(Refused, match="no-such-package-anywhere") as said:
        requirements.need(["some"], str(tmp_path / "stamp"))
    assert f"{sys.executable} -m pip install -r requirements/some.txt" in str(said.value)
    assert lacking == [[sys.executable, "-m", "pip", "install", "-q", "-r", str(tmp_path / "some.txt")]]


@pytest.mark.parametrize("status, there, wanted", [(0, True, True), (0, False, False), (1, True, False)])
def test_after_pip(lacking, monkeypatch, tmp_path, status, there, wanted):
    """Both pip's status and the packages afterwards count: pip may succeed for another Python."""
    found = iter([["some"], [] if there else ["some"]])
    monkeypatch.setattr(requirements, "missing", lambda groups: next(found))
    monkeypatch.setattr(subprocess, "run", lambda command: subprocess.CompletedProcess(command, status))
    if wanted:
        requirements.need(["some"], str(tmp_path / "stamp"))
    else:
        with pytest.raises(Refused, match="Missing Python packages: some"):
            requirements.need(["some"], str(tmp_path / "stamp"))
    assert (tmp_path / "stamp").exists() == wanted


def test_what_was_there_is_remembered(lacking, monkeypatch, tmp_path):
    """It is remembered for this Python, until a file of requirements differs: it may be older."""
    asked, stamp = [], tmp_path / "stamp"
    monkeypatch.setattr(requirements, "missing", lambda groups: asked.append(groups) or [])

    def needed() -> int:
        requirements.need(["some"], str(stamp))
        return len(asked)

    assert [needed(), needed()] == [1, 1]
    (tmp_path / "some.txt").write_text("pytest\nanother\n")
    os.utime(tmp_path / "some.txt", (5, 5))
    assert [needed(), needed()] == [2, 2]
    stamp.write_text("/another/python 3.0\n")
    assert [needed(), needed()] == [3, 3]


def test_from_the_command_line():
    def said(*groups):
        command = [sys.executable, "-m", "tools.make.requirements", *groups]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert (said("run").returncode, said("run").stdout + said("run").stderr) == (0, "")


def test_nothing_missing_installs_nothing(lacking, tmp_path):
    """That is remembered until the requirements change."""
    (tmp_path / "some.txt").write_text("pytest\n\n# nothing else\n")
    requirements.need(["some"], str(tmp_path / "stamp"))
    assert not lacking and sys.executable in (tmp_path / "stamp").read_text()


def test_the_build_needs_no_lint_and_no_torch():
    wanted = Path(requirements.file_of("build")).read_text() + Path(requirements.file_of("run")).read_text()
    assert not any(
        name in wanted for name in ("ruff", "clang-format", "matplotlib", "scikit-learn", "pytest")
    )
    assert "torch" not in Path(requirements.file_of("build")).read_text()


def test_hidden_toolkit(tmp_path):
    """find_nvcc says nothing where there is nothing, and finds one in CUDA_HOME."""
    tool = ROOT / "tools" / "make" / "find_nvcc.py"
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").write_text("binary")
    (home / "bin" / "nvcc").chmod(0o755)
    found = subprocess.run(
        [sys.executable, tool, str(home)], capture_output=True, text=True, env={"PATH": ""}
    ).stdout
    assert Path(found.strip()) == home / "bin" / "nvcc"


def test_the_suite_installs_what_it_needs(monkeypatch, capsys):
    """The second of the README's two commands, in an environment that had the first alone."""
    import test as suite  # test.py

    asked = []

    def need(groups, stamp):
        asked.append(groups)
        raise Refused("Missing Python packages: pytest")

    monkeypatch.setattr(requirements, "need", need)
    monkeypatch.delenv("LAYERS_DIR", raising=False)
    assert suite.main() == 1 and asked == [["test"]]
    assert "pytest" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options, limited",
    [("-n 15", True), ("-n15 -q", True), ("-q -n auto", True), ("--numprocesses=4", True), ("tests -n 2", True),
     ("-n 0", False), ("-n0", False), ("tests/tools/make", False), ("--numprocesses 0", False),
     ("-k not-now tests", False)],
)  # fmt: skip
def test_workers_that_somebody_asks_for_share_the_cores(monkeypatch, options, limited):
    """They do as the suite's default workers do: no thread of OpenMP spins while it waits."""
    import test as suite  # test.py

    environment = {}
    monkeypatch.setattr(os, "environ", environment)
    assert suite.workers(options.split()) == []
    assert environment == ({"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"} if limited else {})
