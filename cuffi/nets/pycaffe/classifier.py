"""caffe.Classifier and caffe.Detector."""

from __future__ import annotations

import numpy as np

from ...base import CaffeRuntimeError, CaffeValueError
from . import io, mode
from .pycaffe_net import Net


class _ImageNet(Net):
    """A net with one input, whose images a Transformer prepares."""

    def __init__(self, model_file, pretrained_file, mean, input_scale, raw_scale, channel_swap):
        super().__init__(model_file, pretrained_file, mode.TEST)
        in_ = self.inputs[0]
        self.transformer = io.Transformer({in_: self.blobs[in_].data.shape})
        self.transformer.set_transpose(in_, (2, 0, 1))
        for setter, value in (
            (self.transformer.set_mean, mean),
            (self.transformer.set_input_scale, input_scale),
            (self.transformer.set_raw_scale, raw_scale),
            (self.transformer.set_channel_swap, channel_swap),
        ):
            if value is not None:
                setter(in_, value)
        self.crop_dims = np.array(self.blobs[in_].data.shape[2:])

    def _predicted(self, images) -> np.ndarray:
        """The first output for images [H, W, K]."""
        in_, out = self.inputs[0], self.outputs[0]
        data = np.array([self.transformer.preprocess(in_, image) for image in images], np.float32)
        return self.forward_all(**{in_: data})[out]


class Classifier(_ImageNet):
    """Classifies images.

    Args:
        model_file, pretrained_file: a deploy.prototxt with one input, and its weights.
        image_dims: (height, width) of images before they are cropped; None: the input's.
        mean, input_scale, raw_scale, channel_swap: as Transformer's.
    """

    def __init__(
        self,
        model_file,
        pretrained_file,
        image_dims=None,
        mean=None,
        input_scale=None,
        raw_scale=None,
        channel_swap=None,
    ):
        super().__init__(model_file, pretrained_file, mean, input_scale, raw_scale, channel_swap)
        self.image_dims = np.array(image_dims if image_dims is not None else self.crop_dims)

    def predict(self, inputs, oversample=True) -> np.ndarray:
        """[N, classes] for a list of N images [H, W, K]: the mean over ten crops, or the centre crop."""
        images = [io.resize_image(image, self.image_dims) for image in inputs]
        if oversample:
            predictions = self._predicted(io.oversample(images, self.crop_dims))
            return predictions.reshape(len(predictions) // 10, 10, -1).mean(1)
        middle = np.array(self.image_dims) / 2.0
        (top, left), (bottom, right) = (
            (middle + side * self.crop_dims / 2.0).astype(int) for side in (-1, 1)
        )
        return self._predicted([image[top:bottom, left:right, :] for image in images])


class Detector(_ImageNet):
    """Classifies windows of images, as R-CNN does.

    Args:
        context_pad: the pixels of context around the window.
        others: as for Classifier.
    """

    def __init__(
        self,
        model_file,
        pretrained_file,
        mean=None,
        input_scale=None,
        raw_scale=None,
        channel_swap=None,
        context_pad=None,
    ):
        super().__init__(model_file, pretrained_file, mean, input_scale, raw_scale, channel_swap)
        self.context_pad, self.crop_mean = context_pad, None
        if context_pad:
            self._make_crop_mean()

    def _make_crop_mean(self) -> None:
        """The mean as an image of the input's size, which fills the area outside of the image."""
        in_ = self.inputs[0]
        transformer, shape = self.transformer, self.blobs[in_].data.shape[1:]
        mean = np.broadcast_to(transformer.mean.get(in_, np.zeros((shape[0], 1, 1))), shape)
        if (order := transformer.transpose.get(in_)) is not None:
            mean = mean.transpose(np.argsort(order))
        if (swap := transformer.channel_swap.get(in_)) is not None:
            mean = mean[:, :, np.argsort(swap)]
        self.crop_mean = np.array(mean, np.float32) / (transformer.raw_scale.get(in_) or 1)

    def detect_windows(self, images_windows) -> list[dict]:
        """Dicts with `window`, `prediction` and `filename`.

        Args:
            images_windows: pairs of a file and its windows (ymin, xmin, ymax, xmax).
        """
        pairs = [(name, windows, io.load_image(name).astype(np.float32)) for name, windows in images_windows]
        crops = [self.crop(image, window) for _, windows, image in pairs for window in windows]
        if not crops:
            return []
        places = ((name, window) for name, windows, _ in pairs for window in windows)
        found = self._predicted(crops)
        return [
            {"window": window, "prediction": prediction, "filename": name}
            for (name, window), prediction in zip(places, found, strict=True)
        ]

    def detect_selective_search(self, image_fnames):
        """A CaffeRuntimeError: it ran a MATLAB program. `detect_windows` takes the windows."""
        raise CaffeRuntimeError(
            "detect_selective_search ran a MATLAB program. Find the windows in another way, and call detect_windows"
        )

    def crop(self, im: np.ndarray, window) -> np.ndarray:
        """The window of an image, with its context; outside of the image the mean."""
        window = np.asarray(window, dtype=int)
        if window.shape != (4,) or window[0] >= window[2] or window[1] >= window[3]:
            raise CaffeValueError(f"window: expected (ymin, xmin, ymax, xmax), got {window.tolist()}")
        if not self.context_pad:
            return im[window[0] : window[2], window[1] : window[3]]
        size = self.crop_dims
        scale = size[0] / (size[0] - 2 * self.context_pad)
        half = (window[2:] - window[:2] + 1) / 2.0
        middle = window[:2] + half
        box = np.round(np.r_[middle - scale * half, middle + scale * half]).astype(int)
        stretch = size / (box[2:] - box[:2] + 1.0)
        inside = np.clip(box, 0, np.r_[im.shape[:2], im.shape[:2]])
        offset = np.round((inside[:2] - box[:2]) * stretch).astype(int)
        room = size - offset
        wanted = np.minimum(np.round((inside[2:] - inside[:2] + 1) * stretch).astype(int), room)
        cut = im[inside[0] : inside[2] + 1, inside[1] : inside[3] + 1]
        crop = np.array(self.crop_mean, np.float32)
        crop[offset[0] : offset[0] + wanted[0], offset[1] : offset[1] + wanted[1]] = io.resize_image(
            cut, wanted
        )
        return crop
