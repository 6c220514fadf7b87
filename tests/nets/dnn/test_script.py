"""An OpenCV 4 script runs unedited under an OpenCV without the importer: here a fake cv2."""

import os
import sys
from typing import Any

import pytest
from support import python_with_torch
from support.root import ROOT

SCRIPT = """
import sys
import numpy as np
import cv2
from cv2 import dnn as theirs
import helper  # beside the script
net = cv2.dnn.readNetFromCaffe(sys.argv[1], sys.argv[2])
net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
net.setPreferableTarget(cv2.dnn.DNN_TARGET_CPU)
net.setInput(np.ones((1, 2, 3, 3), np.float32))
print(__name__, helper.name, net.forward().reshape(-1).tolist(), theirs.own(), theirs.readNet("x.onnx"))
"""
CV2 = """
class error(Exception): pass
"""
CV2_DNN = """
DNN_TARGET_CPU = 0
def own(): return "theirs"
class DetectionModel:
    def __init__(self, model, config=""): self.model = model
def readNet(model, config="", framework=""): return f"theirs: {model}"
"""
NET = """
input: "data" input_shape { dim: 1 dim: 2 dim: 3 dim: 3 }
layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { pool: AVE global_pooling: true } }
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "site" / "cv2").mkdir(parents=True)
    (tmp_path / "site" / "cv2" / "__init__.py").write_text(CV2 + "from . import dnn\n")
    (tmp_path / "site" / "cv2" / "dnn.py").write_text(CV2_DNN)
    (tmp_path / "a script").mkdir()
    (tmp_path / "a script" / "infer.py").write_text(SCRIPT)
    (tmp_path / "a script" / "helper.py").write_text("name = 'helps'\n")
    (tmp_path / "deploy.prototxt").write_text(NET)
    return tmp_path


def run(folder, *arguments, site="site"):
    command = [sys.executable, "-m", "cuffi.dnn", *arguments]
    return python_with_torch.run(command, ROOT, os.environ | {"PYTHONPATH": str(folder / site)})


def test_a_script_runs_unedited(folder):
    done = run(folder, folder / "a script" / "infer.py", folder / "deploy.prototxt", "")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ helps [1.0, 1.0] theirs theirs: x.onnx\n"


@pytest.mark.parametrize(("more", "half"), [("", "2.5"), ("print 'old'", "2")])
def test_a_script_is_of_python_3_unless_it_says_otherwise(folder, more, half):
    """OpenCV's scripts are younger than pycaffe's. What a script says counts for the files beside it, too."""
    if more:
        pytest.importorskip("fissix")
    (folder / "a script" / "helper.py").write_text("half = 5 / 2\n")
    (folder / "a script" / "main.py").write_text(f"import helper\n{more}\nprint([5 / 2, helper.half])\n")
    done = run(folder, folder / "a script" / "main.py")
    assert done.stdout.splitlines()[-1] == f"[{half}, {half}]", done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("none.py",), "there is no file"), ((), "usage: python -m cuffi.dnn script.py")],
)
def test_refusals(arguments, words, folder):
    done = run(folder, *arguments)
    assert done.returncode == 2 and words in done.stderr + done.stdout


def test_an_importer_of_opencv_s_own_stays(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder / "site"))
    for name in ("cv2", "cv2.dnn"):
        monkeypatch.setitem(sys.modules, name, None)  # what is there now comes back, or nothing
        del sys.modules[name]
    import cv2

    from cuffi.dnn import install, readNetFromCaffe

    assert cv2.dnn.__file__.startswith(str(folder))
    theirs: Any = object()
    cv2.dnn.readNetFromCaffe = theirs
    assert "readNetFromCaffe" not in install() and cv2.dnn.readNetFromCaffe is theirs
    del cv2.dnn.readNetFromCaffe
    assert "readNetFromCaffe" in install() and cv2.dnn.readNetFromCaffe is readNetFromCaffe
    assert cv2.dnn_readNetFromCaffe is readNetFromCaffe and cv2.dnn.DNN_TARGET_CUDA == 6
    assert cv2.dnn_DetectionModel("a.onnx").model == "a.onnx"  # OpenCV's own
    files = str(folder / "deploy.prototxt"), ""
    assert cv2.dnn.DetectionModel(*files).predict and cv2.dnn_Model(readNetFromCaffe(*files)).predict
