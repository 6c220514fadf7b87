"""cv2.dnn's face, against cv2.dnn of OpenCV 4 on the same files; and where OpenCV 5 has no importer any more."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cuffi import CaffeError, caffe_net, dnn

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
    """The paths of a prototxt and of weights in which no value comes from a filler."""
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


def test_forward_of_no_names_and_of_an_array(both, image):
    results = []
    for net in both:
        net.setInput(image)
        results.append((*net.forward([]), *net.forward(np.zeros((1, 4), np.float32))))
    assert len(results[0]) == 2
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_layer_that_a_later_one_writes_over(files, image):
    """`conv1` returns its own output, not that of the ReLU in place."""
    net = dnn.readNetFromCaffe(*files)
    net.setInput(image)
    conv, relu = net.forward(["conv1", "relu1"])
    module: Any = net.module
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(image), module.conv1.weight, module.conv1.bias, stride=2
    )
    np.testing.assert_allclose(conv, expected.detach().numpy(), rtol=1e-5, atol=1e-5)
    assert (relu >= 0).all() and not np.array_equal(conv, relu)


def test_names_and_numbers_equal_opencv_s(both):
    ours, theirs = both
    assert theirs.getLayerNames() == ours.getLayerNames()
    assert ours.getUnconnectedOutLayersNames() == theirs.getUnconnectedOutLayersNames()
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
        (lambda net: dnn.readNetFromCaffe(""), "readNetFromCaffe: prototxt: expected a file, got none"),
    ],
)
def test_errors_are_opencv_s_kind(call, words, files):
    """cv2.error if cv2 is imported; otherwise the toolkit's."""
    net = dnn.readNetFromCaffe(*files)
    kind = sys.modules["cv2"].error if "cv2" in sys.modules else CaffeError
    with pytest.raises(kind, match=words):
        call(net)


def test_weights_in_half_precision(both, files, image, tmp_path):
    """As OpenCV distributes res10_300x300_ssd_iter_140000_fp16.caffemodel."""
    import cv2

    cv2.dnn.shrinkCaffeModel(files[1], half := str(tmp_path / "half.caffemodel"))
    outputs = []
    for read in (dnn.readNetFromCaffe, cv2.dnn.readNetFromCaffe):
        net = read(files[0], half)
        net.setInput(image)
        outputs.append(net.forward("fc"))
    np.testing.assert_allclose(*outputs, rtol=1e-4)
    both[0].setInput(image)
    assert not np.array_equal(both[0].forward("fc"), outputs[0])  # it is other numbers than the file in float


def test_weights_of_another_net_are_refused(files, tmp_path):
    """Other shapes: each layer is named. Other names: both nets' layers are named. A missing layer is a warning."""
    kind = sys.modules["cv2"].error if "cv2" in sys.modules else CaffeError
    text = NET.replace("num_output: 8", "num_output: 4").replace("group: 8", "group: 4")
    with pytest.raises(
        kind, match=r"(?s)'conv1': blob 'weight' is \[8, 3, 3, 3\] in the file and \[4, .*'bn1': .*'fc': "
    ):
        dnn.readNetFromCaffe(text.encode(), files[1])
    (tmp_path / "other.prototxt").write_text(NET.replace('name: "', 'name: "x_'))
    caffe_net(tmp_path / "other.prototxt").save_caffemodel(tmp_path / "other.caffemodel")
    words = (
        "no weights for the layers conv1, bn1, .*; it has x_conv1, x_bn1, .*: it is the file of another net"
    )
    with pytest.raises(kind, match=words):
        dnn.readNetFromCaffe(files[0], tmp_path / "other.caffemodel")
    text = NET.replace('name: "fc"', 'name: "fc2"')
    with pytest.warns(UserWarning, match="no weights for the layers fc2; it has fc$"):
        dnn.readNetFromCaffe(text.encode(), files[1])


def test_without_an_input_the_input_is_named(files):
    net = dnn.readNetFromCaffe(*files)
    with pytest.raises(Exception, match=r"input 'data' is missing.*net\.setInput\(blob\) gives an input"):
        net.forward()


def test_targets_choose_the_device(files, recwarn):
    net = dnn.readNetFromCaffe(*files)
    net.setPreferableBackend(5)
    net.setPreferableTarget(6)
    assert net._device.type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert torch.cuda.is_available() or "no GPU" in str(recwarn[0].message)
    net.setPreferableTarget(99)
    assert "setPreferableTarget(99): not known" in str(recwarn[-1].message)


def test_blobs_may_be_set(both, image):
    """A missing bias becomes 0, as colorization's scripts need."""
    outputs = []
    for net in both:
        layer = net.getLayer(net.getLayerId("side"))
        layer.blobs = [np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8, 1, 1)]
        net.setParam(net.getLayerId("conv1"), 0, np.full((8, 3, 3, 3), 0.25, np.float32))
        assert (net.getParam(net.getLayerId("conv1"), 0) == 0.25).all()
        net.setInput(image)
        outputs.append(net.forward("side"))
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-4)


def test_fusion_computes_a_norm_in_its_convolution(files, image, monkeypatch):
    net, norms, own = dnn.readNetFromCaffe(*files), [], torch.nn.functional.batch_norm
    monkeypatch.setattr(torch.nn.functional, "batch_norm", lambda *given: norms.append(1) or own(*given))
    outputs = []
    for fusion in (None, False, True):
        if fusion is not None:
            net.enableFusion(fusion)
        net.setInput(image)
        outputs.append(net.forward())
        assert bool(norms) == (fusion is False)
        norms.clear()
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-5)
    assert np.array_equal(outputs[0], outputs[2])
    dnn.Net().enableFusion(True)  # an empty net takes it, too


def test_blobs_have_to_fit(files):
    """A blob may have any shape with the right count: a script passes [1, 313] to a Scale of 313 channels."""
    net = dnn.readNetFromCaffe(*files)
    layer = net.getLayer(net.getLayerId("scale1"))
    assert (layer.outputNameToIndex("conv1"), layer.outputNameToIndex("none")) == (0, -1)
    layer.blobs = [np.full((1, 8), 2.606)]
    assert (layer.blobs[0] == np.float32(2.606)).all() and layer.blobs[0].shape == (8, 1)
    assert not net.getParam("scale1", 1).any()
    with pytest.raises(Exception, match=r"'fc' \(InnerProduct\): blobs: expected .*, got \[\[3\]\]"):
        net.getLayer("fc").blobs = [np.zeros(3)]
    with pytest.raises(Exception, match="getParam: 'fc' has 2 blobs"):
        net.getParam("fc", 2)


SSD = """
input: "loc" input_shape { dim: BATCH dim: 16 }
input: "conf" input_shape { dim: BATCH dim: 12 }
input: "prior" input_shape { dim: 1 dim: 2 dim: 16 }
layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior" top: "out"
  detection_output_param { num_classes: 3 share_location: true background_label_id: 0 keep_top_k: 5
    nms_param { nms_threshold: 0.5 top_k: 10 } code_type: CENTER_SIZE confidence_threshold: LEAST MORE } }
"""


@pytest.mark.parametrize(
    ("batch", "least", "more"), [(1, 0.1, ""), (1, 0.1, "clip: 1"), (1, 0.6, ""), (1, 2.0, ""), (2, 2.0, "")]
)
def test_detections_have_opencv_s_shape(batch, least, more):
    """keep_top_k rows for each image, by their scores, zeros at the end; no row of -1 where nothing is found.

    clip is a field of OpenCV's own, in the prototxt of its face detector.
    """
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("this OpenCV has no Caffe importer to compare with")
    text = SSD.replace("BATCH", str(batch)).replace("LEAST", str(least)).replace("MORE", more).encode()
    random = np.random.default_rng(0)
    loc, conf = random.random((batch, 16), np.float32) * 6 - 3, random.random((batch, 12), np.float32)
    corners = np.sort(random.random((4, 2, 2), np.float32), 1).reshape(16)
    prior = np.stack([corners, np.tile(np.array([0.1, 0.1, 0.2, 0.2], np.float32), 4)])[None]
    outputs = []
    for net in (dnn.readNetFromCaffe(text), cv2.dnn.readNetFromCaffe(np.frombuffer(text, np.uint8))):
        for name, value in (("loc", loc), ("conf", conf), ("prior", prior)):
            net.setInput(value, name)
        outputs.append(net.forward())
    assert outputs[0].shape == outputs[1].shape == (1, 1, 5 * batch, 7)
    assert outputs[0][..., 2].any() == (least < 1)
    assert least > 0.5 or (outputs[0][..., 3:].min() < 0) == (not more)
    np.testing.assert_allclose(*outputs, atol=1e-5)


def test_silence_is_what_it_reads(image):
    """The last layer of colorization's net is a Silence: forward() returns its bottom."""
    text = NET + 'layer { name: "quiet" type: "Silence" bottom: "side" }'
    net = dnn.readNetFromCaffe(text.encode())
    net.setInput(image)
    side, quiet = net.forward(["side", "quiet"])
    assert net.getUnconnectedOutLayersNames() == ("prob", "quiet")
    assert np.array_equal(net.forward(), side) and np.array_equal(quiet, side)


def same_shapes(ours, theirs):
    assert [[list(map(int, s)) for s in shapes] for shapes in ours] == [
        [list(map(int, s)) for s in shapes] for shapes in theirs
    ]


def test_sizes_equal_opencv_s(both):
    ours, theirs = both
    for shape in ((1, 3, 20, 24), (2, 3, 20, 24)):
        mine, other = (net.getLayersShapes(shape) for net in both)
        np.testing.assert_array_equal(mine[0], other[0])
        same_shapes(mine[1], other[1])
        same_shapes(mine[2], other[2])
        assert ours.getMemoryConsumption(shape) == theirs.getMemoryConsumption(shape)
        for number in range(1, len(theirs.getLayerNames()) + 1):
            assert ours.getMemoryConsumption(number, shape) == theirs.getMemoryConsumption(number, shape)


def test_the_inputs_layer_and_the_shapes_of_blobs_equal_opencv_s(both):
    for net in both:
        first = net.getLayer(0)
        assert (first.name, first.type, list(first.blobs)) == ("_input", "", [])
        assert first.outputNameToIndex("im_info") == -1 and first.outputNameToIndex("data") == 0
    for name in both[0].getLayerNames():
        shapes = [[blob.shape for blob in net.getLayer(net.getLayerId(name)).blobs] for net in both]
        assert shapes[0] == shapes[1], name


def test_inputs_with_other_names(both, image):
    found = []
    for net in both:
        net.setInputsNames(["picture"])
        net.setInputShape("picture", image.shape)
        net.setInput(image, "picture")
        found.append(net.forward())
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)


def test_the_forms_of_read_net(files, image):
    text, weights = files
    stored = [np.fromfile(file, np.uint8) for file in (weights, text)]
    nets = [
        dnn.readNet(weights, text, None),
        dnn.readNet(text, weights),
        dnn.readNet("caffe", *stored),
        dnn.readNet("Caffe", stored[0].tobytes(), stored[1].tobytes()),
    ]
    for net in nets:
        net.setInput(image)
    for net in nets[1:]:
        np.testing.assert_array_equal(net.forward(), nets[0].forward())


def test_the_graph_as_a_file(files, tmp_path):
    net = dnn.readNetFromCaffe(*files)
    net.dumpToFile(tmp_path / "net.dot")
    text = (tmp_path / "net.dot").read_text()
    assert text.startswith("digraph G {") and '"_input" -> "conv1"' in text
    assert all(f'"{name}" [' in text for name in net.getLayerNames())
