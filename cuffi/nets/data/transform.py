"""transform_param: what Caffe's DataTransformer does to an image."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from ...base import CaffeValueError
from ...caffe_files.caffemodel import mean_image


class Draws:
    """A few random numbers that depend only on `what`. To seed a generator for each image takes as long as its crop."""

    def __init__(self, *what):
        self._left = int.from_bytes(hashlib.blake2b(repr(what).encode(), digest_size=32).digest(), "little")

    def randrange(self, count: int) -> int:
        self._left, drawn = divmod(self._left, count)
        return drawn


# What to do about a file of another kind.
NO_MEAN_FILE = (
    "A mean_file holds a BlobProto (caffe.io.array_to_blobproto); mean_value: 104 gives a channel's number"
)


class Transform:
    """(x - mean) * scale of a crop of x, mirrored with probability 1/2, as DataTransformer computes it.

    TRAIN crops at a random place, TEST in the middle, at floor((size - crop) / 2). The mean is a mean file's value of
    the same pixel, before the crop, or one value for each channel.

    Args:
        param: a TransformationParameter.
        train: is it the phase TRAIN?
        find: finds a file that the param names.
        where: the layer, for messages.
    """

    def __init__(self, param, train: bool, find, where: str):
        self.train, self.where = train, where
        self.size, self.mirror, self.scale = param.crop_size, param.mirror, np.float32(param.scale)
        self.mean, self.is_mean_of_file = None, param.HasField("mean_file")
        if param.HasField("mean_file"):
            if param.mean_value:
                raise CaffeValueError(f"{where}: both mean_file and mean_value")
            path = find(param.mean_file, "mean_file")
            try:
                self.mean = mean_image(path).numpy()
            except OSError as error:
                raise CaffeValueError(f"{where}: mean_file: {error}") from None
            except CaffeValueError as error:
                raise CaffeValueError(f"{where}: mean_file: {error}. {NO_MEAN_FILE}") from None
        elif param.mean_value:
            self.mean = np.array(param.mean_value, np.float32)[:, None, None]

    def __call__(self, image: np.ndarray, draws: Draws) -> torch.Tensor:
        """A float32 tensor of an array [channels, height, width]. `draws` decides crop and mirror."""
        mean = self.mean
        # Caffe takes one mean_value for all channels, and no mean_file of one channel for an image of three.
        channels = image.shape[:1] if self.is_mean_of_file else (1, image.shape[0])
        if mean is not None and (
            mean.shape[0] not in channels or mean.shape[1:] not in ((1, 1), image.shape[1:])
        ):
            raise CaffeValueError(
                f"{self.where}: a mean of {list(mean.shape)} for an image of {list(image.shape)}: they must agree"
            )
        crop = self._crop(image, draws) if self.size else (slice(None),) * 3
        if self.mirror and draws.randrange(2):
            sides = crop[2].indices(image.shape[2])
            crop = (*crop[:2], slice(sides[1] - 1, sides[0] - 1 if sides[0] else None, -1))
        made = image[crop].astype(np.float32, order="C")
        if mean is not None:
            made -= mean if mean.shape[1:] == (1, 1) else mean[crop]
        if self.scale != 1:
            made *= self.scale
        return torch.from_numpy(made)

    def _crop(self, image: np.ndarray, draws: Draws) -> tuple[slice, slice, slice]:
        size = self.size
        room = [n - size for n in image.shape[1:]]
        if min(room) < 0:
            raise CaffeValueError(
                f"{self.where}: crop_size {size} of an image of {image.shape[1]} x {image.shape[2]} pixels"
            )
        top, left = (draws.randrange(n + 1) if self.train else n // 2 for n in room)
        return slice(None), slice(top, top + size), slice(left, left + size)
