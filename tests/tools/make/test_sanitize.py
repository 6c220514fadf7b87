"""make sanitize: what it builds and runs, in which order, and its exit status."""

import sys
from types import SimpleNamespace

import pytest

from tools.make import sanitize
from tools.make.settings import Settings


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """The builds and the runs, in order; the one that `fails` names ends with 7."""
    made = SimpleNamespace(ran=[], groups=[], fails="", environments={})

    def note(step):
        made.ran.append(step)
        return 7 if step == made.fails else 0

    def call(command, env):
        words = [word for word in command if word != sys.executable]
        step = " ".join(words).replace(str(tmp_path), "")
        made.environments[step] = {k: v for k, v in env.items() if k in NEW}
        return note(step)

    NEW = {
        "CUDA_VISIBLE_DEVICES",
        "LD_PRELOAD",
        "ASAN_OPTIONS",
        "UBSAN_OPTIONS",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    }
    for name in NEW:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sanitize, "Job", lambda settings: settings)
    monkeypatch.setattr(sanitize, "build", lambda s, **_: note(f"build {s.sanitize or 'plain'}"))
    monkeypatch.setattr(sanitize.subprocess, "call", call)
    monkeypatch.setattr(sanitize, "library", lambda cxx, name: f"/lib/{name}")
    monkeypatch.setattr(sanitize.requirements, "need", lambda groups, _: made.groups.extend(groups))
    (tmp_path / "mine").mkdir()
    made.settings = Settings({"NVCC": "", "BUILD": str(tmp_path / "b"), "LAYERS_DIR": str(tmp_path / "mine")})
    return made


RUN = "-m tools.cases.run_cases --layers-dir="


def test_on_the_host_and_for_races(steps, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert sanitize.sanitize(steps.settings) == 0
    assert [step.split("=")[0] for step in steps.ran] == [
        "build plain",
        "build 1",
        RUN[:-1],
        "-m lab.fuzz --layers-dir",
        "build races",
        RUN[:-1],
    ]
    assert "test" in steps.groups  # lab.fuzz needs hypothesis
    asan, fuzz, races = (step for step in steps.ran if not step.startswith("build"))
    assert (
        asan.endswith(" --device cpu") and races.endswith(" --device cpu") and len({asan, races, fuzz}) == 3
    )
    checked = steps.environments[asan]
    assert (
        checked
        == steps.environments[fuzz]
        == {
            "CUDA_VISIBLE_DEVICES": "",
            "LD_PRELOAD": "/lib/libasan.so /lib/libstdc++.so",
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
    )
    assert steps.environments[races] == {"CUDA_VISIBLE_DEVICES": ""}
    assert capsys.readouterr().out.splitlines() == [
        "AddressSanitizer, UBSan:",
        "Races between a launch's threads:",
        "compute-sanitizer: no GPU here",
        "make sanitize: AddressSanitizer, UBSan: clean; random calls: clean; races: clean",
    ]


@pytest.mark.parametrize(
    "fails, runs, said",
    [
        (0, 1, ""),
        (1, 4, "build for AddressSanitizer: FAILED (status 7); races: clean"),
        (2, 6, "AddressSanitizer, UBSan: FAILED (status 7); random calls: clean; races: clean"),
        (3, 6, "AddressSanitizer, UBSan: clean; random calls: FAILED (status 7); races: clean"),
        (
            4,
            5,
            "AddressSanitizer, UBSan: clean; random calls: clean; build for the race finder: FAILED (status 7)",
        ),
        (5, 6, "AddressSanitizer, UBSan: clean; random calls: clean; races: FAILED (status 7)"),
    ],
)
def test_what_fails_does_not_end_the_rest(steps, monkeypatch, capsys, fails, runs, said):
    """Only the first build does, without which there is nothing to check; and what needs a build that failed."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    sanitize.sanitize(steps.settings)
    steps.fails = steps.ran[fails]
    steps.ran.clear(), capsys.readouterr()
    assert sanitize.sanitize(steps.settings) == 7 and len(steps.ran) == runs
    assert capsys.readouterr().out.splitlines()[-1:] == ([f"make sanitize: {said}"] if said else [])


@pytest.mark.parametrize(
    "found, status", [([0, 0], 0), ([3, 0], 3), ([0, 3, 1], 1), ([9, 3], 9), ([3, 3], 3), ([2, 3], 2)]
)
def test_no_verdict_comes_last(steps, monkeypatch, capsys, found, status):
    """It is the status only if nothing is wrong."""
    monkeypatch.setattr(sanitize, "on_the_host", lambda _: dict(enumerate(found)))
    monkeypatch.setattr(sanitize, "races", lambda _: {})
    monkeypatch.setattr(sanitize, "on_the_gpu", lambda _: {})
    assert sanitize.sanitize(steps.settings) == status
    assert ("no verdict on some layers" in capsys.readouterr().out) == (3 in found)


def test_on_a_gpu(steps, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert set(sanitize.on_the_gpu(steps.settings).values()) == {0}
    tools = ("memcheck", "racecheck", "initcheck")
    for tool, step in zip(tools, steps.ran, strict=True):
        assert step.startswith(f"compute-sanitizer --tool {tool} --error-exitcode 9 {RUN}")
        assert step.endswith("--device cuda" + " --dtypes float32 float64" * (tool == "initcheck"))
        assert steps.environments[step] == {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    assert capsys.readouterr().out.splitlines() == [f"compute-sanitizer {tool}:" for tool in tools]
    steps.fails = steps.ran[1]
    steps.ran.clear()
    assert list(sanitize.on_the_gpu(steps.settings).values()) == [0, 7, 0] and len(steps.ran) == 3


def test_main(monkeypatch, capsys, tmp_path):
    given = []
    monkeypatch.setattr(sys, "argv", ["sanitize", "LAYERS_DIR=a:b"])
    monkeypatch.setattr(sanitize, "of_each_folder", lambda words: given.append(words) or ([3, 5, 4], []))
    monkeypatch.setattr(sanitize, "sanitize", lambda settings: settings)
    assert sanitize.main() == 5 and given == [["LAYERS_DIR=a:b"]]

    def refused(words):
        raise sanitize.Refused("no such name")

    monkeypatch.setattr(sanitize, "of_each_folder", refused)
    assert sanitize.main() == 2 and capsys.readouterr().err == "make sanitize: no such name\n"
