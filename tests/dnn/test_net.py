"""cv2.dnn's face, against cv2.dnn of OpenCV 4 on the same files; and where OpenCV 5 has no importer any more."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from layers import CaffeError, caffe_net, dnn

NET = """
name: "small"
input: "data" input_shape { dim: 1 dim: 3 dim: 20 dim: 24 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 stride: 2 weight_filler { type: "msra" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "dw" type: "Convolution" bottom: "conv1" top: "dw"
  convolution_param { num_output: 8 group: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "pool" type: "Pooling" bottom: "dw" top: "pool" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
layer { name: "side" type: "Convolution" bottom: "dw" top: "side"
  convolution_param { num_output: 2 kernel_size: 1 weight_filler { type: "msra" } } }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The paths of a prototxt and of weights in which no number is a filler's."""
    folder = tmp_path_factory.mktemp("a net")
    (folder / "deploy.prototxt").write_text(NET)
    net = caffe_net(folder / "deploy.prototxt")
    torch.manual_seed(2)
    with torch.no_grad():
        for blob in net.state_dict().values():
            blob.copy_(torch.rand_like(blob) + 0.1)
    net.save_caffemodel(folder / "weights.caffemodel")
    return str(folder / "deploy.prototxt"), str(folder / "weights.caffemodel")


@pytest.fixture
def image():
    return np.random.default_rng(0).random((1, 3, 20, 24), np.float32)


@pytest.fixture
def both(files):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("this OpenCV has no Caffe importer to compare with")
    return dnn.readNetFromCaffe(*files), cv2.dnn.readNetFromCaffe(*files)


def test_outputs_equal_opencv_s(both, image):
    """The last layer, a layer in the middle, several at once, with mean and scale."""

    def outputs(net, *names):
        # OpenCV scales its input again if another layer is asked for: each forward gets its own input.
        net.setInput(image * 255, "data", 1 / 127.5, (100, 110, 120))
        return net.forward(*names)

    for names in (("prob",), ("pool",), ("side",), ()):
        ours, theirs = (outputs(net, *names) for net in both)
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(*(outputs(net, ["fc", "side"]) for net in both), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_layer_that_a_later_one_writes_over(files, image):
    """`conv1` is its own output, not what ReLU makes of it in place."""
    net = dnn.readNetFromCaffe(*files)
    net.setInput(image)
    conv, relu = net.forward(["conv1", "relu1"])
    module = net.module
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(image), module.conv1.weight, module.conv1.bias, stride=2
    )
    np.testing.assert_allclose(conv, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert (relu >= 0).all() and not np.array_equal(conv, relu)


def test_names_and_numbers_equal_opencv_s(both):
    ours, theirs = both
    assert set(theirs.getLayerNames()) <= set(ours.getLayerNames())
    assert set(ours.getUnconnectedOutLayersNames()) == set(theirs.getUnconnectedOutLayersNames())
    for name in ours.getLayerNames():
        assert ours.getLayer(ours.getLayerId(name)).name == name
    assert list(ours.getUnconnectedOutLayers()) == [
        ours.getLayerId(n) for n in ours.getUnconnectedOutLayersNames()
    ]
    assert ours.getLayerId("none") == theirs.getLayerId("none") == -1
    assert ours.getLayer("fc").type == theirs.getLayer(theirs.getLayerId("fc")).type == "InnerProduct"
    np.testing.assert_array_equal(ours.getLayer("conv1").blobs[0].shape, (8, 3, 3, 3))
    inputs, outputs = ours.getLayerShapes((2, 3, 20, 24), ours.getLayerId("pool"))
    assert [list(s) for s in (*inputs, *outputs)] == [[2, 8, 9, 11], [2, 8, 4, 5]]
    assert not ours.empty() and dnn.Net().empty()
    assert ours.getPerfProfile()[0] >= 0


def test_bytes_and_either_order(files, image):
    from_paths = dnn.readNetFromCaffe(*files)
    data = [Path(file).read_bytes() for file in files]
    nets = [
        dnn.readNetFromCaffe(*data),
        dnn.readNetFromCaffe(*(np.frombuffer(d, np.uint8) for d in data)),
        dnn.readNet(files[1], files[0]),
        dnn.readNet(*files, "caffe"),
    ]
    for net in (from_paths, *nets):
        net.setInput(image)
    for net in nets:
        assert np.array_equal(net.forward(), from_paths.forward())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda net: net.forward("prop"), "no layer 'prop'; did you mean 'prob'"),
        (
            lambda net: net.setInput(np.zeros((1, 3, 20, 24)), "image"),
            "setInput: no input 'image'. There are: data",
        ),
        (lambda net: net.setInput("a string"), "setInput: blob: expected an array"),
        (lambda net: net.getLayer(99), "no layer 99: expected 1 to 9"),
        (lambda net: (net.setInput(np.zeros((1, 4, 20, 24))), net.forward()), "conv1"),
        (lambda net: dnn.Net().forward(), "the net is empty"),
        (lambda net: dnn.readNet("a.onnx"), "expected a .prototxt and a .caffemodel, got a.onnx"),
        (lambda net: dnn.readNetFromCaffe("none.prototxt"), "none.prototxt"),
    ],
)
def test_errors_are_opencv_s_kind(call, words, files):
    """cv2.error where cv2 is imported; else ours."""
    net = dnn.readNetFromCaffe(*files)
    kind = sys.modules["cv2"].error if "cv2" in sys.modules else CaffeError
    with pytest.raises(kind, match=words):
        call(net)


def test_without_an_input_the_input_is_named(files):
    net = dnn.readNetFromCaffe(*files)
    with pytest.raises(Exception, match="input 'data' is missing"):
        net.forward()


def test_targets_choose_the_device(files, recwarn):
    net = dnn.readNetFromCaffe(*files)
    net.setPreferableBackend(5)
    net.setPreferableTarget(6)
    assert net._device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.cuda.is_available() or "no GPU" in str(recwarn[0].message)
    net.setPreferableTarget(99)
    assert "setPreferableTarget(99): not known" in str(recwarn[-1].message)
