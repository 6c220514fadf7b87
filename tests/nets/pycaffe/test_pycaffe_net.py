"""caffe.Net: arrays are the net's memory, ranges of layers, diffs, parameters."""

import numpy as np
import pytest
import torch
from support.pycaffe import TEXT, assert_close, data, reference
from support.typed import not_none
from torch.nn import functional

from cuffi import CaffeValueError, caffe

LOSS = """
layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 2 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" loss_weight: 3 }
"""


def test_arguments_are_written_to_the_inputs_and_checked(net):
    x = data(2, 3, 6, 6)
    assert_close(net.forward(data=x)["prob"], reference(net, torch.from_numpy(x))["prob"])
    for given, said in (
        ({"images": x}, "inputs: expected data, got images"),
        ({"data": x[:1]}, r"'data': expected a batch of 2, got \[1, 3, 6, 6\]; net.blobs\['data'\].reshape"),
        ({"data": x[..., :5]}, "'data': could not broadcast"),
    ):
        with pytest.raises(CaffeValueError, match=said):
            net.forward(**given)


@pytest.mark.parametrize("phase", [2, -1])
def test_another_phase_is_refused(phase):
    with pytest.raises(
        RuntimeError, match=rf"phase: expected caffe.TRAIN \(0\) or caffe.TEST \(1\), got {phase}"
    ):
        caffe.Net('input: "x" input_shape { dim: 1 } layer { type: "ReLU" }', phase)


def test_a_range_of_layers_goes_on_from_the_blobs(net):
    x = data(2, 3, 6, 6)
    assert list(net.forward(data=x, end="pool")) == ["pool"]
    net.blobs["pool"].data[...] = 1
    out = net.forward(start="ip")["prob"]
    weight, bias = (p.data for p in net.params["ip"])
    assert_close(out, torch.from_numpy(weight.sum(1) + bias).softmax(0).expand(2, 5))
    with pytest.raises(CaffeValueError, match="end: no layer 'pol'; did you mean 'pool'"):
        net.forward(end="pol")


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


def test_the_net_says_what_it_has(net):
    assert list(net._layer_names) == ["data", "conv", "relu", "pool", "ip", "prob"]
    assert [layer.type for layer in net.layers] == [
        "Input", "Convolution", "ReLU", "Pooling", "InnerProduct", "Softmax",
    ]  # fmt: skip
    assert [len(layer.blobs) for layer in net.layers] == [0, 2, 0, 0, 2, 0]
    assert (net.inputs, list(net.blobs), list(net.params)) == (
        ["data"], ["data", "conv", "pool", "ip", "prob"], ["conv", "ip"],
    )  # fmt: skip
    assert (net.top_names["relu"], net.bottom_names["ip"]) == (["conv"], ["pool"])
    assert net.layer_dict["ip"].type == "InnerProduct"
    assert type(net.params["ip"]) is caffe.BlobVec
    net.set_raw_scale("data", 2)
    assert_close(net.preprocess("data", np.ones((6, 6, 3))), np.full((3, 6, 6), 2))
    net.set_phase_test()
    with pytest.raises(CaffeValueError, match=r"the net was built for TEST: caffe.Net\(..., caffe.TRAIN\)"):
        net.set_phase_train()
    with pytest.raises(AttributeError, match=r"caffe\.Net has no 'forwards' here; did you mean 'forward'"):
        net.forwards()


def test_any_number_of_items_runs_in_batches(net):
    x = data(5, 3, 6, 6)
    expected = reference(net, torch.from_numpy(x))
    out = net.forward_all(data=x, blobs=["ip"])
    assert_close(out["ip"], expected["ip"])
    made, found = net.forward_backward_all(data=x, prob=np.ones((5, 5), np.float32), diffs=["ip"])
    assert_close(made["prob"], expected["prob"])
    assert found["data"].shape == (5, 3, 6, 6)


def test_dummy_data_is_filled_and_data_without_files_is_what_was_written():
    text = """
    layer { name: "d" type: "DummyData" top: "d" dummy_data_param { shape { dim: 2 dim: 3 } data_filler { value: 4 } } }
    layer { name: "r" type: "DummyData" top: "r"
      dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: "gaussian" } } }
    layer { name: "l" type: "Data" top: "l"
      data_param { source: "absent" batch_size: 2 backend: LMDB } transform_param { crop_size: 1 } }
    layer { name: "f" type: "Flatten" bottom: "l" top: "f" }
    layer { name: "sum" type: "Eltwise" bottom: "d" bottom: "r" bottom: "f" top: "sum" }
    """
    net = caffe.Net(text, caffe.TEST)
    with pytest.raises(CaffeValueError, match="absent"):
        net.forward()
    net.blobs["l"].data[...] = 100
    first = net.forward()["sum"].copy()
    assert_close(first - net.blobs["r"].data, np.full((2, 3), 104))
    assert (net.forward()["sum"] != first).all()


def test_a_python_layer_among_the_layers_is_the_user_s_object(tmp_path):
    (tmp_path / "rows.py").write_text(
        "import caffe\n\n\nclass Rows(caffe.Layer):\n"
        "    def setup(self, bottom, top): top[0].reshape(1, 2)\n"
        "    def reshape(self, bottom, top): pass\n"
        "    def forward(self, bottom, top): top[0].data[...] = self.value\n"
        "    def backward(self, top, propagate_down, bottom): pass\n"
    )
    layer = 'layer { name: "d" type: "Python" top: "d" python_param { module: "rows" layer: "Rows" } }'
    (tmp_path / "a.prototxt").write_text(layer)
    net = caffe.Net(str(tmp_path / "a.prototxt"), caffe.TRAIN, python_layers=True)
    net.layers[0].value = 6
    assert (net.forward()["d"].tolist(), net.layers[0].type) == ([[6, 6]], "Python")


def test_net_surgery_between_two_forwards():
    """A write to a parameter's array applies at once: nothing derived from the old values is used again."""
    text = TEXT.replace(
        'layer { name: "relu"',
        'layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" } layer { name: "relu"',
    )
    net = caffe.Net(text, caffe.TEST)
    x = data(2, 3, 6, 6)
    net.params["bn"][2].data[...] = 1
    net.params["bn"][1].data[...] = 4
    before = net.forward(data=x)["prob"].copy()
    for name, number, factor in (("conv", 0, 3), ("bn", 1, 0.25), ("ip", 1, 2)):
        net.params[name][number].data[...] *= factor
    after = net.forward(data=x)["prob"].copy()
    fresh = caffe.Net(text, caffe.TEST)
    for name, params in net.params.items():
        for mine, other in zip(fresh.params[name], params, strict=True):
            mine.data[...] = other.data
    np.testing.assert_allclose(after, fresh.forward(data=x)["prob"], rtol=1e-6)
    assert not np.allclose(before, after)


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


PRODUCT = ' layer { name: "scale" type: "Scale" bottom: "x" top: "y" scale_param { axis: 0 num_axes: 0 } }'


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_a_layer_that_overwrites_an_input_has_read_what_was_written(phase):
    text = 'input: "x" input_shape { dim: 3 } '
    text += 'layer { name: "p" type: "Power" bottom: "x" top: "x" power_param { power: 2 } }'
    net = caffe.Net("force_backward: true " + text if phase == caffe.TRAIN else text + PRODUCT, phase)
    net.blobs["x"].data[...] = [1, 2, 3]
    out = net.forward()
    assert_close(net.blobs["x"].data, [1, 4, 9])
    net.blobs[next(iter(out))].diff[...] = 1
    net.backward()
    if phase == caffe.TRAIN:
        assert_close(net.blobs["x"].diff, [2, 4, 6])
    else:
        assert_close(net.params["scale"][0].diff, [14])


OWN = """
import caffe
class Own(caffe.Layer):
    def setup(self, bottom, top):
        self.blobs.add_blob(1)
    def reshape(self, bottom, top):
        top[0].reshape(1)
    def forward(self, bottom, top):
        pass
    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] = 1 + top[0].diff[0]
"""


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


def test_a_module_beside_the_prototxt_runs_only_after_consent(tmp_path, monkeypatch):
    """As with caffe_net and make net; what `import` finds on sys.path runs, as in pycaffe."""
    (tmp_path / "hostile.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n" + OWN)
    layer = 'layer { name: "p" type: "Python" top: "p" python_param { module: "hostile" layer: "Own" } }'
    (tmp_path / "a.prototxt").write_text(layer)
    (tmp_path / "s.prototxt").write_text('net: "a.prototxt" base_lr: 1 lr_policy: "fixed" max_iter: 1')
    monkeypatch.chdir(tmp_path)
    for door in (
        lambda: caffe.Net("a.prototxt", caffe.TEST),
        lambda: caffe.Classifier("a.prototxt", None),
        lambda: caffe.get_solver("s.prototxt"),
    ):
        with pytest.raises(CaffeValueError, match=r"runs Python code, hostile.Own. .*python_layers=True"):
            door()
    assert not (tmp_path / "ran").exists()
    assert caffe.get_solver("s.prototxt", python_layers=True).net.layers[0].blobs[0].count == 1
    (tmp_path / "ran").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    assert caffe.Net("a.prototxt", caffe.TEST).layers[0].type == "Python" and (tmp_path / "ran").exists()


@pytest.mark.gpu
def test_on_a_gpu_arrays_are_copies_that_go_back():
    """Written before a call, read after it; compared with a net on the processor with the same parameters."""
    nets = [caffe.Net(TEXT + LOSS, caffe.TRAIN) for _ in range(2)]
    weights = [[p.data.copy() for p in params] for params in nets[0].params.values()]
    x, y = data(2, 3, 6, 6), np.array([1, 4], np.float32)
    found = []
    for net, set_mode in zip(nets, (caffe.set_mode_cpu, caffe.set_mode_gpu), strict=True):
        set_mode()
        try:
            for params, own in zip(net.params.values(), weights, strict=True):
                for param, value in zip(params, own, strict=True):
                    param.data[...] = 2 * value
            held = net.blobs["data"].data
            held[...], net.blobs["label"].data[...] = x, y
            net.forward()
            net.clear_param_diffs()
            net.backward()
            first = [net.blobs[name].data.copy() for name in net.blobs]
            diffs = [net.blobs[name].diff.copy() for name in ("data", "conv", "ip")]
            diffs += [p.diff.copy() for params in net.params.values() for p in params]
            net.params["conv"][0].data[...] *= 0.5
            held[...] += 1
            net.blobs["data"].reshape(1, 3, 6, 6)
            net.blobs["label"].reshape(1)
            net.forward()
            found.append([*first, *diffs, *(net.blobs[name].data.copy() for name in net.blobs)])
            assert net.module.layers["conv"].weight.device.type == ("cpu" if net is nets[0] else "cuda")
        finally:
            caffe.set_mode_cpu()
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-3, atol=1e-4)  # TF32 may be on


def test_hdf5_weights_and_numbers_of_blobs(net, tmp_path):
    pytest.importorskip("h5py")
    net.save_hdf5(str(tmp_path / "a.caffemodel.h5"))
    other = caffe.Net(TEXT, caffe.TEST)
    other.load_hdf5(str(tmp_path / "a.caffemodel.h5"))
    x = data(2, 3, 6, 6)
    assert_close(other.forward(data=x)["prob"], net.forward(data=x)["prob"])
    names, layers = list(net._blob_names), list(net._layer_names)
    assert [names[i] for i in net._top_ids(layers.index("ip"))] == ["ip"]
    assert [names[i] for i in net._bottom_ids(layers.index("ip"))] == ["pool"]
    assert ([names[i] for i in net._inputs], [names[i] for i in net._outputs]) == (net.inputs, net.outputs)
    assert len(net._blobs) == len(net._blob_loss_weights) == len(names)
