"""The end of make's output, as a whole."""

import os
from types import SimpleNamespace

import pytest

from tools.make import report
from tools.make.backends import BACKENDS
from tools.make.failures import Failure
from tools.make.kinds import kind_of
from tools.make.trial import Outcome

LOG = """x.cpp:3: error: 'const class caffe::ShiftParameter' has no member named 'far'
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Two layers for the host, of which one's library is there."""
    folders = {}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        path = str(tmp_path / name)
        folders[name] = SimpleNamespace(
            name=name, path=path, refused=[], kind=kind_of("native"), has=(tmp_path / name / "x").with_name
        )
        folders[name].has = lambda file, path=path: os.path.exists(os.path.join(path, file))
    libraries = {(name, "host"): str(tmp_path / name / "_host.abi3.so") for name in folders}
    (tmp_path / "one" / "_host.abi3.so").touch()
    (tmp_path / "build").mkdir()
    settings = SimpleNamespace(
        backends=["host"], missing=[], build=str(tmp_path / "build"), layers_dir="/layers",
        suite=lambda: "python3 test.py", hint=lambda target, **given: f"make {target} LAYER={given['LAYER']}",
    )  # fmt: skip
    monkeypatch.setattr(
        report,
        "show",
        lambda *given: shown.append(given) or {name: outcomes.get(name, Outcome()) for name in given[1]},
    )
    shown, outcomes = [], {}
    return SimpleNamespace(
        settings=settings, rules=SimpleNamespace(libraries=libraries), names=list(folders), shown=shown, started=0,
        folders=list(folders.values()), folder=folders.get, outcomes=outcomes, root=tmp_path, failures=[], unfit={},
    )  # fmt: skip


def test_all_is_built_and_once_more_nothing_is_to_do(job, capsys):
    (job.root / "two" / "_host.abi3.so").touch()
    assert report.report(job, 0) == 0 and job.shown == [("/layers", ["one", "two"], job.settings)]
    built = "2 of 2 layers built for host.\nNext: python3 test.py\n"
    assert capsys.readouterr().out == built
    nothing = "Nothing to do: 2 layers are built for host. Next: python3 test.py\n"
    assert report.report(job, 0) == 0 and capsys.readouterr().out == nothing and len(job.shown) == 1
    os.utime(
        job.root / "two" / "__init__.py", (5, 5)
    )  # a verdict is of the layer as it was, not of an older one
    job.outcomes["two"] = Outcome(failed="wrong result")
    assert report.report(job, 0) == 1 and len(job.shown) == 2
    assert capsys.readouterr().out.splitlines() == [
        "2 of 2 layers built for host, 1 of them failed when they ran.",
        "FAILED: two: wrong result",
    ]
    job.outcomes.clear()
    assert report.report(job, 0) == 0 and capsys.readouterr().out == built
    assert report.report(job, 3) == 3


def test_what_failed(job, capsys):
    """Folders that are not layers, kernels that only a GPU can run, failed builds and runs, each with its reason."""
    log = job.root / "build" / "two" / "host" / "x.log"
    log.parent.mkdir(parents=True)
    log.write_text(LOG)
    job.failures = [
        Failure("two", "host", "x.cpp:3: error", str(log.parent)),
        Failure("one", "host", "asm", "", True),
    ]
    job.unfit = {"b_bad-name": "a name"}
    job.folders[1].kind = kind_of("caffe")  # which has advice for the error in its log
    job.outcomes["one"] = Outcome(failed="it ended its process")
    assert report.report(job, 2) == 2 and job.shown == [("/layers", ["one"], job.settings)]
    field = f"put the fork's caffe.proto into {job.root}/two, or a .proto with only that message"
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 layers built for host, 1 of them failed when they ran.",
        "Left out: /layers/b_bad-name: a name.",
        'No host library: one for host: asm. It can be built only for the GPU: backends="cuda".',
        f"FAILED: two for host: x.cpp:3: error (logs: {log.parent})",
        "FAILED: one: it ended its process",
        f"two: ShiftParameter has no far: {field} (docs/port-a-caffe-layer.md, section 1).",
    ]
    job.settings.missing, job.failures = [BACKENDS["cuda"]], []
    assert report.report(job, 2) == 2
    assert capsys.readouterr().out.splitlines()[1] == (
        "CUDA: skipped, because nvcc was not found. Set NVCC=/path/to/nvcc."
    )


def test_after_ctrl_c(job, capsys, monkeypatch):
    """Finished layers are in the table; the others are counted, and the next make runs all again."""
    (job.root / "two" / "_host.abi3.so").touch()
    monkeypatch.setattr(report, "show", lambda *_: {"one": Outcome()})
    assert report.report(job, 0) == 130 and not (job.root / "build" / "report").exists()
    assert capsys.readouterr().out.endswith("Stopped: 1 layers were not run.\n")


def test_what_to_type_next(job):
    """python3 test.py does not test a Caffe layer without cases.py, so it is not suggested then."""
    job.folders[1].kind = kind_of("caffe")
    assert report.next_command(job) == "make verify LAYER=two"
    job.folders[0].kind = kind_of("caffe")
    assert report.next_command(job) == "make verify LAYER=one (and 1 more without cases.py)"
    for name in ("one", "two"):
        (job.root / name / "cases.py").touch()
    assert report.next_command(job) == "python3 test.py"


@pytest.mark.parametrize("for_gpu", [False, True])
def test_the_table(monkeypatch, capsys, for_gpu):
    rows = {"one": Outcome("host", "cpu", "1e-7", "3 us"), "two": Outcome("host", failed="[/no] such")}
    asked = []
    monkeypatch.setattr(report, "outcomes_of", lambda *given: asked.append(given) or rows)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    settings = SimpleNamespace(backends=["host", *["cuda"] * for_gpu])
    assert report.show("/layers", ["one", "two"], settings) == rows
    assert asked == [("/layers", ["one", "two"], settings)]
    said = capsys.readouterr().out
    table = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line[0] == "│"]
    assert table == [["one", "host", "cpu", "1e-7", "3 us"], ["two", "host", "failed", "[/no] such", ""]]
    assert ("No GPU here: the libraries for CUDA were not run." in said) == for_gpu


def test_a_copy_of_the_tree_is_reported_already(tmp_path, monkeypatch):
    """The content decides, where times, inodes and the tree's place differ."""
    here, copy = tmp_path / "here", tmp_path / "copy"
    for folder in (here, copy):
        (folder / "layers" / "foo").mkdir(parents=True)
        (folder / "layers" / "foo" / "_host.abi3.so").write_bytes(b"library")

    def paths(folder):
        monkeypatch.setattr(report, "ROOT", str(folder))
        return [str(folder / "layers" / "foo" / "_host.abi3.so")]

    stamp = tmp_path / "report"
    assert not report.is_reported(stamp, paths(here))
    stamp.write_text(f"{report.digest(paths(here))}\n{report.state(paths(here))}")
    assert report.is_reported(stamp, paths(here)) and report.is_reported(stamp, paths(copy))
    (copy / "layers" / "foo" / "_host.abi3.so").write_bytes(b"another")
    assert not report.is_reported(stamp, paths(copy))
