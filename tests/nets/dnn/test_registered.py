"""A script's own layers, compared with cv2.dnn using the same class."""

import numpy as np
import pytest

from cuffi import CaffeTypeError, dnn

NET = """
input: "data" input_shape { dim: 1 dim: 2 dim: 8 dim: 8 }
layer { name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "cut" type: "TYPE" bottom: "data" bottom: "pool" top: "cut" }
layer { name: "twice" type: "Power" bottom: "cut" top: "twice" power_param { scale: 2 } }
"""


class Centre:
    """Crops the first input to the size of the second, around its centre."""

    def __init__(self, params, blobs):
        assert params == {} and len(blobs) == 0
        self.y = self.x = slice(0)

    def getMemoryShapes(self, inputs):
        (n, c, *_), (_, _, h, w) = inputs
        top, left = (inputs[0][2] - h) // 2, (inputs[0][3] - w) // 2
        self.y, self.x = slice(top, top + h), slice(left, left + w)
        return [[n, c, h, w]]

    def forward(self, inputs):
        return [inputs[0][:, :, self.y, self.x]]


@pytest.fixture
def image():
    return np.random.default_rng(0).random((1, 2, 8, 8), np.float32)


@pytest.fixture
def register():
    """Registers a class, and unregisters it at the end."""
    done = []

    def call(name, kind):
        dnn.registerLayer(name, kind)
        done.append(name)

    yield call
    for name in done:
        dnn.unregisterLayer(name)


def output(net, image):
    net.setInput(image)
    return net.forward()


def test_a_registered_class_computes_in_place_of_the_known_layer(register, image):
    """Registered before the net is read, or after; and unregistered."""
    text = NET.replace("TYPE", "Crop").encode()
    before = dnn.readNetFromCaffe(text)
    assert np.array_equal(output(before, image), 2 * image[:, :, :4, :4])
    register("Crop", Centre)
    for net in (before, dnn.readNetFromCaffe(text)):
        assert np.array_equal(output(net, image), 2 * image[:, :, 2:6, 2:6])
        larger = np.tile(image, (1, 1, 2, 2))
        assert np.array_equal(output(net, larger), 2 * larger[:, :, 4:12, 4:12])
    dnn.unregisterLayer("Crop")
    assert np.array_equal(output(before, image), 2 * image[:, :, :4, :4])


def test_a_type_that_nothing_else_computes(register, image):
    text = NET.replace("TYPE", "MyCut").encode()
    with pytest.raises(Exception, match="MyCut"):
        dnn.readNetFromCaffe(text)
    register("MyCut", Centre)
    assert np.array_equal(output(dnn.readNetFromCaffe(text), image), 2 * image[:, :, 2:6, 2:6])


def test_opencv_gives_the_same(register, image):
    cv2 = pytest.importorskip("cv2")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):
        pytest.skip("this OpenCV has no Caffe importer to compare with")
    text = NET.replace("TYPE", "Crop").encode()
    register("Crop", Centre)
    cv2.dnn_registerLayer("Crop", Centre)
    try:
        theirs = output(cv2.dnn.readNetFromCaffe(np.frombuffer(text, np.uint8)), image)
    finally:
        cv2.dnn_unregisterLayer("Crop")
    assert np.array_equal(output(dnn.readNetFromCaffe(text), image), theirs)


def test_errors_name_the_layer_and_the_class(register, image):
    class Wrong(Centre):
        def forward(self, inputs):
            return [inputs[0], 1 / 0]

    register("Crop", Wrong)
    net = dnn.readNetFromCaffe(NET.replace("TYPE", "Crop").encode())
    with pytest.raises(Exception, match="cut: Wrong, as registered: ZeroDivisionError"):
        output(net, image)
    with pytest.raises(CaffeTypeError, match="getMemoryShapes and forward"):
        dnn.registerLayer("Crop", object)
