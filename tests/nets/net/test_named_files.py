"""Files that a prototxt names: in the working directory, or around the prototxt."""

from typing import Any

import pytest
import torch

from cuffi import caffe_net
from cuffi.nets.net.messages import STOCK
from cuffi.nets.net.registry import Folders

STORED = "models/small/table.binaryproto"
LOSS = """input: "x" input_shape { dim: 1 dim: 2 } input: "label" input_shape { dim: 1 }
layer { name: "l" type: "InfogainLoss" bottom: "x" bottom: "label" top: "l" infogain_loss_param { source: "%s" } }
"""
FORKS = """input: "x" input_shape { dim: 1 dim: 2 }
layer { name: "models/small/net.prototxt" type: "Own" bottom: "x" top: "y"
  own_param { names: '%s' inner { file: "labels.txt" other: "no.txt" kind: "small" level: 1.5 } } }
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree whose paths start at its root, as in Caffe's own models. The net is elsewhere."""
    folder = tmp_path / "models" / "small"
    folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path


def loss(tree, source):
    (tree / "models/small/net.prototxt").write_text(LOSS % source)
    return caffe_net(tree / "models/small/net.prototxt")(torch.zeros(1, 2), torch.zeros(1)).item()


def write(file, first):
    stored = STOCK.message("BlobProto")
    stored.shape.dim.extend([1, 1, 2, 2])
    stored.data.extend([first, 0, 0, 0])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(stored.SerializeToString())


def test_the_working_directory_comes_first(tree):
    log2 = pytest.approx(0.6931472)
    write(tree / STORED, 1)
    assert loss(tree, "table.binaryproto") == log2 and loss(tree, STORED) == log2
    assert loss(tree, tree / STORED) == log2
    write(tree / "elsewhere" / STORED, 3)
    assert loss(tree, STORED) == pytest.approx(3 * 0.6931472)
    with pytest.raises(OSError, match=r"other\.binaryproto"):
        loss(tree, "other.binaryproto")


def test_a_ported_layer_gets_the_path(tree, monkeypatch):
    """Before, its C++ opened the file in the toolkit's folder, where make runs."""

    class Taken(torch.nn.Module):
        def __init__(self, text, **_):
            super().__init__()
            self.text = text

        def top_shapes(self, bottom):
            return [bottom]

    class Ported:
        folder = tree

        def module_class(self):
            return Taken

    find = Folders.find
    monkeypatch.setattr(Folders, "find", lambda self, name: Ported() if name == "Own" else find(self, name))
    folder = tree / "models/small"
    (folder / "labels.txt").write_text("cat")
    (folder / "small").mkdir()  # a word, not a path
    (folder / "net.prototxt").write_text(FORKS % STORED)
    write(tree / STORED, 1)
    layer: Any = next(caffe_net(folder / "net.prototxt").children())
    assert f'names: "{tree / STORED}"' in layer.text and f'file: "{folder / "labels.txt"}"' in layer.text
    assert 'other: "no.txt"' in layer.text and 'kind: "small"' in layer.text and "level: 1.5" in layer.text
    assert 'name: "models/small/net.prototxt"' in layer.text
