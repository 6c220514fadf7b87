"""python -m cuffi.caffe: a script that imports caffe, started as by a user; and the module of that name."""

import json
import os
import re
import sys

import pytest
from support import python_with_torch
from support.root import ROOT

from cuffi.nets.pycaffe.run_script import main

NET = """
input: "data" input_shape { dim: 1 dim: 2 }
layer { name: "p" type: "Python" bottom: "data" top: "y" python_param { module: "layers.mine" layer: "Twice" } }
"""
LAYER = """
import caffe
from config import cfg


class Twice(caffe.Layer):
    def setup(self, bottom, top): pass
    def reshape(self, bottom, top): top[0].reshape(*bottom[0].data.shape)
    def forward(self, bottom, top): top[0].data[...] = bottom[0].data * cfg["by"]
    def backward(self, top, propagate_down, bottom): pass
"""
SCRIPT = """\
#!/usr/bin/env python
import _init_paths
import caffe, sys
import caffe.proto.caffe_pb2 as pb2
from caffe.io import Transformer
from google.protobuf import text_format
from config import cfg

if __name__ == '__main__':
    cfg["by"] = int(sys.argv[1]) / 2
    caffe.set_mode_gpu()
    net = caffe.Net('net.prototxt', caffe.TEST)
    net.blobs['data'].data[...] = [1, 2]
    print net.forward()['y'].tolist(), pb2.NetParameter().DESCRIPTOR.name, __file__
    print text_format.MessageToString(pb2.SolverParameter(net="a"))
    if len(sys.argv) > 2:
        caffe.draw_net()
"""


@pytest.fixture
def folder(tmp_path):
    files = {"tools/run.py": SCRIPT, "lib/layers/__init__.py": "", "lib/layers/mine.py": LAYER,
             "net.prototxt": NET, "lib/config.py": "cfg = {'by': 1}",
             "tools/_init_paths.py": "import sys\nsys.path[:0] = ['lib']"}  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def run(folder, *arguments: str):
    command = [sys.executable, "-m", "cuffi.caffe", *arguments]
    return python_with_torch.run(command, folder, os.environ | {"PYTHONPATH": str(ROOT)})


def test_a_script_and_its_net_s_layers_run_and_share_their_modules(folder):
    done = run(folder, "tools/run.py", "7")
    assert done.stdout == '[[3.0, 6.0]] NetParameter tools/run.py\nnet: "a"\n\n', done.stderr
    done = run(folder, "tools/run.py", "7", "more")
    assert done.returncode == 1
    line = SCRIPT.split("\n").index("        caffe.draw_net()") + 1
    assert f'run.py", line {line}, in <module>' in done.stderr
    assert "AttributeError: caffe.draw_net: not in this pycaffe; did you mean 'draw'" in done.stderr


def test_an_error_of_the_toolkit_shows_the_script_s_own_line_alone(folder):
    (folder / "net.prototxt").write_text(NET.replace("Python", "NoSuchLayer"))
    (folder / "tools/run.py").write_text("import caffe\nprint 1\ncaffe.Net('net.prototxt', caffe.TEST)")
    done = run(folder, "tools/run.py")
    own = r"caffe\.Net\('net\.prototxt', caffe\.TEST\)\n( *[~^]+\n)?CaffeValueError: net\.prototxt: 1 problem"
    assert re.search(own, done.stderr)  # Python 3.13 and later mark the call
    assert "_pycaffe" not in done.stderr


def test_a_notebook_s_cells_run(folder):
    cells = [["%matplotlib inline\n", "import caffe\n", "if 1:\n", "    !echo here\n"], ["print caffe.TEST"]]
    book = {
        "cells": [{"cell_type": "code", "source": cell} for cell in cells]
        + [{"cell_type": "markdown", "source": ["x"]}]
    }
    (folder / "a.ipynb").write_text(json.dumps(book))
    assert run(folder, "a.ipynb").stdout == "here\nTEST\n"
    book["cells"][1]["source"] = ["x = 1\n", "caffe.nothing"]
    (folder / "a.ipynb").write_text(json.dumps(book))
    assert 'a.ipynb, cell 2", line 2, in <module>\n    caffe.nothing' in run(folder, "a.ipynb").stderr


def test_the_command_says_how_to_use_it(folder, capsys):
    assert main("python -m cuffi.caffe", ["--help"]) == 0
    assert "python -m cuffi.caffe script.py [arguments]" in capsys.readouterr().out
    assert main("python -m cuffi.caffe", [str(folder / "absent.py")]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_caffe_takes_that_name_only_if_it_is_told_and_free(folder):
    code = """
from cuffi import caffe
import sys
assert "caffe" not in sys.modules
caffe.install()
import caffe as plain
from caffe.proto import caffe_pb2
assert plain is caffe and caffe_pb2.TEST == 1
del sys.modules["caffe"]
open("caffe.py", "w").write("")
try:
    caffe.install()
except RuntimeError as error:
    print(error)
caffe.install(over=True)
import caffe as plain
assert plain is caffe
"""
    done = python_with_torch.run([sys.executable, "-c", code], folder, os.environ | {"PYTHONPATH": str(ROOT)})
    assert done.stdout.startswith("caffe.install: another caffe is here, ") and not done.returncode, (
        done.stderr
    )


@pytest.mark.parametrize(
    ("name", "step"), [("cat.jpg", ". Give its path from {}, or a full one"), ("/no/cat.jpg", "")]
)
def test_a_file_that_is_not_there(name, step, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(f"open({name!r})\n")
    assert main("cuffi caffe", ["a.py"]) == 1
    assert capsys.readouterr().err.endswith(f"directory: {name!r}{step.format(tmp_path)}\n")
