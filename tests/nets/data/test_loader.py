"""Data layers as DataLoaders, on small generated sets: LMDB, LevelDB, lists of images, HDF5."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuffi import caffe, caffe_net
from cuffi.nets.data.loader import item_shapes, merged
from cuffi.nets.stock import stock_types
from cuffi.train import Training


def test_types_that_are_read_are_no_stock_types():
    """A data layer computes nothing: its tops are inputs, whose shapes may be unknown."""
    from cuffi.nets.data.loader import READ

    assert not set(READ) & set(stock_types())
    spec: Any = SimpleNamespace(type="Input")
    assert item_shapes(spec, "x") == {}


TWO = """
layer { name: "data" type: "HDF5Data" top: "data" hdf5_data_param { source: "x.txt" batch_size: 2 } }
layer { name: "data" type: "HDF5Data" top: "label" hdf5_data_param { source: "t.txt" batch_size: 2 } }
layer { name: "loss" type: "EuclideanLoss" bottom: "data" bottom: "label" top: "loss" }
"""


def test_two_layers_of_one_name_are_both_read(tmp_path, monkeypatch):
    """As in Caffe: often both are called data, one for the images and one for the labels."""
    h5py = pytest.importorskip("h5py")
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    for name, top, values in (("x", "data", rows), ("t", "label", 10 - rows)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file[top] = values
        (tmp_path / f"{name}.txt").write_text(f"{name}.h5\n")
    (tmp_path / "net.prototxt").write_text(TWO)
    (tmp_path / "solver.prototxt").write_text('net: "net.prototxt" base_lr: 1 lr_policy: "fixed" max_iter: 2')
    monkeypatch.chdir(tmp_path)
    wanted = ((2 * rows[:2] - 10) ** 2).sum() / 4

    loaders = caffe_net("net.prototxt").data_loaders(passes=1)
    assert list(loaders) == ["data", "data, line 3"]
    batch = next(merged(loaders))
    assert np.array_equal(batch["data"], rows[:2]) and np.array_equal(batch["label"], 10 - rows[:2])

    net = caffe.Net("net.prototxt", caffe.TRAIN)
    assert net.forward()["loss"] == wanted
    assert np.array_equal(net.blobs["data"].data, rows[:2])

    assert next(Training("solver.prototxt").data(0)).keys() == {"data", "label"}
