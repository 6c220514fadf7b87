"""The command `cuffi`: its list, a screen of help for each command, and one line for what is missing or misspelt."""

import contextlib
import io
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from support import python_with_torch

import cuffi.train
from cuffi.commands import main as program
from cuffi.commands import run
from cuffi.commands.table import COMMANDS, STATUS

main = program.main


def test_the_list_has_every_command(capsys):
    for words in ([], ["--help"]):
        assert main(words) == 0
        assert re.findall(r"^  ([a-z]+) +\S", capsys.readouterr().out, re.M) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_one_screen_with_an_example(name, capsys):
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0].startswith(f"usage: cuffi {name}") and len(lines) <= 24
    assert max(map(len, lines)) <= 112
    example = text.partition("Example:\n")[2]
    assert "cuffi" in example and name in example
    assert all(option.flag in text for option in COMMANDS[name].options)


def refuse(*_):
    raise AssertionError("it began")


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_arguments_are_status_2_for_each_command(name, capfd, monkeypatch, tmp_path):
    """Before anything begins, and with a line that says what is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.execv", refuse)
    monkeypatch.setattr("os.execve", refuse)
    try:
        status = main([name, "--no-such-option"])
    except SystemExit as error:
        status = error.code
    said = capfd.readouterr().err
    assert status == 2 and "Traceback" not in said and said.strip()


def test_the_page_has_each_command_and_status():
    text = (ROOT / "docs" / "commands.md").read_text()
    rows = dict(re.findall(r"^\| `cuffi (\w+)` \| (.*?) \|", text, re.M))
    assert rows == {name: command.summary for name, command in COMMANDS.items()}
    statuses = {int(n): words for n, words in re.findall(r"^\| (\d+) \| (.*) \|$", text, re.M)}
    assert statuses == STATUS


def test_the_flags_of_commands_that_read_their_arguments_themselves(capsys):
    from cuffi import judge

    for module, name in ((cuffi.train, "train"), (judge, "judge")):
        with contextlib.suppress(SystemExit):
            module.main(["--help"])
        flags = set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", capsys.readouterr().out)) - {"--help"}
        assert flags == set(COMMANDS[name].flags)


def test_trains_screen_has_each_of_its_options(capsys):
    with pytest.raises(SystemExit):
        cuffi.train.main(["--help"])
    flags = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert len(flags) > 5 and not [flag for flag in flags if flag not in COMMANDS["train"].about]


def test_no_help_imports_torch():
    script = "import sys; from cuffi.commands.main import main; main([]); main(['net', '-h']); "
    script += "print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nets"], "cuffi: there is no command 'nets' (did you mean net?). There are: dnn, caffe, "),
        (["x"], "cuffi: there is no command 'x'. There are: "),
    ],
)
def test_an_unknown_command_is_one_line(words, said, capsys):
    assert main(words) == 2
    text = capsys.readouterr().err
    assert text.startswith(said) and text.count("\n") == 1


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.needs])
def test_without_kernels_a_command_says_what_to_install(name, capsys, monkeypatch):
    monkeypatch.setattr(program, "is_part", lambda _: False)
    monkeypatch.setattr("cuffi.installed.PACKAGE", ROOT / "no_such")
    monkeypatch.setattr("sys.platform", "linux")
    assert main([name, "x"]) == 2
    text = capsys.readouterr().err
    assert "They are not installed: pip install cuffi==" in text and text.count("\n") == 1
    monkeypatch.setattr("sys.platform", "win32")
    assert main([name, "x"]) == 2
    assert "run on Linux only, this is win32" in capsys.readouterr().err


@pytest.mark.parametrize("missing", program.EXTRAS)
def test_a_missing_extra_is_one_line(missing, capsys, monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(run, "net", fail)
    monkeypatch.setattr(program, "is_checkout", lambda: False)
    assert main(["net", "x"]) == 2
    text = capsys.readouterr().err
    assert text == f'cuffi net: {missing} is not installed: pip install "{program.EXTRAS[missing]}"\n'


@pytest.mark.parametrize("missing", program.NEEDED)
def test_in_a_checkout_make_installs_what_is_missing(missing, capsys, monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(run, "net", fail)
    assert main(["net", "x"]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"cuffi net: {missing} is not installed for {sys.executable}. ")
    assert f"Type `make` in {ROOT}" in text and text.count("\n") == 1


def test_a_module_of_ours_that_is_missing_is_no_extra(monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError("No module named 'cuffi.lost'", name="cuffi.lost")

    monkeypatch.setattr(run, "net", fail)
    with pytest.raises(ModuleNotFoundError):
        main(["net", "x"])


@pytest.mark.parametrize("name", ["cuffi.nets.dnn", "cuffi.commands.net", "cuffi.runtime.plan"])
def test_a_lost_file_is_one_line(name, capsys, monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(run, "net", fail)
    assert main(["net", "x"]) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"cuffi net: {name} is not there, so the installation is not whole: pip install ")
    assert text.endswith(" --force-reinstall --no-deps\n") and text.count("\n") == 1


@pytest.mark.parametrize("gone", ["nets", "caffe_files", "train.py", "commands"])
def test_without_a_part_of_the_nets_no_layer_is_offered(gone, tmp_path):
    """An installation that was broken off: no advice to install the kernels."""
    nets = shutil.ignore_patterns("__pycache__", "caffe_layers", "edge.py", "loading", "old_torch", "runtime")
    shutil.copytree(ROOT / "cuffi", tmp_path / "cuffi", ignore=nets)
    place = tmp_path / "cuffi" / gone
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    command = [sys.executable, "-m", "cuffi", "train", "s.prototxt"]
    done = python_with_torch.run(command, tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    name = f"cuffi.{gone.removesuffix('.py')}"
    assert f'{name} is not there, so the installation is not whole: pip install "cuffi-nets==' in last


def test_a_terminal_without_the_letters_gets_escapes(monkeypatch):
    told = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", write_through=True)
    monkeypatch.setattr(sys, "stdout", told)
    monkeypatch.setattr(run, "net", lambda *_: print("a → b"))
    assert main(["net", "x"]) == 0
    assert told.buffer.getvalue().split() == [b"a", rb"\u2192", b"b"]


def test_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"cuffi {cuffi.__version__}\n"


def test_makes_targets_call_the_same_commands():
    text = "".join(path.read_text() for path in [ROOT / "Makefile", *ROOT.glob("cuffi/**/targets.mk")])
    called = set(re.findall(r"\$\(CUFFI\) (\w+)|-m cuffi (train)", text))
    assert {a or b for a, b in called} == {"new", "port", "ffi", "verify", "net", "onnx", "train"}
