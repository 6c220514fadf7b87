"""make fuzz: what it builds and calls."""

import pytest

from lab.fuzz import make as fuzz_make


def run(*arguments: str) -> int:
    return fuzz_make.build.main({"fuzz": fuzz_make.fuzz}, ["fuzz", *arguments])


@pytest.fixture
def fuzzed(monkeypatch, tmp_path):
    """What make fuzz builds and calls, in order."""
    made = []
    monkeypatch.setattr(fuzz_make, "Job", lambda settings: settings)
    monkeypatch.setattr(fuzz_make.build, "build", lambda s: made.append(f"build {' '.join(s.backends)}") or 0)
    monkeypatch.setattr(fuzz_make.subprocess, "call", lambda command: made.append(command[2:]) or 0)
    monkeypatch.setattr(
        fuzz_make.requirements, "need", lambda groups, _: made.append(f"need {' '.join(groups)}")
    )
    (tmp_path / "mine/one").mkdir(parents=True)
    for name, value in {"BUILD": tmp_path / "b", "NVCC": "", "LAYERS_DIR": tmp_path / "mine"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MAKEFLAGS", "")
    return made


@pytest.mark.parametrize(
    "option, said",
    [
        ("MINUTES=x", "--minutes"),
        ("MINUTES=0", "above 0"),
        ("SEED=1.5", "--seed"),
        ("LAYER=../x", "LAYER=../x"),
    ],
)
def test_fuzz_reads_its_arguments_first(fuzzed, monkeypatch, capsys, option, said):
    try:
        status = run(option)
    except SystemExit as ended:
        status = ended.code
    assert status == 2 and said in capsys.readouterr().err and not fuzzed


def test_fuzz_builds_for_the_host(fuzzed, monkeypatch, tmp_path):
    given = ("MINUTES=0.5", "SEED=7", "LAYER=one")
    assert run(*given) == 0
    options = ["--minutes=0.5", "--seed=7", "--layers", "one", f"--layers-dir={tmp_path}/mine"]
    assert fuzzed == ["need build run test", "build host", ["lab.fuzz", *options]]
    monkeypatch.setenv("MAKEFLAGS", "n")
    assert run(*given) == 0 and fuzzed[3:] == fuzzed[:2]  # make -n: nothing is called
