"""transform_param: what Caffe's DataTransformer does to an image."""

from __future__ import annotations

from random import Random

import numpy as np
import torch

from ...base import CaffeValueError
from ..net.weights import mean_image


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
        self.param, self.train, self.where = param, train, where
        self.mean = None
        if param.HasField("mean_file"):
            if param.mean_value:
                raise CaffeValueError(f"{where}: both mean_file and mean_value")
            self.mean = mean_image(find(param.mean_file)).numpy()
        elif param.mean_value:
            self.mean = np.array(param.mean_value, np.float32)[:, None, None]

    def __call__(self, image: np.ndarray, random: Random) -> torch.Tensor:
        """A float32 tensor of an array [channels, height, width]. `random` decides crop and mirror."""
        image = image.astype(np.float32)
        if self.mean is not None:
            if self.mean.shape[0] not in (1, image.shape[0]) or (
                self.mean.shape[1:] != (1, 1) and self.mean.shape[1:] != image.shape[1:]
            ):
                raise CaffeValueError(
                    f"{self.where}: a mean of {list(self.mean.shape)} for an image of {list(image.shape)}"
                )
            image = image - self.mean
        image = self._cropped(image, random)
        if self.param.mirror and random.randrange(2):
            image = image[:, :, ::-1]
        return torch.from_numpy(np.ascontiguousarray(image * np.float32(self.param.scale)))

    def _cropped(self, image: np.ndarray, random: Random) -> np.ndarray:
        size = self.param.crop_size
        if not size:
            return image
        room = [n - size for n in image.shape[1:]]
        if min(room) < 0:
            raise CaffeValueError(
                f"{self.where}: crop_size {size} of an image of {image.shape[1]} x {image.shape[2]} pixels"
            )
        if self.train:
            top, left = (random.randrange(n + 1) for n in room)
        else:
            top, left = (n // 2 for n in room)
        return image[:, top : top + size, left : left + size]
