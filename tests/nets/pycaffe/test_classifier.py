"""caffe.Classifier and caffe.Detector: crops, and windows with their context."""

import numpy as np
import pytest
from support.pycaffe import image

from cuffi import CaffeValueError, caffe
from cuffi.caffe import io

NET = """
input: "data" input_shape { dim: 4 dim: 3 dim: 4 dim: 4 }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param { pool: AVE global_pooling: true } }
layer { name: "prob" type: "Flatten" bottom: "pool" top: "prob" }
"""


def test_the_classifier_averages_crops(tmp_path):
    pytest.importorskip("scipy")
    (tmp_path / "a.prototxt").write_text(NET)
    classifier = caffe.Classifier(
        str(tmp_path / "a.prototxt"), None, image_dims=(6, 8), mean=np.array([1.0, 2, 3]), raw_scale=10,
        channel_swap=(2, 1, 0),
    )  # fmt: skip
    images = [image(6, 8, 3), image(6, 8, 3) * 2]
    crops = io.oversample(images, (4, 4)).mean((1, 2))[:, ::-1] * 10 - [1, 2, 3]
    np.testing.assert_allclose(classifier.predict(images), crops.reshape(2, 10, 3).mean(1), rtol=1e-4)
    centre = [im[1:5, 2:6].mean((0, 1))[::-1] * 10 - [1, 2, 3] for im in images]
    np.testing.assert_allclose(classifier.predict(images, oversample=False), centre, rtol=1e-4)


def test_the_detector_crops_windows_with_context(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    (tmp_path / "a.prototxt").write_text(NET)
    values = np.random.default_rng(1).integers(0, 255, (20, 30, 3)).astype(np.uint8)
    Image.fromarray(values).save(tmp_path / "a.png")
    plain = caffe.Detector(str(tmp_path / "a.prototxt"), None)
    found = plain.detect_windows([(str(tmp_path / "a.png"), [(2, 3, 6, 7), (0, 0, 4, 4)])])
    np.testing.assert_allclose(found[0]["prediction"], values[2:6, 3:7].mean((0, 1)) / 255, rtol=1e-5)
    assert [one["window"] for one in found] == [(2, 3, 6, 7), (0, 0, 4, 4)]
    padded = caffe.Detector(
        str(tmp_path / "a.prototxt"), None, mean=np.array([0.5, 0.25, 0.125]), context_pad=1
    )
    im = values / np.float32(255)
    crop = padded.crop(im, (-8, -8, -2, -2))  # outside but for its context
    np.testing.assert_allclose(crop[0, 0], [0.5, 0.25, 0.125])
    with pytest.raises(CaffeValueError, match="window: expected"):
        padded.crop(im, (5, 5, 5, 9))
