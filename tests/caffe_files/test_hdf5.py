"""HDF5 files of strangers: what leads to another file is refused by its name, at whatever place it is."""

import os
import sys

import numpy as np
import pytest

from cuffi import caffe_net
from cuffi.base import CaffeRuntimeError, CaffeValueError
from cuffi.caffe_files import hdf5

h5py = pytest.importorskip("h5py")

SECRET = b"-----BEGIN KEY-----" + bytes(range(65, 86)) + b"END."
SIZE = len(SECRET) // 4


def net(data: bool = False) -> str:
    if data:
        return """layer { name: "d" type: "HDF5Data" top: "data" top: "label"
                  hdf5_data_param { source: "list.txt" batch_size: 1 } }"""
    return f"""input: "data" input_shape {{ dim: 1 dim: {SIZE} }}
    layer {{ name: "ip" type: "InnerProduct" bottom: "data" top: "y"
      inner_product_param {{ num_output: 1 bias_term: false }} }}"""


def external_storage(file, name):
    file.create_dataset(
        name, shape=(1, SIZE), dtype="f4", external=[(os.path.abspath("secret"), 0, SIZE * 4)]
    )


def virtual(file, name):
    layout = h5py.VirtualLayout(shape=(1, SIZE), dtype="f4")
    layout[:] = h5py.VirtualSource("other.h5", "values", shape=(1, SIZE))
    file.create_virtual_dataset(name, layout)


def virtual_of_nothing(file, name):
    """No source is mapped yet."""
    file.create_virtual_dataset(name, h5py.VirtualLayout(shape=(1, SIZE), dtype="f4"))


def link(file, name):
    file[name] = h5py.ExternalLink("other.h5", "/values")


def link_to_a_group(file, name):
    file[name.rpartition("/")[0] or name] = h5py.ExternalLink("other.h5", "/group")


def soft_link_to_a_link(file, name):
    file["elsewhere"] = h5py.ExternalLink("other.h5", "/group")
    file[name] = h5py.SoftLink("/elsewhere/0")


def soft_link_to_storage(file, name):
    external_storage(file, "hidden/0")
    file[name] = h5py.SoftLink("/hidden/0")


def hard_link_to_storage(file, name):
    external_storage(file, "hidden/0")
    file[name] = file["hidden/0"]


WAYS = [external_storage, virtual, virtual_of_nothing, link, link_to_a_group, soft_link_to_a_link,
        soft_link_to_storage, hard_link_to_storage]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(SECRET)
    with h5py.File("other.h5", "w") as file:
        file["values"] = file["group/0"] = np.frombuffer(SECRET, np.float32).reshape(1, SIZE)
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_weights_of_another_file_are_not_read(here, way):
    with h5py.File("w.caffemodel.h5", "w") as file:
        way(file, "data/ip/0")
    with pytest.raises(
        CaffeValueError, match=r"^w\.caffemodel\.h5: .*(link to another file|values in other files)"
    ):
        caffe_net(net(), "w.caffemodel.h5")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("top", ["data", "label"])
def test_data_of_another_file_is_not_read(here, way, top):
    with h5py.File("rows.h5", "w") as file:
        file[{"data": "label", "label": "data"}[top]] = np.zeros((1, SIZE), np.float32)
        way(file, top)
    (here / "list.txt").write_text("rows.h5\n")
    with pytest.raises(CaffeValueError, match=r"rows\.h5: .*(link to another file|values in other files)"):
        caffe_net(net(data=True), train=True).data_loaders(workers=0)


def test_links_within_the_file_are_followed(here):
    weights = np.arange(SIZE, dtype=np.float32).reshape(1, SIZE)
    with h5py.File("w.caffemodel.h5", "w") as file:
        file["elsewhere"] = weights
        file["data/ip/0"] = file["elsewhere"]
        file["data/again"] = file["data"]  # a circle
        file["more"] = h5py.SoftLink("/elsewhere")
    assert np.array_equal(caffe_net(net(), "w.caffemodel.h5").state_dict()["ip.weight"], weights)
    with hdf5.opened("w.caffemodel.h5") as file:
        assert np.array_equal(hdf5.values(file["more"], "x"), weights)


@pytest.mark.parametrize(("depth", "refused"), [(60, False), (5000, True)])
def test_groups_within_groups(here, depth, refused):
    """HDF5's own way through 20,000 of them ends the process."""
    with h5py.File("deep.h5", "w", libver="latest") as file:
        group = file.id
        for _ in range(depth):
            group = h5py.h5g.create(group, b"g")
        external_storage(h5py.Group(group), "x")
    said = "groups lie in more than 64 others" if refused else "'g/g/.*/x' has its values in other files"
    with pytest.raises(CaffeValueError, match=rf"^deep\.h5: .*{said}"), hdf5.opened("deep.h5"):
        pass


@pytest.mark.parametrize("chunks", [None, (1 << 20,)])
def test_a_dataset_that_is_larger_than_its_file(here, chunks):
    with h5py.File("rows.h5", "w") as file:
        file.create_dataset(
            "data", shape=(1 << 40,), dtype="f4", chunks=chunks, compression=chunks and "gzip"
        )
        file.create_dataset("zeros", data=np.zeros(1 << 22, np.float32), compression="gzip")
    with hdf5.opened("rows.h5") as file:
        with pytest.raises(
            CaffeValueError, match="'/data' declares 4,398,046,511,104 bytes, and has 0 in the file"
        ):
            hdf5.values(file["data"], "rows.h5")
        assert hdf5.values(file["zeros"], "rows.h5").shape == (1 << 22,)


def test_what_fails_within_is_an_error_of_the_file(here):
    damaged = pytest.raises(CaffeValueError, match=r"^layer x: other\.h5: a damaged HDF5 file: .*nothing")
    with damaged, hdf5.opened("other.h5", "layer x") as file:
        hdf5.values(file["nothing"], "x")
    with pytest.raises(ZeroDivisionError), hdf5.opened("other.h5"):
        raise ZeroDivisionError
    with pytest.raises(FileNotFoundError, match=r"which has other\.h5"), hdf5.opened("othr.h5"):
        pass


def test_without_h5py_the_command_is_said(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    missing = pytest.raises(CaffeRuntimeError, match=r"w\.h5: HDF5 files are read by h5py: pip install h5py")
    with missing, hdf5.opened("w.h5"):
        pass
