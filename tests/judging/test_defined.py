"""What a file of a candidate or a reference lacks is named, with what it has."""

import runpy

import pytest

from cuffi import judge as command
from cuffi.judging.compare import Reference
from cuffi.judging.defined import named

FILE = "import torch\nfrom torch import nn\nclass Model(nn.Module): pass\ndef help_me(): pass\nSIZE = 3\n"


def test_what_it_has_is_listed(tmp_path):
    file = tmp_path / "c.py"
    file.write_text(FILE)
    found = runpy.run_path(str(file))
    assert named(found, "Model", file) is found["Model"]
    with pytest.raises(LookupError) as error:
        named(found, "ModelNew", file)
    assert str(error.value) == "c.py defines no ModelNew. It defines Model, help_me"


def test_a_reference_without_its_parts(tmp_path):
    file = tmp_path / "r.py"
    file.write_text("def get_inputs(): return []\n")
    with pytest.raises(LookupError, match=r"r.py defines no Model. It defines get_inputs"):
        Reference(file).model()
    file.write_text("")
    with pytest.raises(LookupError, match=r"r.py defines no get_inputs. It defines nothing"):
        Reference(file).inputs(0)


RIGHT = "class Model: pass\ndef get_inputs(): return []\n"


@pytest.mark.parametrize(
    ("candidate", "reference", "said"),
    [
        ("class ModelNew(object)\n  pass\n", RIGHT, "c.py:1: SyntaxError: expected ':'"),
        ("x = 1\n  y = 2\n", RIGHT, "c.py:2: IndentationError: unexpected indent"),
        ("class Model: pass\n", RIGHT, "c.py defines no ModelNew. It defines Model"),
        (
            "class ModelNew: pass\n",
            "class Model: pass\n",
            "defines no get_inputs. It defines Model. Write: def ",
        ),
        ("class ModelNew: pass\n", "def get_inputs(: return []\n", "r.py:1: SyntaxError: "),
    ],
)
def test_it_is_told_before_anything_is_built(candidate, reference, said, tmp_path, monkeypatch):
    (tmp_path / "c.py").write_text(candidate)
    (tmp_path / "r.py").write_text(reference)
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("it ran"))
    made = command.judge([tmp_path / "c.py"], reference=tmp_path / "r.py")
    (finding,) = made["findings"]
    assert (made["verdict"], made["status"]) == ("incomplete", 3) and said in finding["text"]


@pytest.mark.parametrize(
    "text", ["from models import *\n", "ModelNew = make()\n", "from a import b as ModelNew\n"]
)
def test_what_may_be_fit_is_run(text, tmp_path, monkeypatch):
    (tmp_path / "c.py").write_text(text)
    (tmp_path / "r.py").write_text(RIGHT)
    ran = []
    monkeypatch.setattr(command, "_run", lambda *_: ran.append(1))
    command.judge([tmp_path / "c.py"], reference=tmp_path / "r.py")
    assert ran == [1]


def test_usage(capsys):
    assert command.main([__file__, __file__]) == command.main([__file__, "--reference=/no.py"]) == 2
    assert command.main([]) == 2 and command.main(["/no/file.cu"]) == 2 and command.main(["--no-such"]) == 2
    assert "no file /no/file.cu" in capsys.readouterr().err


def test_a_path_that_is_no_file_is_told_with_what_is_near(tmp_path, capsys):
    (tmp_path / "relu.cu").touch()
    assert command.main([str(tmp_path / "relu.cuh")]) == 2
    assert f"no file {tmp_path}/relu.cuh; did you mean {tmp_path}/relu.cu?" in capsys.readouterr().err
    assert command.main([str(tmp_path)]) == 2
    assert f"{tmp_path} is a folder: name its files: {tmp_path}/relu.cu\n" in capsys.readouterr().err


def test_a_reference_that_is_not_there_is_never_said_to_be_the_candidate(tmp_path, capsys):
    (tmp_path / "c.py").write_text("class ModelNew: pass\n")
    assert command.main([str(tmp_path / "c.py"), f"--reference={tmp_path}/ref.py"]) == 2
    said = capsys.readouterr().err
    assert f"no file {tmp_path}/ref.py in {tmp_path}. --reference takes the .py file with Model" in said


@pytest.mark.parametrize(
    ("name", "text", "status", "said"),
    [
        ("e.cu", "", 3, "the file is empty: write a kernel into it"),
        ("f.cu", "__device__ float twice(float x) { return 2 * x; }", 3, ": add a kernel that calls twice"),
        ("notes.txt", "my kernels", 2, "notes.txt is no CUDA file: name a .cu or a .py"),
    ],
)
def test_a_file_without_a_kernel_is_told_what_it_lacks(name, text, status, said, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    assert command.main([str(tmp_path / name)]) == status
    assert said in "".join(capsys.readouterr())
