"""What make says at its end, as a whole."""

import os
from types import SimpleNamespace

import pytest

from tools.make import report
from tools.make.backends import BACKENDS

LOG = """x.cpp:3: error: 'const class caffe::ShiftParameter' has no member named 'far'
x.cpp:9: error: no member named 'near' in 'caffe::ShiftParameter'
x.cpp:3: error: 'const class caffe::ShiftParameter' has no member named 'far'
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
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
    monkeypatch.setattr(report, "is_made", lambda plan, library: os.path.exists(library))
    shown, good = [], [True]
    return SimpleNamespace(
        settings=settings, rules=SimpleNamespace(libraries=libraries), names=list(folders), shown=shown,
        folders=list(folders.values()), folder=folders.get, good=good, root=tmp_path,
    )  # fmt: skip


def test_all_is_built_and_once_more_nothing_is_to_do(plan, capsys):
    (plan.root / "two" / "_host.abi3.so").touch()
    assert report.report(plan, 0) == 0 and plan.shown == [(str(plan.root), ["one", "two"], plan.settings)]
    built = "2 of 2 layers built for host.\nNext: python test.py\n"
    assert capsys.readouterr().out == built
    nothing = "Nothing to do: 2 layers are built for host. Next: python test.py\n"
    assert report.report(plan, 0) == 0 and capsys.readouterr().out == nothing and len(plan.shown) == 1
    os.utime(plan.root / "two" / "__init__.py", (5, 5))  # a verdict is never older than its layer
    plan.good[0] = False
    assert report.report(plan, 0) == 1 and len(plan.shown) == 2
    assert capsys.readouterr().out == built.splitlines(True)[0]
    plan.good[0] = True
    assert report.report(plan, 0) == 0 and capsys.readouterr().out == built
    assert report.report(plan, 3) == 3


def test_what_failed(plan, capsys):
    (plan.root / "build" / "two" / "host").mkdir(parents=True)
    (plan.root / "build" / "two" / "host" / "x.log").write_text(LOG)
    assert report.report(plan, 2) == 2 and plan.shown == [(str(plan.root), ["one"], plan.settings)]
    field = f"put the fork's caffe.proto into {plan.root}/two, or a .proto with that message alone"
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 layers built for host.",
        f"FAILED: two for host: see the logs in {plan.root}/build/two/host",
        f"two: ShiftParameter has no far: {field} (docs/port-a-caffe-layer.md, section 1).",
    ]
    plan.folder("two").refused = ["no such name", "nor such"]
    plan.settings.missing = [BACKENDS["cuda"]]
    plan.settings.backends = ["host", "cuda"]
    plan.rules.libraries |= {(name, "cuda"): "/nowhere" for name in plan.names}
    assert report.report(plan, 2) == 2
    why = "no such name; nor such"
    assert capsys.readouterr().out.splitlines()[:5] == [
        "0 of 2 layers built for host and cuda.",
        "Left out: the CUDA backend, because no nvcc was found (the top of the Makefile says where it is looked for).",
        f"FAILED: two for host: {why}",
        f"FAILED: one for cuda: see the logs in {plan.root}/build/one/cuda",
        f"FAILED: two for cuda: {why}",
    ]


def test_is_made(tmp_path):
    """By this make, or up to date by make's own rules, whatever the variables of a make around it say."""
    library, source = tmp_path / "a.so", tmp_path / "a.cu"
    (tmp_path / "rules.mk").write_text(f"{library}: {source}\n\ttouch $@\n")
    source.touch()
    plan = SimpleNamespace(started=1000 * 10**9, makefile=str(tmp_path / "rules.mk"))
    assert not report.is_made(plan, str(library))
    library.touch()
    os.utime(library, (1000, 1000))
    assert report.is_made(plan, str(library))
    os.utime(library, (999, 999))
    assert not report.is_made(plan, str(library))
    os.utime(source, (998, 998))
    assert report.is_made(plan, str(library))


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
    plan = SimpleNamespace(started=1 << 70, makefile="rules.mk")
    assert not report.is_made(plan, str(tmp_path / "a.so"))
    assert given["OTHER"] == "kept" and not {"MAKEFLAGS", "MFLAGS"} & given.keys()
