"""The diffs that backward computes, compared with torch and with what Caffe does."""

import numpy as np
import pytest
import torch
from support.pycaffe import LOSS, OWN, TEXT, assert_close, data, reference
from support.typed import not_none
from torch.nn import functional

from cuffi import caffe


def test_diffs_are_those_of_torch(net):
    x = torch.from_numpy(data(2, 3, 6, 6)).requires_grad_()
    net.blobs["data"].data[...] = x.detach().numpy()
    net.forward()
    blobs, seed = reference(net, x), data(2, 4, 2, 2)
    for name in ("conv0", "pool"):
        blobs[name].retain_grad()
    blobs["pool"].backward(torch.from_numpy(seed))
    net.blobs["pool"].diff[...] = seed
    found = net.backward(start="pool")
    assert_close(found["data"], x.grad)
    assert_close(net.blobs["conv"].diff, blobs["conv0"].grad)  # the layer in place has overwritten the other
    assert not net.params["ip"][0].diff.any()
    bias = net.params["conv"][1].diff.copy()
    assert_close(bias, not_none(blobs["conv0"].grad).sum((0, 2, 3)))
    net.backward(start="pool")
    assert_close(net.params["conv"][1].diff, 2 * bias)  # Caffe adds
    net.clear_param_diffs()
    assert not net.params["conv"][1].diff.any()


def test_backward_runs_no_layer_after_its_start(net):
    net.blobs["data"].reshape(1, 3, 9, 9)  # too large for ip
    x = torch.from_numpy(data(1, 3, 9, 9)).requires_grad_()
    net.blobs["data"].data[...] = x.detach().numpy()
    net.forward(end="conv")
    net.blobs["conv"].diff[...] = 1
    weight, bias = (torch.from_numpy(p.data.copy()) for p in net.params["conv"])
    functional.conv2d(x, weight, bias).sum().backward()
    assert_close(net.backward(start="conv")["data"], x.grad)


def test_a_loss_begins_with_its_weight():
    net = caffe.Net(TEXT + LOSS, caffe.TRAIN)
    x, y = torch.from_numpy(data(2, 3, 6, 6)).requires_grad_(), torch.tensor([1, 4])
    out = net.forward(data=x.detach().numpy(), label=y.numpy())
    expected = functional.cross_entropy(reference(net, x)["ip"], y)
    assert_close(out["loss"], expected.detach())
    (3 * expected).backward()
    assert_close(net.backward()["data"], x.grad)
    assert net.blob_loss_weights["loss"] == 3


COUNTING = """
import caffe


class Numbers(caffe.Layer):
    def setup(self, bottom, top): self.number = 0
    def reshape(self, bottom, top): top[0].reshape(2, 3)
    def forward(self, bottom, top):
        self.number += 1
        top[0].data[...] = self.number
    def backward(self, top, propagate_down, bottom): pass
"""
COUNTED = """
layer { name: "numbers" type: "Python" top: "numbers" python_param { module: "numbers_layer" layer: "Numbers" } }
layer { name: "images" type: "HDF5Data" top: "images" hdf5_data_param { source: "list.txt" batch_size: 2 } }
layer { name: "norm" type: "BatchNorm" bottom: "images" top: "norm" }
layer { name: "double" type: "Power" bottom: "norm" top: "norm" power_param { scale: 2 } }
layer { name: "sum" type: "Eltwise" bottom: "norm" bottom: "numbers" top: "sum" }
layer { name: "ip" type: "InnerProduct" bottom: "sum" top: "ip"
  inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
"""


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_backward_runs_on_the_batch_that_forward_read(phase, tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = data(8, 3)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["images"] = rows
    (tmp_path / "list.txt").write_text(f"{tmp_path / 'rows.h5'}\n")
    (tmp_path / "numbers_layer.py").write_text(COUNTING)
    (tmp_path / "a.prototxt").write_text(COUNTED.replace("list.txt", str(tmp_path / "list.txt")))
    net = caffe.Net(str(tmp_path / "a.prototxt"), phase, python_layers=True)
    for number in (1, 2, 3):
        net.forward()
        batch, total = rows[2 * number - 2 : 2 * number], net.blobs["sum"].data.copy()
        net.blobs["ip"].diff[...] = 1
        net.clear_param_diffs()
        net.backward()
        assert_close(net.blobs["images"].data, batch)
        assert_close(net.blobs["numbers"].data, np.full((2, 3), number))
        assert_close(net.params["ip"][0].diff, total.sum(0, keepdims=True))
    # Caffe's BatchNorm sums its factor up, one a forward, with 0.999 of what it was.
    assert_close(net.params["norm"][2].data, [1 + 0.999 + 0.999**2 if phase == caffe.TRAIN else 0])


@pytest.mark.parametrize(("forced", "want"), [(True, 1.0), (False, 0.0)])
def test_force_backward_calls_every_layer(tmp_path, monkeypatch, forced, want):
    """Caffe's Net::Init: without a loss no layer goes backward, unless force_backward says so; then all do."""
    (tmp_path / "own_layer.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    text = """
    layer { name: "own" type: "Python" top: "t" python_param { module: "own_layer" layer: "Own" } }
    input: "x" input_shape { dim: 1 dim: 2 }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y" param { lr_mult: 0 }
      inner_product_param { num_output: 1 bias_term: false } }
    """
    net = caffe.Net(("force_backward: true" if forced else "") + text, caffe.TRAIN)
    net.forward(x=np.array([[2, 3]]))
    net.blobs["y"].diff[...] = 5 if forced else 0
    net.backward()
    assert net.layers[list(net._layer_names).index("own")].blobs[0].diff[0] == want
    assert_close(net.params["ip"][0].diff, [[10 * want, 15 * want]])  # also with lr_mult: 0
