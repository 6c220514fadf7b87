"""make port's words as a whole: of one type, and of all with what the compiler says."""

import re
import sys

import pytest

from tools.make.settings import Settings
from tools.port import __main__ as port


@pytest.fixture
def said(fork, tmp_path, monkeypatch, capsys):
    """Run it in this process; (status, its lines, where a line of dashes or nothing does not count)."""
    layers = tmp_path / "mine"
    layers.mkdir()
    build, core = str(tmp_path / "build"), str(tmp_path / "core")
    settings = Settings({"NVCC": "", "BUILD": build, "CORE": core, "LAYERS_DIR": str(layers)})
    monkeypatch.setattr(port, "from_environment", lambda words: (settings, words))

    def run(*arguments):
        command = ["port", "--caffe", str(fork.root), "--layers-dir", str(layers), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        status = port.main()
        text = capsys.readouterr().out.replace(str(tmp_path), "")
        lines = [" ".join(re.sub("[┃│]", " | ", line).strip(" |").split()) for line in text.splitlines()]
        return status, [line for line in lines if line and not set(line) & set("━─")]

    return run


def test_one_type(fork, said):
    fork.layer("Shift", includes='#include "caffe/util/twist.hpp"', body="twist();")
    fork.write("include/caffe/util/twist.hpp", "inline void twist() {}\n")
    files = "caffe.proto, shift_layer.cpp, shift_layer.hpp, twist.hpp"
    where = "LAYERS_DIR=/mine BUILD=/build"
    status, lines = said("Shift", "Nonesuch")
    assert status == 1
    assert lines[0] == f"Shift is in /mine/shift: {files}, ORIGIN, __init__.py"
    assert lines[-2] == f"Next: make {where} LAYERS=shift, then make verify {where} LAYER=shift"
    assert lines[-1].startswith("Nonesuch: not ported. ")
    assert said("Shift") == (0, [lines[0], *lines[1:-1]])  # what is there is what it would write
    assert (
        said("--force", "--name", "moved", "Shift")[1][0]
        == f"Shift is in /mine/moved: {files}, ORIGIN, __init__.py"
    )


def test_all_types_and_what_the_compiler_says(fork, said, tmp_path, monkeypatch):
    for name in ("Good", "Broken", "Unlinked", "Silent", "Coreless"):
        fork.layer(name)
    fork.layer("Foreign", includes="#include <boost/geometry.hpp>", body="boost::geometry::area(3);")
    build, built = tmp_path / "build", []

    def compile(job, keep_going):
        built.append(([folder.name for folder in job.folders], keep_going))
        for name, log, text in (
            (
                "broken",
                "a.log",
                f"warning\n{tmp_path}/mine/broken/broken_layer.cpp:3: error: no x\nb.cpp: error: y\n",
            ),
            ("broken", "ffi.log", "error: comes of the other\n"),
            ("unlinked", "deep/ffi.log", "undefined reference to `twist'\n"),
            ("silent", "a.log", "no_error, errors\n"),
        ):
            (build / name / log).parent.mkdir(parents=True, exist_ok=True)
            (build / name / log).write_text(text)
        (tmp_path / "mine" / "good" / "_host.abi3.so").touch()

    monkeypatch.setattr(port, "build", compile)
    status, lines = said("all")
    assert status == 0 and built == [(["broken", "coreless", "good", "silent", "unlinked"], True)]
    assert lines[:2] == ["/fork", "type | folder | result | why, or what is left to do"]
    assert lines[2] == "Broken | broken | does not compile | broken_layer.cpp:3: error: no x"
    nothing = "does not compile | see the logs in /build"
    assert lines[3] == f"Coreless | coreless | {nothing}/coreless"
    assert lines[4].startswith("Foreign | | refused | ") and "boost/geometry.hpp" in lines[4]
    assert lines[-4:-1] == [
        "Good | good | compiles",
        f"Silent | silent | {nothing}/silent",
        "Unlinked | unlinked | does not compile | undefined reference to `twist'",
    ]
    assert lines[-1] == "6 types: 4 does not compile, 1 refused, 1 compiles"
    settings, _ = port.from_environment([])
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.log").write_text("x: fatal error: the core's\n")
    assert port.first_error(tmp_path / "mine" / "silent", settings) == "x: fatal error: the core's"
    monkeypatch.setattr(port, "build", None)
    assert said("--force", "--unbuilt", "all")[1][-1] == "6 types: 5 ported, 1 refused"


def test_a_build_folder_that_make_did_not_make(fork, said, tmp_path):
    fork.layer("Good")
    letter = tmp_path / "build" / "good" / "letter"
    letter.parent.mkdir(parents=True)
    letter.touch()
    why = "/build/good: make would empty this folder, and did not make it; give another BUILD"
    assert said("all") == (1, [f"make port: {why}"])
    assert letter.exists()


def test_all_types_of_which_two_differ_in_case_alone(fork, said, tmp_path):
    source = fork.layer("LSTM", header="caffe/vision_layers.hpp")
    source.rename(source.with_name("recurrent.cpp"))
    fork.layer("Lstm", header="caffe/vision_layers.hpp")
    for _ in range(2):  # the second time it finds its own folders
        _, lines = said("--unbuilt", "all")
        assert [line for line in lines if "ported" in line] == [
            "LSTM | lstm | ported",
            "Lstm | lstm_2 | ported",
            "2 types: 2 ported",
        ]
    assert "LstmLayer" in (tmp_path / "mine/lstm_2/lstm_layer.cpp").read_text()
