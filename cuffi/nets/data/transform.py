"""transform_param: what Caffe's DataTransformer does to an image."""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random

import numpy as np
import torch

from ...base import CaffeValueError
from ..net.messages import STOCK
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

    def __getstate__(self) -> dict:
        """Messages cannot be pickled, as a worker that is spawned needs it: their bytes can."""
        return self.__dict__ | {"param": self.param.SerializeToString()}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, param=STOCK.message("TransformationParameter"))
        self.param.ParseFromString(state["param"])

    def __call__(self, image: np.ndarray, random: Callable[[], Random]) -> torch.Tensor:
        """A float32 tensor of an array [channels, height, width]. `random()` decides crop and mirror."""
        mean, size = self.mean, self.param.crop_size
        if mean is not None and (
            mean.shape[0] not in (1, image.shape[0]) or mean.shape[1:] not in ((1, 1), image.shape[1:])
        ):
            raise CaffeValueError(
                f"{self.where}: a mean of {list(mean.shape)} for an image of {list(image.shape)}"
            )
        draws = functools.cache(random)  # without a random crop or a mirror no generator is made
        crop = self._crop(image, draws) if size else (slice(None),) * 3
        if self.param.mirror and draws().randrange(2):
            sides = crop[2].indices(image.shape[2])
            crop = (*crop[:2], slice(sides[1] - 1, sides[0] - 1 if sides[0] else None, -1))
        made = image[crop].astype(np.float32, order="C")
        if mean is not None:
            made -= mean if mean.shape[1:] == (1, 1) else mean[crop]
        if self.param.scale != 1:
            made *= np.float32(self.param.scale)
        return torch.from_numpy(made)

    def _crop(self, image: np.ndarray, draws: Callable[[], Random]) -> tuple[slice, slice, slice]:
        size = self.param.crop_size
        room = [n - size for n in image.shape[1:]]
        if min(room) < 0:
            raise CaffeValueError(
                f"{self.where}: crop_size {size} of an image of {image.shape[1]} x {image.shape[2]} pixels"
            )
        top, left = (draws().randrange(n + 1) if self.train else n // 2 for n in room)
        return slice(None), slice(top, top + size), slice(left, left + size)
