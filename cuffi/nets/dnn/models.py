"""cv2.dnn's models for Caffe's nets: a picture in, classes, boxes, points or a mask out, as OpenCV's own classes do."""

from __future__ import annotations

import os

import numpy as np

from .opencv_net import Net, readNet, wrong

CAFFE = (".caffemodel", ".prototxt")


def is_of_caffe(*given) -> bool:
    """Is one of these a Net of the toolkit, or the path of a Caffe file?"""
    files = [os.fspath(value).lower() for value in given if isinstance(value, (str, os.PathLike))]
    return any(isinstance(value, Net) for value in given) or any(file.endswith(CAFFE) for file in files)


class Model:
    """cv2.dnn.Model: a net, and how a picture becomes its input.

    Args:
        model: a Net of readNetFromCaffe, or the path of a caffemodel or a prototxt.
        config: the path of the other file.

    Raises:
        cv2.error: a file is missing or damaged, or has unknown layers.
    """

    def __init__(self, model, config=""):
        self._net = model if isinstance(model, Net) else readNet(model, config)
        self._size: tuple[int, ...] = ()
        self._scale, self._mean = 1.0, (0, 0, 0, 0)
        self._swap, self._crop = False, False
        self._outputs = self._net.getUnconnectedOutLayersNames()

    def setInputSize(self, *size):
        """(width, height) that a picture is resized to: a pair, or two numbers."""
        self._size = tuple(int(n) for n in (size[0] if len(size) == 1 else size))
        return self

    def setInputMean(self, mean):
        """The value subtracted from the channels."""
        self._mean = mean
        return self

    def setInputScale(self, scale):
        """The factor of the difference: a number, or one for each channel."""
        self._scale = scale
        return self

    def setInputCrop(self, crop: bool):
        """Is a picture cut to the shape of the input?"""
        self._crop = bool(crop)
        return self

    def setInputSwapRB(self, swapRB: bool):
        """Do the first and the third channel change places?"""
        self._swap = bool(swapRB)
        return self

    def setInputParams(self, scale=1.0, size=(0, 0), mean=(0, 0, 0, 0), swapRB=False, crop=False) -> None:
        """Sets all of these at once."""
        self.setInputScale(scale).setInputSize(size).setInputMean(mean)
        self.setInputSwapRB(swapRB).setInputCrop(crop)

    def setOutputNames(self, outNames) -> None:
        """The layers whose outputs `predict` returns."""
        self._outputs = tuple(outNames)

    def setPreferableBackend(self, backendId: int):
        """As the net's."""
        self._net.setPreferableBackend(backendId)
        return self

    def setPreferableTarget(self, targetId: int):
        """As the net's."""
        self._net.setPreferableTarget(targetId)
        return self

    def enableWinograd(self, useWinograd: bool):
        """Without effect."""
        return self

    def predict(self, frame) -> tuple[np.ndarray, ...]:
        """The outputs of the net for a picture."""
        import cv2

        if not self._size or 0 in self._size:
            raise wrong("Model: the size of the input is not known: call setInputSize or setInputParams")
        scales = np.atleast_1d(np.asarray(self._scale, np.float32))[:3]
        each = scales if len(scales) > 1 and (scales != scales[0]).any() else None
        factor = 1.0 if each is not None else float(scales[0])
        blob = cv2.dnn.blobFromImage(frame, factor, self._size, self._mean, self._swap, self._crop)
        if each is not None:
            blob = blob * each.reshape(1, -1, 1, 1)
        self._net.setInput(blob)
        if self._wants_size():
            self._net.setInput(np.array([[self._size[1], self._size[0], 1.6]], np.float32), "im_info")
        return self._net.forward(self._outputs)

    def _wants_size(self) -> bool:
        """Is it a Faster R-CNN or an R-FCN?"""
        return "im_info" in self._net._loaded().phase.graph.inputs

    def _only(self, frame) -> np.ndarray:
        found = self.predict(frame)
        if len(found) != 1:
            raise wrong(
                f"{type(self).__name__}: expected a net with one output, got {', '.join(self._outputs)}"
            )
        return found[0]


class ClassificationModel(Model):
    """cv2.dnn.ClassificationModel: the class of a picture."""

    _softmax = False

    def setEnableSoftmaxPostProcessing(self, enable: bool):
        """Does `classify` compute the softmax of the output?"""
        self._softmax = bool(enable)
        return self

    def getEnableSoftmaxPostProcessing(self) -> bool:
        """Does `classify` compute the softmax of the output?"""
        return self._softmax

    def classify(self, frame) -> tuple[int, float]:
        """(the number of the best class, its value)."""
        values = self._only(frame).reshape(-1)
        if self._softmax:
            values = np.exp(values - values.max())
            values = values / values.sum()
        best = int(values.argmax())
        return best, float(values[best])


class KeypointsModel(Model):
    """cv2.dnn.KeypointsModel: points of a body."""

    def estimate(self, frame, thresh: float = 0.5) -> np.ndarray:
        """[points, 2]: x and y in the picture; (-1, -1) where a map's largest value is not above `thresh`."""
        found = self._only(frame)
        if found.ndim != 4:
            return found[0, :, :2]
        _, maps, height, width = found.shape
        values = found[0, : maps - 1].reshape(maps - 1, -1)  # the last map is the background
        y, x = np.divmod(values.argmax(1), width)
        tall, wide = np.float32(frame.shape[0]), np.float32(frame.shape[1])
        points = np.stack([x * (wide / np.float32(width)), y * (tall / np.float32(height))], 1)
        points[values.max(1) <= thresh] = -1
        return points.astype(np.float32)


class SegmentationModel(Model):
    """cv2.dnn.SegmentationModel: a class for each pixel of the net's output."""

    def segment(self, frame) -> np.ndarray:
        """[height, width]: the numbers of the classes, as bytes."""
        return self._only(frame)[0].argmax(0).astype(np.uint8)


class DetectionModel(Model):
    """cv2.dnn.DetectionModel: boxes of a net that ends with DetectionOutput."""

    _across = False

    def setNmsAcrossClasses(self, value: bool):
        """Without effect: DetectionOutput has already suppressed boxes."""
        self._across = bool(value)
        return self

    def getNmsAcrossClasses(self) -> bool:
        """The value given to setNmsAcrossClasses."""
        return self._across

    def detect(self, frame, confThreshold: float = 0.5, nmsThreshold: float = 0.0):
        """The boxes of a picture.

        Args:
            frame: a picture, as cv2.imread gives it.
            confThreshold: boxes with a smaller value are left out.
            nmsThreshold: without effect: DetectionOutput has already suppressed boxes.

        Returns:
            (classes, values, boxes): [N], [N] and [N, 4], each box x, y, width, height; three empty tuples for none.
        """
        last = self._net.getLayer(len(self._net.getLayerNames()))
        if last.type != "DetectionOutput":
            raise wrong(f"DetectionModel: expected a net that ends with DetectionOutput, got {last.type!r}")
        found = np.concatenate([rows.reshape(-1, 7) for rows in self.predict(frame)])
        found = found[found[:, 2] >= np.float32(confThreshold)]
        if not len(found):
            return (), (), ()
        wide, tall = self._size if self._wants_size() else (frame.shape[1], frame.shape[0])
        return found[:, 1].astype(np.int32), found[:, 2].copy(), _boxes(found[:, 3:], wide, tall)


def _boxes(corners: np.ndarray, wide: int, tall: int) -> np.ndarray:
    """x, y, width, height in pixels. If all boxes are tiny, their corners are fractions of the picture, not pixels."""
    pixels = corners.astype(np.int32)
    tiny = ((pixels[:, 2:] - pixels[:, :2] + 1) <= 2).any(1)
    scaled = (corners * np.array([wide, tall, wide, tall], np.float32)).astype(np.int32)
    pixels = np.where(tiny[:, None], scaled, pixels)
    sizes = pixels[:, 2:] - pixels[:, :2] + 1
    whole = np.array([wide, tall])
    starts = np.clip(pixels[:, :2], 0, whole - 1)
    return np.concatenate([starts, np.clip(sizes, 1, whole - starts)], 1).astype(np.int32)


CLASSES = (Model, ClassificationModel, DetectionModel, KeypointsModel, SegmentationModel)
