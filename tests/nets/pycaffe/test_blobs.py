"""caffe.Net's blobs and parameters: arrays are the net's memory."""

from typing import Any

import pytest
import torch
from support.pycaffe import TEXT, assert_close, data, reference

from cuffi import CaffeTypeError, CaffeValueError, caffe


def test_what_is_written_to_a_blob_is_what_the_net_reads(net):
    held, x = net.blobs["data"].data, data(2, 3, 6, 6)
    held[...] = x
    out = net.forward()
    expected = reference(net, torch.from_numpy(x))
    assert list(out) == net.outputs == ["prob"]
    for name in ("conv", "pool", "ip", "prob"):
        assert_close(net.blobs[name].data, expected[name])
    held *= 2
    kept = net.blobs["ip"].data
    assert_close(net.forward(blobs=["ip"])["ip"], reference(net, torch.from_numpy(2 * x))["ip"])
    assert kept is net.blobs["ip"].data  # Caffe's memory stays, too
    net.blobs["data"].data += 1
    assert_close(held, 2 * x + 1)


def test_a_reshaped_input_reshapes_all(net):
    net.blobs["data"].reshape(1, 3, 6, 6)
    assert net.blobs["ip"].data.shape == (1, 5)
    net.blobs["data"].reshape(5, 3, 6, 6)
    net.reshape()
    x = data(5, 3, 6, 6)
    net.blobs["data"].data[...] = x
    assert_close(net.forward()["prob"], reference(net, torch.from_numpy(x))["prob"])
    blob = net.blobs["data"]
    assert (blob.num, blob.channels, blob.height, blob.width, blob.count) == (5, 3, 6, 6, 540)
    for wrong, kind in (((-1, 3), CaffeValueError), (("a",), CaffeTypeError), ((1 << 40,), CaffeValueError)):
        with pytest.raises(kind, match=r"blob\.reshape"):
            blob.reshape(*wrong)
    with pytest.raises(CaffeTypeError, match=r"blob\.data cannot be replaced"):
        blob.data = x


STATEFUL = """
input: "data" input_shape { dim: 4 dim: 3 }
layer { name: "n" type: "BatchNorm" bottom: "data" top: "n" }
layer { name: "drop" type: "Dropout" bottom: "n" top: "drop" }
layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip" inner_product_param { num_output: 5 } }
"""


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_a_reshape_after_a_call_reshapes_all_and_computes_nothing(phase):
    net = caffe.Net(STATEFUL, phase)
    net.forward(data=data(4, 3))
    before, random = [p.data.copy() for p in net.params["n"]], torch.get_rng_state()
    for items in (7, 2):
        net.blobs["data"].reshape(items, 3)
        net.reshape()
        assert [net.blobs[name].data.shape for name in ("n", "ip")] == [(items, 3), (items, 5)]
    for one, other in zip(before, net.params["n"], strict=True):
        assert (one == other.data).all()
    assert torch.equal(random, torch.get_rng_state())
    assert net.forward(data=data(2, 3))["ip"].shape == (2, 5)
    if phase == caffe.TRAIN:
        assert not (before[0] == net.params["n"][0].data).all()


RECURRENT = """
input: "x" input_shape { dim: 3 dim: 2 dim: 4 } input: "cont" input_shape { dim: 3 dim: 2 }
layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param { num_output: 3
  weight_filler { type: "gaussian" std: 1 } } }
"""


def test_backward_leaves_the_state_of_a_sequence():
    net, cont, outs = caffe.Net(RECURRENT, caffe.TEST), data(3, 2) * 0 + 1, []
    for goes_back in (False, True):
        layer: Any = net.module.get_layer("l")
        layer.reset()
        first = net.forward(x=data(3, 2, 4), cont=cont)["h"].copy()
        if goes_back:
            net.backward(h=first * 0 + 1)
        outs.append(net.forward(x=data(3, 2, 4) / 2, cont=cont)["h"].copy())
    assert (outs[0] == outs[1]).all() and not (outs[0] == first).all()


def test_a_second_backward_is_of_the_same_forward():
    """Caffe keeps the mask of a Dropout and the statistics of a batch."""
    net = caffe.Net("force_backward: true" + STATEFUL, caffe.TRAIN)
    net.params["ip"][0].data[...] = data(5, 3)
    net.forward(data=data(4, 3))
    statistics = [p.data.copy() for p in net.params["n"]]
    first = net.backward(ip=data(4, 5))["data"].copy()
    random = torch.get_rng_state()
    assert_close(net.backward(ip=2 * data(4, 5))["data"], 2 * first)
    assert first.any() and torch.equal(random, torch.get_rng_state())
    for one, other in zip(statistics, net.params["n"], strict=True):
        assert (one == other.data).all()


def test_a_layer_s_list_of_blobs_cannot_be_replaced(net):
    other = caffe.Net(TEXT, caffe.TEST)
    with pytest.raises(AttributeError):
        net.layers[1].blobs = other.layers[1].blobs
    with pytest.raises(AttributeError):
        net.layers[1].type = "ReLU"


def test_parameters_are_the_net_s_memory_and_go_to_files(net, tmp_path):
    net.params["conv"][0].data[...] = 0
    net.params["conv"][1].data.flat = [1, 2, 3, 4]
    assert_close(net.forward(data=data(2, 3, 6, 6), end="conv")["conv"][0, :, 0, 0], [1, 2, 3, 4])
    net.save(str(tmp_path / "a.caffemodel"))
    other = caffe.Net(TEXT, str(tmp_path / "a.caffemodel"), caffe.TEST)
    assert_close(other.params["conv"][1].data, [1, 2, 3, 4])
    other.params["ip"][0].data[...] = 7
    net.share_with(other)
    other.params["ip"][0].data[0, 0] = 8
    assert net.params["ip"][0].data[0, 0] == 8
    other.copy_from(str(tmp_path / "a.caffemodel"))
    assert other.params["ip"][0].data.max() < 7


def test_an_assigned_blob_is_shared(net, tmp_path):
    """pycaffe's vectors hold shared pointers: forward, save and the other net all use the one blob."""
    other = caffe.Net(TEXT, caffe.TEST)
    for layer in ("conv", "ip"):
        other.params[layer][0].data[...] = data(*other.params[layer][0].data.shape)
    place = [layer.type for layer in net.layers].index("InnerProduct")
    net.params["conv"][0] = other.params["conv"][0]
    net.layers[place].blobs[0:1] = [other.layers[place].blobs[0]]
    assert net.params["conv"][0] is other.params["conv"][0]
    other.params["ip"][0].data[0] *= 3  # after the assignment
    x = data(2, 3, 6, 6)
    assert_close(net.forward(data=x)["prob"], reference(other, torch.from_numpy(x))["prob"])
    net.save(str(tmp_path / "a.caffemodel"))
    saved = caffe.Net(TEXT, str(tmp_path / "a.caffemodel"), caffe.TEST)
    assert_close(saved.params["ip"][0].data, other.params["ip"][0].data)


def test_what_the_lists_and_dicts_refuse(net):
    blobs, layers = net.params["ip"], net.layers
    empty = next(layer.blobs for layer in layers if not len(layer.blobs))
    for call, kind, words in (
        (
            lambda: blobs.__setitem__(0, blobs[0].data),
            CaffeTypeError,
            r"net\.params\['ip'\]\[0\]: expected a blob",
        ),
        (lambda: blobs.__setitem__(0, blobs[1]), CaffeValueError, "blob 0 has the shape"),
        (lambda: blobs.__setitem__(0, net.blobs["ip"]), RuntimeError, "Write its values"),
        (lambda: blobs.append(blobs[0]), RuntimeError, "computes with 2 blobs"),
        (lambda: blobs.__delitem__(1), RuntimeError, "computes with 2 blobs"),
        (lambda: empty.add_blob(1), RuntimeError, "computes with 0 blobs"),
        (lambda: layers.__setitem__(0, layers[1]), RuntimeError, "Share its blobs"),
        (lambda: setattr(net, "blobs", {}), AttributeError, ""),
    ):
        with pytest.raises(kind, match=words):
            call()
    x = data(2, 3, 6, 6)
    want = net.forward(data=x)["prob"].copy()
    with pytest.warns(UserWarning, match="only the dict changes"):
        net.blobs["ip"] = net.blobs["data"]
    with pytest.warns(UserWarning, match="only the dict changes"):
        del net.params["ip"]
    assert_close(net.forward(data=x)["prob"], want)
    net.outputs.append("pool")  # pycaffe's forward reads its list
    assert set(net.forward(data=x)) == {"prob", "pool"}
