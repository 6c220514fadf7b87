"""The report on a wheel: every checker runs on every wheel, and only good results pass."""

import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.wheel import check

SCANNED = "3 extensions scanned; 0 ABI version mismatches and 0 ABI violations found"


@pytest.fixture
def says(monkeypatch):
    """The output of a checker's process: {module: (status, text)}; and the commands."""
    answers, commands = {}, []

    def run(command, **_):
        commands.append(command)
        status, text = answers[command[2]]
        return SimpleNamespace(returncode=status, stdout=text, stderr="\n  and so ")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name in answers or None)
    return SimpleNamespace(answers=answers, commands=commands)


def test_a_checker_that_is_not_installed(says):
    assert (
        check.twine(Path("some.whl")) == "it is not installed: python -m pip install twine"
        and not says.commands
    )


@pytest.mark.parametrize(
    ("tool", "status", "text", "wrong"),
    [
        ("twine", 0, "PASSED", ""),
        ("twine", 1, "FAILED\n it", "FAILED it and so"),
        ("abi3audit", 0, f"x: {SCANNED}", ""),
        ("abi3audit", 1, SCANNED, f"{SCANNED} and so"),
        ("abi3audit", 0, "0" + SCANNED[1:], "0" + SCANNED[1:] + " and so"),
        ("abi3audit", 0, SCANNED.replace("and 0", "and 1"), SCANNED.replace("and 0", "and 1") + " and so"),
        ("auditwheel", 0, 'platform tag: "manylinux_2_34_x86_64"', ""),
        (
            "auditwheel",
            1,
            'platform tag: "manylinux_2_34_x86_64"',
            'platform tag: "manylinux_2_34_x86_64" and so',
        ),
        ("auditwheel", 0, 'platform tag: "linux_x86_64"', 'platform tag: "linux_x86_64" and so'),
        (
            "auditwheel",
            0,
            'platform tag: "musllinux_1_2" libtorch_cpu.so.2 libc10.so',
            "a library of others is needed: libtorch_cpu.so.2",
        ),
    ],
)
def test_a_checkers_words(says, capsys, tool, status, text, wrong):
    says.answers[tool] = status, text
    assert getattr(check, tool)("some.whl") == wrong
    assert says.commands[0][:3] == [sys.executable, "-m", tool] and says.commands[0][-1] == "some.whl"
    needs = tool == "auditwheel" and not status and "linux_" in text and '"linux' not in text
    assert ("or newer" in capsys.readouterr().out) == needs


@pytest.mark.parametrize(
    ("name", "files", "wrong"),
    [
        ("a-1-cp310-abi3-linux.whl", ["a/one.so", "a/b/two.so"], "b/two.so: needs more"),
        ("a-1-cp310-abi3-linux.whl", ["a/one.so"], ""),
        ("a-1-cp310-abi3-linux.whl", ["a/one.py"], "no library is in it"),
        ("a-1-cp310-cp310-linux.whl", ["a/one.so"], "the wheel's name has no tag of the stable ABI"),
    ],
)
def test_kernel_abi_check(tmp_path, monkeypatch, name, files, wrong):
    class ObjectFile:
        def __init__(self, path):
            self.path = path

        def check_python_abi(self, version):
            assert version == "3.10"
            return "needs more" if self.path.endswith("two.so") else ""

    monkeypatch.setitem(sys.modules, "kernel_abi_check", SimpleNamespace(ObjectFile=ObjectFile))
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        for file in files:
            wheel.writestr(file, "")
    assert check.kernel_abi_check(tmp_path / name) == wrong
    monkeypatch.setitem(sys.modules, "kernel_abi_check", None)
    assert check.kernel_abi_check(tmp_path / name) == "it is not installed"


def test_all_of_them(says, monkeypatch, capsys):
    monkeypatch.setattr(check, "kernel_abi_check", lambda wheel: "it is not there")
    check.kernel_abi_check.__name__ = "kernel_abi_check"
    good = {"twine": (0, ""), "abi3audit": (0, SCANNED), "auditwheel": (0, '"manylinux_2_34"')}
    says.answers |= good
    says.answers["auditwheel"] = 0, 'platform tag: "manylinux_2_34"'
    assert check.main(["dist/one.whl"]) == 1
    rows = ["one.whl", "  ok    twine", "  ok    abi3audit", " " * 12 + "needs manylinux_2_34, or newer"]
    rows += ["  ok    auditwheel", "  FAIL  kernel_abi_check: it is not there"]
    assert capsys.readouterr().out.splitlines() == rows
    monkeypatch.setattr(check, "kernel_abi_check", check.twine)
    assert check.main(["one.whl", "two.whl"]) == 0 and "two.whl" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        check.main([])
    assert "required: wheel" in capsys.readouterr().err
