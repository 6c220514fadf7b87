"""A wheel without a compiler: what is installed, what each program may see, and which output is right."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from lab.wheel import smoke


@pytest.fixture
def ran(monkeypatch):
    """The commands that were run: [(command, its other arguments)]."""
    calls = []

    def run(command, **named):
        calls.append(([str(part) for part in command], named))
        return SimpleNamespace(returncode=0, stdout="/site/cuffi\n", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


@pytest.mark.parametrize("here", [True, False])
def test_what_is_installed(ran, tmp_path, monkeypatch, here):
    monkeypatch.setenv("PIP_CONSTRAINT", "an older OpenCV")
    site = tmp_path / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    assert smoke.environment(tmp_path, [tmp_path / "a.whl"], here) == tmp_path / "bin" / "python"
    (made, _), (installed, named) = ran
    assert made[1:] == ["-m", "venv", "--without-pip", str(tmp_path)]
    assert installed[-2:] == [str(tmp_path / "a.whl"), smoke.OPENCV] and ("--no-deps" in installed) == here
    assert "PIP_CONSTRAINT" not in named["env"]
    assert [f.read_text().strip() in sys.path for f in site.iterdir()] == [True] * here


def test_a_program_sees_python_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "g++")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    script = "import os, shutil; print(sorted(os.environ), shutil.which('python'), shutil.which('sh'), os.getcwd())"
    done = smoke.run(tmp_path / "bin" / "python", ["-c", script], tmp_path)
    assert done.stderr == "" and "'CXX'" not in done.stdout
    assert f"{tmp_path}/bin/python None {tmp_path}" in done.stdout


@pytest.mark.parametrize(
    ("status", "stdout", "stderr", "refused", "good"),
    [
        (0, "a\ngood words", "", False, True),
        (0, "good words\na", "", False, False),
        (1, "good words", "", False, False),
        (0, "", "good words", False, False),
        (1, "", "Traceback\ngood words", True, True),
        (0, "", "good words", True, False),
        (1, "good words", "", True, True),
        (1, "", "", True, False),
    ],
)
def test_words(status, stdout, stderr, refused, good):
    done = subprocess.CompletedProcess([], status, stdout, stderr)
    assert (smoke.wrong(done, "good words", refused) == "") == good


def test_all_trials_are_run(ran, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(smoke, "environment", lambda folder, wheel, here: tmp_path / "bin" / "python")
    for name in ("cuffi_nets-1-py3-none-any.whl", "cuffi-1-cp310-abi3-linux_x86_64.whl"):
        (tmp_path / name).touch()
    assert smoke.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert said.count("FAIL") == len(smoke.RUN) + len(smoke.REFUSED)
    commands = {" ".join(command[1:]): named["cwd"].name for command, named in ran}
    assert commands["each_layer.py"] == "work"
    assert (
        next(place for command, place in commands.items() if "cuffi.caffe_layers.port" in command)
        == "_toolkit"
    )
    files = {
        f for command, _ in smoke.RUN.values() for f in command if "." in f and not f.startswith("cuffi")
    }
    assert files <= {f.name for f in smoke.TRIALS.iterdir()} | {"ssd.caffemodel"}


def test_the_pure_wheel_needs_no_other(tmp_path):
    with pytest.raises(SystemExit, match=r"cuffi_nets-\*\.whl"):
        smoke.wheels_in(tmp_path, nets=True)
    nets = tmp_path / "cuffi_nets-1-py3-none-any.whl"
    nets.touch()
    assert smoke.wheels_in(tmp_path, nets=True) == [nets]
    with pytest.raises(SystemExit):
        smoke.wheels_in(tmp_path, nets=False)
    assert "each layer" not in smoke.programs(nets=True) and set(smoke.RUN) < set(smoke.programs(nets=False))
