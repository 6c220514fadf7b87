"""What make says at its end, as a whole."""

import os
import signal
from types import SimpleNamespace

import pytest
from conftest import ROOT

from tools.make import report
from tools.make.backends import BACKENDS

LOG = """x.cpp:3: error: 'const class caffe::ShiftParameter' has no member named 'far'
x.cpp:9: error: no member named 'near' in 'caffe::ShiftParameter'
x.cpp:3: error: 'const class caffe::ShiftParameter' has no member named 'far'
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Two layers for the host, of which one's library is there; all of it is older than this make."""
    folders = {}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        folders[name] = SimpleNamespace(path=str(tmp_path / name), refused=[])
    libraries = {(name, "host"): str(tmp_path / name / "_host.abi3.so") for name in folders}
    (tmp_path / "one" / "_host.abi3.so").touch()
    (tmp_path / "build").mkdir()
    settings = SimpleNamespace(
        backends=["host"], missing=[], build=str(tmp_path / "build"), layers_dir=str(tmp_path),
        suite=lambda: "python test.py",
    )  # fmt: skip
    monkeypatch.setattr(report, "show", lambda *given: shown.append(given) or good[0])
    monkeypatch.setattr(report, "is_made", lambda job, library: os.path.exists(library))
    shown, good = [], [True]
    return SimpleNamespace(
        settings=settings, rules=SimpleNamespace(libraries=libraries), names=list(folders), shown=shown,
        folders=list(folders.values()), folder=folders.get, good=good, root=tmp_path,
    )  # fmt: skip


def test_all_is_built_and_once_more_nothing_is_to_do(job, capsys):
    (job.root / "two" / "_host.abi3.so").touch()
    assert report.report(job, 0) == 0 and job.shown == [(str(job.root), ["one", "two"], job.settings)]
    built = "2 of 2 layers built for host.\nNext: python test.py\n"
    assert capsys.readouterr().out == built
    nothing = "Nothing to do: 2 layers are built for host. Next: python test.py\n"
    assert report.report(job, 0) == 0 and capsys.readouterr().out == nothing and len(job.shown) == 1
    os.utime(job.root / "two" / "__init__.py", (5, 5))  # a verdict is never older than its layer
    job.good[0] = False
    assert report.report(job, 0) == 1 and len(job.shown) == 2
    assert capsys.readouterr().out == built.splitlines(True)[0]
    job.good[0] = True
    assert report.report(job, 0) == 0 and capsys.readouterr().out == built
    assert report.report(job, 3) == 3


def test_what_failed(job, capsys):
    (job.root / "build" / "two" / "host").mkdir(parents=True)
    (job.root / "build" / "two" / "host" / "x.log").write_text(LOG)
    assert report.report(job, 2) == 2 and job.shown == [(str(job.root), ["one"], job.settings)]
    field = f"put the fork's caffe.proto into {job.root}/two, or a .proto with that message alone"
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 layers built for host.",
        f"FAILED: two for host: see the logs in {job.root}/build/two/host",
        f"two: ShiftParameter has no far: {field} (docs/port-a-caffe-layer.md, section 1).",
    ]
    job.folder("two").refused = ["no such name", "nor such"]
    job.settings.missing = [BACKENDS["cuda"]]
    job.settings.backends = ["host", "cuda"]
    job.rules.libraries |= {(name, "cuda"): "/nowhere" for name in job.names}
    assert report.report(job, 2) == 2
    why = "no such name; nor such"
    assert capsys.readouterr().out.splitlines()[:5] == [
        "0 of 2 layers built for host and cuda.",
        "Left out: the CUDA backend, because no nvcc was found (the top of the Makefile says where it is looked for).",
        f"FAILED: two for host: {why}",
        f"FAILED: one for cuda: see the logs in {job.root}/build/one/cuda",
        f"FAILED: two for cuda: {why}",
    ]


def test_is_made(tmp_path):
    """It is made by this make, or up to date by make's own rules, whatever variables a make around it sets."""
    library, source = tmp_path / "a.so", tmp_path / "a.cu"
    (tmp_path / "rules.mk").write_text(f"{library}: {source}\n\ttouch $@\n")
    source.touch()
    job = SimpleNamespace(started=1000 * 10**9, makefile=str(tmp_path / "rules.mk"))
    assert not report.is_made(job, str(library))
    library.touch()
    os.utime(library, (1000, 1000))
    assert report.is_made(job, str(library))
    os.utime(library, (999, 999))
    assert not report.is_made(job, str(library))
    os.utime(source, (998, 998))
    assert report.is_made(job, str(library))


def test_the_place_of_logs(tmp_path):
    """Messages and headers are made once for all backends; what fails there has its log above theirs, and no stamp."""
    assert report.place_of_logs(str(tmp_path), "host") == f"{tmp_path}/host"
    (tmp_path / "proto.stamp.log").touch()
    assert report.place_of_logs(str(tmp_path), "host") == str(tmp_path)
    (tmp_path / "proto.stamp").touch()
    assert report.place_of_logs(str(tmp_path), "host") == f"{tmp_path}/host"


def test_is_made_asks_a_make_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "a.so").touch()
    monkeypatch.setenv("MAKEFLAGS", "n")
    monkeypatch.setenv("MFLAGS", "-n")
    monkeypatch.setenv("OTHER", "kept")
    given = {}
    monkeypatch.setattr(
        report.subprocess, "run", lambda command, env, **_: given.update(env) or SimpleNamespace(returncode=1)
    )
    job = SimpleNamespace(started=1 << 70, makefile="rules.mk")
    assert not report.is_made(job, str(tmp_path / "a.so"))
    assert given["OTHER"] == "kept" and not {"MAKEFLAGS", "MFLAGS"} & given.keys()


@pytest.fixture
def settings():
    return SimpleNamespace(
        backends=["host"],
        hint=lambda target="", **variables: " ".join(
            ["make", target, *(f"{k}={v}" for k, v in variables.items())]
        ),
    )


def test_a_layer_whose_process_dies_is_named_and_the_others_go_on(monkeypatch, settings, tmp_path):
    def outcome_of(_, name, __):
        if name == "killed[b]":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "left":
            os._exit(3)
        return report.Outcome("host", "a\tb\nc", "1e-3", f"{os.getpid()} us", good=name == "first")

    monkeypatch.setattr(report, "outcome_of", outcome_of)
    names = ["first", "killed[b]", "left", "bad", "last"]
    found = report.outcomes_of(str(tmp_path), names, settings)
    assert list(found) == names and [one.good for one in found.values()] == [True, False, False, False, False]
    assert found["first"].row[:3] == ["host", "a b c", "1e-3"] and found["last"].row[0] == "host"
    died = "its process died ({}): remove its _*.abi3.so, make LAYERS={}"
    assert found["killed[b]"].row == ["", "[red]failed", died.format("signal 9", "killed\\[b]"), ""]
    assert found["left"].row == ["", "[red]failed", died.format("status 3", "left"), ""]
    assert found["bad"].row[3] == found["last"].row[3] != found["first"].row[3] != f"{os.getpid()} us"


@pytest.mark.parametrize("good", [True, False])
def test_the_table(monkeypatch, settings, tmp_path, capsys, good):
    rows = {
        "one": report.Outcome("host", "cpu", "1e-7", "3 us"),
        "two": report.Outcome("", "", "bad", "", good),
    }
    asked = []
    monkeypatch.setattr(report, "outcomes_of", lambda *given: asked.append(given) or rows)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert report.show("/layers", ["one", "two"], settings) == good
    assert asked == [("/layers", ["one", "two"], settings)]
    said = capsys.readouterr().out
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line[0] == "│"]
    assert table == [["one", "host", "cpu", "1e-7", "3 us"], ["two", "", "", "bad", ""]] and "GPU" not in said
    settings.backends = ["host", "cuda", "hip"]
    report.show("/layers", [], settings)
    assert "No GPU here: the libraries for CUDA and HIP were not run." in capsys.readouterr().out


def test_what_a_layer_is_said_to_be(settings, tmp_path):
    """Its files decide what it lacks, and what to type."""
    for name, files in {
        "caffe": {"__init__.py": ""},
        "native": {"__init__.py": "", "native.h": ""},
        "to_do": {"__init__.py": "raise RuntimeError('[x]: not filled in: \\n write it')"},
        "broken": {"__init__.py": "raise OSError('[no] such\\n file')"},
        "quits": {"__init__.py": "raise SystemExit('enough')"},
    }.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
        (tmp_path / name / "_host.abi3.so").touch()

    def row(name):
        found = report.outcome_of(tmp_path, name, settings)
        return found.row, found.good

    assert row("caffe") == (["host", "", "make verify LAYER=caffe", ""], True)
    assert row("native") == (["host", "", "no cases yet: write cases.py", ""], True)
    assert row("to_do") == (["", "[yellow]not filled in", r"\[x]: not filled in: write it", ""], True)
    assert row("broken") == (["", "[red]failed", r"OSError: \[no] such file", ""], False)
    assert row("quits") == (["", "[red]failed", "SystemExit: enough", ""], False)


def test_a_run(settings, monkeypatch):
    """One layer of the toolkit's runs right, one wrong."""
    layers = ROOT / "layers"
    found = report.outcome_of(layers, "round", settings)
    assert (
        found.good and "host" in found.row[0] and float(found.row[2]) < 1e-6 and found.row[3].endswith(" us")
    )
    monkeypatch.setattr(report, "run_once", lambda *_: (2.0, 1.0, 5e-6))
    found = report.outcome_of(layers, "round", settings)
    assert not found.good and found.row[2:] == ["[red]2.0e+00 > 1.0e+00", "5 us"]
    monkeypatch.setattr(report, "run_once", lambda *_: (1.0, 1.0, 5e-6))
    assert report.outcome_of(layers, "round", settings).good
    monkeypatch.setattr(report, "run_once", lambda *_: (float("nan"), 1.0, 5e-6))
    assert not report.outcome_of(layers, "round", settings).good
