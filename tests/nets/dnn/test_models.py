"""cv2.dnn's models on small nets, compared with OpenCV 4's own classes."""

import numpy as np
import pytest
import torch

from cuffi import caffe_net, dnn

INPUT = 'input: "data" input_shape { dim: 1 dim: 3 dim: 24 dim: 32 }\n'
MAPS = (
    INPUT
    + """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 5 kernel_size: 3 stride: 2 } }
"""
)
CLASSES = (
    MAPS
    + """
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: AVE global_pooling: true } }
"""
)
BOXES = (
    MAPS
    + """
layer { name: "loc" type: "Convolution" bottom: "conv" top: "loc" convolution_param { num_output: 8 kernel_size: 1 } }
layer { name: "loc_p" type: "Permute" bottom: "loc" top: "loc_p" permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "loc_f" type: "Flatten" bottom: "loc_p" top: "loc_f" }
layer { name: "conf" type: "Convolution" bottom: "conv" top: "conf" convolution_param { num_output: 6 kernel_size: 1 } }
layer { name: "conf_p" type: "Permute" bottom: "conf" top: "conf_p"
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "conf_r" type: "Reshape" bottom: "conf_p" top: "conf_r"
  reshape_param { shape { dim: 0 dim: -1 dim: 3 } } }
layer { name: "softmax" type: "Softmax" bottom: "conf_r" top: "softmax" softmax_param { axis: 2 } }
layer { name: "conf_f" type: "Flatten" bottom: "softmax" top: "conf_f" }
layer { name: "prior" type: "PriorBox" bottom: "conv" bottom: "data" top: "prior"
  prior_box_param { min_size: 6 aspect_ratio: 2 flip: false clip: false variance: 0.1 } }
layer { name: "found" type: "DetectionOutput" bottom: "loc_f" bottom: "conf_f" bottom: "prior" top: "found"
  detection_output_param { num_classes: 3 share_location: true background_label_id: 0 keep_top_k: 20
    confidence_threshold: 0.3 nms_param { nms_threshold: 0.45 top_k: 100 } code_type: CENTER_SIZE } }
"""
)
PARAMS = {"scale": 1 / 127.5, "size": (32, 24), "mean": (100, 110, 120), "swapRB": True, "crop": True}


@pytest.fixture
def picture():
    return np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)


@pytest.fixture
def both(tmp_path):
    """A function of a class's name and a net: OpenCV's model, and the toolkit's."""
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("this OpenCV has no Caffe importer to compare with")

    def make(name, text):
        (tmp_path / "net.prototxt").write_text(text)
        net = caffe_net(tmp_path / "net.prototxt", phase="TEST")
        torch.manual_seed(3)
        with torch.no_grad():
            for blob in net.parameters():
                blob.copy_(torch.randn(blob.shape) * 0.4)
        net.save_caffemodel(tmp_path / "net.caffemodel")
        files = str(tmp_path / "net.caffemodel"), str(tmp_path / "net.prototxt")
        return getattr(cv2.dnn, name)(*files), getattr(dnn, name)(*files)

    return make


def test_detections(both, picture):
    models = both("DetectionModel", BOXES)
    for model in models:
        model.setInputParams(**PARAMS)
    for threshold in (0.35, 0.6):
        theirs, ours = (model.detect(picture, threshold, 0.4) for model in models)
        assert len(ours[0]) > 2 and [a.dtype for a in ours] == [a.dtype for a in theirs]
        assert np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[2], theirs[2])
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-5)
    assert (ours[2][:, 2:] > 3).all() and len(np.unique(ours[2], axis=0)) > 2
    assert models[1].detect(picture, 2.0) == models[0].detect(picture, 2.0) == ((), (), ())


def test_classes(both, picture):
    models = both("ClassificationModel", CLASSES)
    for model in models:
        model.setInputSize((32, 24)).setInputMean((1, 2, 3)).setInputCrop(False)
        model.setInputScale((0.01, 0.02, 0.03))
    for softmax in (False, True):
        theirs, ours = (m.setEnableSoftmaxPostProcessing(softmax).classify(picture) for m in models)
        assert ours[0] == theirs[0] and ours[1] == pytest.approx(theirs[1], rel=1e-4)
        assert models[1].getEnableSoftmaxPostProcessing() is softmax


def test_maps(both, picture):
    for model in (models := both("KeypointsModel", MAPS)):
        model.setInputParams(**PARAMS)
    largest = models[1].predict(picture)[0][0, :-1].max((1, 2))
    threshold = float(np.sort(largest)[1:3].mean())
    theirs, ours = (model.estimate(picture, threshold) for model in models)
    assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs) and (ours == -1).all(1).sum() == 2
    for model in (models := both("SegmentationModel", MAPS)):
        model.setInputSize(32, 24).setInputScale(1 / 32).setInputMean((120, 128, 136)).setInputSwapRB(True)
    theirs, ours = (model.segment(picture) for model in models)
    assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs) and len(np.unique(ours)) > 2


def test_a_vector_of_points(both, picture):
    text = (
        MAPS.replace("num_output: 5", "num_output: 6")
        + """
layer { name: "r" type: "Reshape" bottom: "conv" top: "r" reshape_param { shape { dim: 0 dim: -1 dim: 2 } } }
"""
    )
    for model in (models := both("KeypointsModel", text)):
        model.setInputParams(**PARAMS)
    theirs, ours = (model.estimate(picture) for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_refusals(both, picture):
    cv2 = pytest.importorskip("cv2")
    _, model = both("DetectionModel", MAPS)
    with pytest.raises(cv2.error, match="size of the input is not known"):
        model.predict(picture)
    model.setInputParams(**PARAMS)
    with pytest.raises(cv2.error, match="expected a net that ends with DetectionOutput, got 'Convolution'"):
        model.detect(picture)
    two = MAPS + 'layer { name: "other" type: "Power" bottom: "data" top: "other" }'
    _, model = both("ClassificationModel", two)
    model.setInputParams(**PARAMS)
    with pytest.raises(cv2.error, match="expected a net with one output, got conv, other"):
        model.classify(picture)
