"""make fuzz: wrong results and crashes are findings; right results and the layer's own errors are not."""

import faulthandler
import os
import re
import signal
import sys

import pytest
import torch
from conftest import ROOT
from hypothesis import strategies as st
from support import python_with_torch
from support.typed import not_none

from cuffi.backends import HOST
from cuffi.runtime import CaffeTypeError
from cuffi.runtime.cases import Case
from lab.fuzz import __main__ as fuzz
from lab.fuzz.calls import Call, Finding, try_call


def call(function, *arguments, grad=False, reference=torch.square):
    case = Case(function=reference, reference=reference, inputs={})
    return Call("some", "f", function, list(arguments), [repr(a) for a in arguments], grad, case)


X = torch.linspace(-1.5, 1.5, 7)


def test_right():
    assert try_call(call(torch.square, X), CaffeTypeError) == "right"
    assert try_call(call(torch.square, X, grad=True), CaffeTypeError) == "right"
    assert try_call(call(lambda x: x, X, reference=lambda x: 1 / 0), CaffeTypeError) == "not compared"


def test_indices_beside_the_result():
    """They have no gradient, and their values and their dtype are the reference's."""

    def largest(x, dtype=torch.int32, shift=0):
        top, place = x.max(0)
        return top, place.to(dtype) + shift

    assert try_call(call(largest, X, grad=True, reference=largest), CaffeTypeError) == "right"
    for wrong, words in ((dict(shift=1), "silently wrong"), (dict(dtype=torch.int16), "a result of")):
        with pytest.raises(Finding, match=words):
            try_call(call(lambda x, wrong=wrong: largest(x, **wrong), X, reference=largest), CaffeTypeError)


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, *diffs):
        return diffs


@pytest.mark.parametrize(
    "function, grad, words",
    [
        (lambda x: x * x + 1e-2, False, "silently wrong: .*instead of 0 at"),
        (lambda x: (x * x)[:-1], False, "silently wrong: .*shape"),
        (lambda x: x * x * float("nan"), False, "silently wrong"),
        (WrongGradient.apply, True, "silently wrong"),
        (lambda x: (x * x).to(torch.int32), False, "a result of"),
    ],
)
def test_wrong_numbers_are_found(function, grad, words):
    with pytest.raises(Finding, match=words):
        try_call(call(function, X, grad=grad), CaffeTypeError)


def raising(error):
    def function(*_):
        raise error

    return function


def test_refusals_are_the_layers_own():
    assert (
        try_call(call(raising(CaffeTypeError("some: x: expected y, got z")), X), CaffeTypeError) == "refused"
    )
    allocator = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")
    for error in (MemoryError(), allocator):
        assert try_call(call(raising(error), X), CaffeTypeError) == "refused"
    for error in (
        CaffeTypeError("x: expected y"),
        TypeError("some: x"),
        KeyError("some"),
        RuntimeError("some"),
    ):
        with pytest.raises(Finding, match="error") as found:
            try_call(call(raising(error), X), CaffeTypeError)
        assert found.value.__context__ is None  # by which hypothesis would tell it from itself


class Deadly:
    """A subject whose second kind of call ends the process."""

    def calls(self):
        die = raising(RuntimeError("not reached"))

        def function(x):
            faulthandler.disable()  # pytest's, whose words in the log of a passing test would look like a failure
            os.kill(os.getpid(), signal.SIGSEGV)

        made = [call(torch.square, X), Call("some", "deadly", function, [X], ["the vector"]), call(die, X)]
        return st.sampled_from(made[:2])

    def attempt(self, call):
        return try_call(call, CaffeTypeError)


def test_a_crash_is_a_finding():
    _, finding = fuzz.round_of(Deadly, 1, 50, 60.0)
    assert finding == "its process ended by SIGSEGV: deadly(the vector)"


def test_no_end_is_a_finding(monkeypatch):
    class Endless(Deadly):
        def attempt(self, call):
            signal.pause()

    monkeypatch.setattr(fuzz, "PATIENCE", 1)
    counts, finding = fuzz.round_of(Endless, 1, 50, 60.0)
    assert finding.startswith("no end after 1 s: ") and counts == {"before it ended": 1}


def test_findings_are_counted_once_and_are_the_exit_status(monkeypatch, tmp_path, capsys):
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / HOST.library).touch()
        (tmp_path / name / "cases.py").touch()
    rounds = []

    def round_of(make, seed, examples, seconds):
        name = make.args[0].name
        rounds.append(name)
        return {"right": 10}, f"call {seed} gave nan" if name == "bad" else ""

    monkeypatch.setattr(fuzz, "round_of", round_of)
    monkeypatch.setattr(fuzz.time, "monotonic", lambda: 10.0 * len(rounds))
    command = ["fuzz", f"--layers-dir={tmp_path}", "--minutes=1"]
    monkeypatch.setattr(sys, "argv", command)
    assert fuzz.main() == 1
    said = capsys.readouterr().out
    assert rounds == ["bad", "good"] * 3 and said.count("FOUND  bad: call") == 1
    assert "60 tried with seed 1, 1 findings" in said
    monkeypatch.setattr(sys, "argv", [*command, "--layers", "good"])
    rounds.clear()
    assert fuzz.main() == 0 and set(rounds) == {"good"}


def test_a_ported_layer_without_cases(tmp_path, monkeypatch, capsys):
    """There is nothing to make its calls from."""
    folder = tmp_path / "lonely"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name in (HOST.library, "lonely_layer.cpp"):
        (folder / name).touch()
    monkeypatch.setattr(fuzz, "round_of", lambda *_: pytest.fail("a round of calls"))
    monkeypatch.setattr(sys, "argv", ["fuzz", f"--layers-dir={tmp_path}", "--minutes=0.1"])
    assert fuzz.main() == 0
    assert "lonely: no calls, because it has no cases.py" in capsys.readouterr().out


def test_layers_of_one_name_in_two_folders(tmp_path, monkeypatch, capsys):
    for folder in ("one", "two"):
        (tmp_path / folder / "same").mkdir(parents=True)
        for name in (HOST.library, "cases.py"):
            (tmp_path / folder / "same" / name).touch()
    monkeypatch.setattr(fuzz, "round_of", lambda *_: ({"right": 1}, ""))
    monkeypatch.setattr(
        sys, "argv", ["fuzz", f"--layers-dir={tmp_path}/one:{tmp_path}/two", "--minutes=0.001"]
    )
    assert fuzz.main() == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("same ") and said[1].startswith(f"{tmp_path}/two/same ")


def test_a_short_run():
    if not (ROOT / "layers" / "round" / HOST.library).exists():
        pytest.skip("round is not built")
    command = [
        sys.executable,
        "-m",
        "lab.fuzz",
        "--minutes",
        "0.001",
        "--examples",
        "30",
        "--layers",
        "round",
    ]
    done = python_with_torch.run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    # A part of the 30, for this time is short.
    tried = re.search(r"round +([0-9]+): ", done.stdout)
    assert 1 <= int(not_none(tried)[1]) <= 30 and "0 findings" in done.stdout
