"""The examples print what their docstrings say, on the CPU."""

import os
import re
import sys

import pytest
from conftest import LAYERS, PACKAGE, ROOT, skip_if_missing
from support import python_with_torch
from support.points import layer_object
from support.typed import module_of

USED = ("depthwise_conv", "lltm", "round", "sigmoid")


@pytest.fixture(scope="module")
def train_digits():
    """The example as a module."""
    if PACKAGE != "cuffi":
        pytest.skip("the examples use this toolkit's own layers")
    pytest.importorskip("sklearn", reason="the digits lie in scikit-learn")
    for layer in USED:
        assert layer in LAYERS
        skip_if_missing("cpu", layer_object(layer))
    return module_of(ROOT / "examples" / "train_digits.py")


@pytest.fixture
def threads_as_before():
    """The example sets torch's number of threads, which is the whole process's."""
    import torch

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_train_digits_learns(train_digits, threads_as_before):
    """A short run reads digits that it has not seen; the same network untrained guesses."""
    assert train_digits.main(["--device", "cpu", "--epochs", "0"]) < 0.3
    assert train_digits.main(["--device", "cpu", "--quick"]) > 0.9


def test_train_digits_repeats(train_digits, threads_as_before):
    """The same seed gives the same accuracy."""
    arguments = ["--device", "cpu", "--quick", "--epochs", "1"]
    assert train_digits.main(arguments) == train_digits.main(arguments)


def test_train_digits_plots(train_digits, threads_as_before, monkeypatch, tmp_path):
    monkeypatch.setattr(train_digits, "ROOT", tmp_path)
    train_digits.main(["--device", "cpu", "--epochs", "1"])
    file = tmp_path / "build" / "examples" / "train_digits.png"
    assert file.read_bytes().startswith(b"\x89PNG")


def run(*command: str, **more: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1"} | more
    done = python_with_torch.run([sys.executable, *command], env=environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_train_digits_on_two_processes(train_digits, threads_as_before, tmp_path, capsys):
    """Each sees half of each batch; in the end their parameters are the same, bit for bit."""
    options = ["--device", "cpu", "--quick", "--epochs"]
    train_digits.main([*options, "0"])
    untrained = capsys.readouterr().out
    torchrun = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"
    # It leaves a folder.
    others = {"TMPDIR": str(tmp_path), "PYTHON_EXEC": python_with_torch.script()}
    together = run(*torchrun, "examples/train_digits.py", *options, "1", **others)
    digest = re.compile(r"process (\d) of (\d) \(cpu\): parameters (\w{16})")
    ((_, _, first),) = digest.findall(untrained)
    found = digest.findall(together)
    assert sorted(who for who, _, _ in found) == ["1", "2"] and {size for _, size, _ in found} == {"2"}
    (after,) = {letters for _, _, letters in found}
    assert after != first
