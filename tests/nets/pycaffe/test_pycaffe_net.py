"""caffe.Net: what it is, its parameters, a user's Python layers, a GPU."""

import numpy as np
import pytest
from support.pycaffe import LOSS, OWN, TEXT, assert_close, data

from cuffi import CaffeValueError, caffe


@pytest.mark.parametrize("phase", [2, -1])
def test_another_phase_is_refused(phase):
    with pytest.raises(
        RuntimeError, match=rf"phase: expected caffe.TRAIN \(0\) or caffe.TEST \(1\), got {phase}"
    ):
        caffe.Net('input: "x" input_shape { dim: 1 } layer { type: "ReLU" }', phase)


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
