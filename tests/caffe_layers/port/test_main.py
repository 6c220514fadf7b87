"""make port's output: for one type, and for all with the compiler's errors."""

import json
from pathlib import Path

import pytest

import cuffi.caffe_layers.port.compiled
from cuffi.caffe_layers.port.__main__ import is_stock
from cuffi.caffe_layers.port.compiled import hint
from cuffi.nets.stock import stock_types


def test_one_type(fork, said):
    fork.layer("Shift", includes='#include "caffe/util/twist.hpp"', body="twist();")
    fork.write("include/caffe/util/twist.hpp", "inline void twist() {}\n")
    files = "caffe.proto, shift_layer.cpp, shift_layer.hpp, twist.hpp"
    where = "LAYERS_DIR=/mine BUILD=/build"
    status, lines = said("--unbuilt", "Shift", "Nonesuch")
    assert status == 1
    assert lines[0].startswith("Nonesuch: not ported. ")
    assert lines[1] == f"Shift is in /mine/shift: {files}, ORIGIN, __init__.py"
    assert lines[-2] == f"Next: make {where} LAYERS=shift, then make verify {where} LAYER=shift"
    assert lines[-1] == "2 types: 1 ported, 1 refused"
    assert said("--unbuilt", "Shift") == (0, lines[1:-1])  # what is there is what it would write
    moved = said("--unbuilt", "--force", "--name", "moved", "Shift")[1][0]
    assert moved == f"Shift is in /mine/moved: {files}, ORIGIN, __init__.py"


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Do not compile: Good is built, the others have logs. Returns the calls of build."""
    build, calls = tmp_path / "build", []
    logs = [
        (
            "broken",
            "a.log",
            f"warning\n{tmp_path}/mine/broken/broken_layer.cpp:3: error: 'x' was not declared\nerror: y",
        ),
        ("broken", "ffi.log", "error: comes of the other\n"),
        ("unlinked", "deep/ffi.log", "undefined reference to `twist'\n"),
        ("silent", "a.log", "no_error, errors\n"),
    ]

    def compile(job, keep_going):
        calls.append(([folder.name for folder in job.folders], keep_going))
        for name, log, text in logs:
            if name in calls[-1][0]:
                (build / name / log).parent.mkdir(parents=True, exist_ok=True)
                (build / name / log).write_text(text)
        if "good" in calls[-1][0]:
            (tmp_path / "mine" / "good" / "_host.abi3.so").touch()

    monkeypatch.setattr(cuffi.caffe_layers.port.compiled, "build", compile)
    return calls


def test_one_type_and_what_the_compiler_says(fork, said, compiled, tmp_path):
    fork.layer("Good"), fork.layer("Broken")
    where = "LAYERS_DIR=/mine BUILD=/build"
    assert said("Good")[1][-1] == f"It compiles. Next: make verify {where} LAYER=good"
    status, lines = said("Broken")
    assert status == 2  # a refusal is 1
    assert lines[1:] == [
        "It does not compile: broken_layer.cpp:3: error: 'x' was not declared",
        hint("not declared"),
    ]
    assert (tmp_path / "mine" / "broken").exists()  # to mend


def test_all_types_and_what_the_compiler_says(fork, said, compiled, tmp_path):
    for name in ("Good", "Broken", "Unlinked", "Silent", "Coreless", "ReLU"):
        fork.layer(name)
    fork.layer("Foreign", body="leveldb::DB* db;")
    (tmp_path / "mine" / "unlinked").mkdir()  # the user's
    status, lines = said("all")
    assert status == 2 and compiled == [(["broken", "coreless", "good", "silent", "unlinked"], True)]
    assert lines[:2] == ["/fork", "type | folder | result | reason, or what to do"]
    text = " ".join(lines)
    assert "Broken | | does not compile | broken_layer.cpp:3: error: 'x' was not declared. The source" in text
    assert "Coreless | | does not compile | see the logs in /build/coreless" in text
    assert "Good | good | compiles" in lines
    assert "Unlinked | unlinked | does not compile | undefined reference to `twist'. Neither" in text
    assert lines[-1] == "6 types: 1 compiles, 4 does not compile, 1 refused"
    rows = [json.loads(line) for line in (tmp_path / "build" / "port.jsonl").read_text().splitlines()]
    assert {row["type"]: row["verdict"] for row in rows} == {
        "Good": "compiles", "Foreign": "refused", **dict.fromkeys(("Broken", "Coreless", "Silent", "Unlinked"),
        "does not compile"),
    }  # fmt: skip
    broken = next(row for row in rows if row["type"] == "Broken")
    assert "'x' was not declared" in broken["reason"] and broken["seconds"] >= 0
    assert "'x' was not declared" in Path(broken["log"]).read_text()
    assert "with torch: ReLU." in text
    # What does not compile is removed again.
    assert sorted(p.name for p in (tmp_path / "mine").iterdir() if p.name != "build") == ["good", "unlinked"]
    assert not (tmp_path / "build" / "broken").exists()


def test_a_message_to_put_beside_the_layer(fork, said, compiled):
    """The layer is not compiled before, and the note is printed instead of a compiler's error."""
    fork.layer("Shift", body="this->layer_param_.shift_param().size();")
    (fork.root / "src/caffe/proto/caffe.proto").unlink()
    text = " ".join(said("all")[1])
    assert "Shift | shift | to do by hand | " in text and "put its message beside the layer's files" in text
    assert "to do by hand: " in " ".join(said("--force", "Shift")[1]) and not compiled


def test_a_build_folder_that_make_did_not_make(fork, said, tmp_path):
    fork.layer("Good")
    letter = tmp_path / "build" / "good" / "letter"
    letter.parent.mkdir(parents=True)
    letter.touch()
    why = "/build/good: make would empty this folder, but did not create it; set another BUILD"
    assert said("all") == (1, [f"make port: {why}"])
    assert letter.exists()


def test_all_types_of_which_two_differ_in_case_alone(fork, said, tmp_path):
    source = fork.layer("WideLSTM", header="caffe/vision_layers.hpp")
    source.rename(source.with_name("recurrent.cpp"))
    fork.layer("WideLstm", header="caffe/vision_layers.hpp")
    for _ in range(2):  # the second time it finds its own folders
        _, lines = said("--unbuilt", "all")
        assert [line for line in lines if "ported" in line] == [
            "WideLSTM | wide_lstm | ported",
            "WideLstm | wide_lstm_2 | ported",
            "2 types: 2 ported",
        ]
    assert "WideLstmLayer" in (tmp_path / "mine/wide_lstm_2/wide_lstm_layer.cpp").read_text()


@pytest.mark.parametrize("name", ["torch", "nn", "dnn", "caffe"])
def test_a_name_that_layers_use_is_refused(fork, port, name):
    fork.layer("Shift")
    assert f"NAME={name}: the toolkit uses" in port("Shift", "--name", name, fails=True)


def test_stock_s_data_layers_are_not_a_fork_s(fork, said):
    """The tree has its own Own, and Caffe's layers that read and write data."""
    for name in (
        "Own",
        "MemoryData",
        "ImageData",
        "Data",
        "HDF5Data",
        "HDF5Output",
        "WindowData",
        "DummyData",
    ):
        fork.layer(name)
    status, lines = said("--unbuilt", "all")
    assert status == 0 and lines[-1] == "1 type: 1 ported" and "Data" not in " ".join(lines)
    assert said("--unbuilt", "MemoryData")[0] == 0  # by its name it is


def test_the_exit_status_tells_refused_from_failed(fork, said, compiled):
    fork.layer("Good"), fork.layer("Broken"), fork.layer("Foreign", body="leveldb::DB* db;")
    assert [said(name)[0] for name in ("Good", "Foreign", "Broken")] == [0, 1, 2]
    assert said("Good", "Foreign", "Broken")[0] == 2
    assert said("--unbuilt", "all")[0] == 0


def test_what_is_stock_is_what_torch_or_the_core_computes():
    assert all(map(is_stock, stock_types())) and is_stock("RELU") and is_stock("HDF5Data")
    assert not any(map(is_stock, ("Normalize", "Interp", "InnerProducts")))
