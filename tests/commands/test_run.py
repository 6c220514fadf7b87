"""How each command starts: its program, its folder, and make's names of its arguments."""

import os
import sys

import pytest
from conftest import ROOT

from cuffi.commands import run
from cuffi.commands.main import main


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Runs a command in another folder. Returns the words and the environment of the program that it starts."""
    monkeypatch.chdir(tmp_path)
    for name in ("LAYERS_DIR", "CALLED_IN", "CALLED_AS", "CAFFE", "WEIGHTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TYPE", "of something else")

    def start(*words):
        found = []
        monkeypatch.setattr(
            os, "execve", lambda program, words, environment: found.append((words, environment))
        )
        monkeypatch.chdir(tmp_path)
        main(list(words))
        ((words, environment),) = found
        assert words[:2] == [sys.executable, "-m"] and os.getcwd() == str(ROOT)
        return words[2:], environment

    return start


def test_paths_are_those_of_the_users_folder(started, tmp_path):
    words, environment = started("net", "x.prototxt", "--weights", "../x.caffemodel", "--phase", "TEST")
    assert words == ["cuffi.commands.net", "show"]
    assert environment["PROTOTXT"] == str(tmp_path / "x.prototxt")
    assert environment["WEIGHTS"] == str(tmp_path.parent / "x.caffemodel") and environment["PHASE"] == "TEST"
    assert environment["TYPE"] == "" and "LAYERS_DIR" not in environment
    assert environment["CALLED_IN"] == str(tmp_path) and environment["CALLED_AS"] == "cuffi net"


def test_what_is_ported_goes_to_layers_in_the_users_folder(started, tmp_path):
    words, environment = started("net", "x.prototxt", "--caffe", "fork", "--verify")
    assert words[-1] == "verify" and environment["LAYERS_DIR"] == str(tmp_path / "layers")
    words, _ = started("port", "Own", "Other", "--caffe", "fork", "--force")
    assert words[0] == "cuffi.caffe_layers.port" and "--force" in words and words[-1] == "Own Other"
    assert f"--caffe={tmp_path}/fork" in words and str(tmp_path / "layers") in words
    words, _ = started("new", "mine", "--layers-dir", "a", "--from", "b.cu")
    assert words == [
        "tools.new_layer",
        "--layers-dir",
        f"{tmp_path}/a",
        f"--from={tmp_path}/b.cu",
        "--",
        "mine",
    ]


@pytest.mark.parametrize(
    ("words", "program", "setting", "value"),
    [
        (("onnx", "x", "--output", "y"), ["cuffi.commands.net", "onnx"], "ONNX", "{}/y"),
        (("verify", "normalize", "--shapes", "2,3"), ["tools.make.build", "verify"], "SHAPES", "2,3"),
        (("ffi", "--build", "a", "b"), ["cuffi.old_torch.make"], "EXT", "{0}/a {0}/b"),
    ],
)
def test_the_others(started, tmp_path, words, program, setting, value):
    found, environment = started(*words)
    assert found == program and environment[setting] == value.format(tmp_path)


def test_under_make_the_environment_has_the_arguments(started, monkeypatch):
    monkeypatch.setenv("CAFFE", "a/fork")
    monkeypatch.setenv("LAYERS_DIR", "layers")
    words, environment = started("--make", "port")
    assert words[1] == "--caffe=a/fork" and words[-1] == "of something else"
    assert environment["TYPE"] == "of something else"
    assert started("--make", "net", "verify")[0] == ["cuffi.commands.net", "verify"]


def test_ffi_runs_a_script_of_that_time(monkeypatch):
    found = []
    monkeypatch.setattr(os, "execv", lambda program, words: found.append(words[1:]))
    main(["ffi", "build.py", "--x"])
    assert found == [["-m", "cuffi.ffi", "build.py", "--x"]]


def test_a_list_of_paths_on_windows(monkeypatch):
    """A drive has a colon; the separator is another one."""
    import ntpath

    monkeypatch.setattr(run.os, "path", ntpath)
    monkeypatch.setattr(run.os, "pathsep", ";")
    monkeypatch.setattr(ntpath, "abspath", lambda path: ntpath.normpath(ntpath.join(r"C:\here", path)))
    assert run._absolute(r"D:\a;b") == r"D:\a;C:\here\b"


def test_nets_run_without_the_toolkit(monkeypatch, capsys, tmp_path):
    """In this process and in the user's folder."""
    text = (
        'input: "x" input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }\nlayer { type: "ReLU" bottom: "x" top: "y" }'
    )
    (tmp_path / "a net.prototxt").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in ("PROTOTXT", "WEIGHTS", "CAFFE", "SHAPES", "PHASE", "LAYERS_DIR", "CALLED_AS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(run, "_root", lambda: None)
    for place in ("cuffi.installed", "cuffi.commands.net.__main__"):
        monkeypatch.setattr(f"{place}.has_kernels", lambda: False)
    monkeypatch.setattr(sys, "argv", ["cuffi"])
    assert main(["net", "a net.prototxt"]) == 0
    said = capsys.readouterr().out
    assert "ReLU" in said and "1 layers, 0 parameters" in said and "a net.prototxt')" in said
    assert main(["net", "a net.prototxt", "--caffe", "fork"]) == 1
    assert "is part of the kernels" in capsys.readouterr().out
