"""A script is run from a wheel and from the checkout, and what it did is compared."""

import json
import subprocess
from pathlib import Path

import pytest
from support import python_with_torch
from support.root import ROOT

from lab.wheel.scripts import SCRIPTS, Script, copied, laid_out, outcome, run

NET = """input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2 kernel_size: 3 } }
"""
PROGRAM = """import cv2, time
from cuffi import dnn
net = dnn.readNetFromCaffe("a.prototxt", "a.caffemodel")
ok, frame = cv2.VideoCapture(0).read()
net.setInput(cv2.dnn.blobFromImage(frame, 1, (8, 8)))
print(net.forward().shape, time.time())
cv2.imwrite("out.png", frame)
cv2.imshow("out", frame)
"""


def repository(mirror: Path) -> None:
    place = mirror / "one+two" / "repo"
    place.mkdir(parents=True)
    (place / "a.prototxt").write_text(NET)
    (place / "script.py").write_text(PROGRAM)
    git = ["git", "-C", str(place), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True)


def test_a_script_is_run_twice_and_compared(tmp_path):
    pytest.importorskip("cv2")
    repository(tmp_path / "mirror")
    script = Script("one/two", "script.py", weights={"a.caffemodel": "a.prototxt"}, texts={"t/a.txt": "x"})
    laid_out(script, tmp_path / "mirror", tmp_path / "given")
    assert (tmp_path / "given" / "t" / "a.txt").read_text() == "x"
    runs = [
        run(Path(python_with_torch.script()), script, copied(tmp_path / "given", tmp_path / name), [ROOT])
        for name in "ab"
    ]
    assert outcome(*runs) == "equal, 1 results, 1 files", runs
    assert runs[0]["results"][0].startswith("float32 (1, 2, 6, 6) ")
    wrong = json.loads(json.dumps(runs[1]))
    wrong["results"][0] = "float32 (1, 2, 6, 6) other"
    assert outcome(runs[0], wrong).startswith("DIFFERS in results")
    wrong = runs[1] | {"files": {}}
    assert outcome(runs[0], wrong).startswith("DIFFERS in files")


def test_the_list_has_the_scripts_of_the_evidence():
    before = [s for s in SCRIPTS if not s.new]
    assert len(before) == 27 and len(SCRIPTS) - len(before) >= 15
    page = (ROOT / "lab" / "evidence" / "opencv-scripts.md").read_text()
    assert [s.repository for s in before if s.repository not in page] == []
