"""caffe.io: images, the Transformer, and arrays as BlobProto and Datum. Images are [height, width, channels]."""

from __future__ import annotations

import contextlib
import os

import numpy as np

from ...base import CaffeValueError
from ...base.files import to_read
from ...caffe_files.parameters import did_you_mean
from ..data.sources import package
from .proto import caffe_pb2


def load_image(filename, color=True) -> np.ndarray:
    """An image as float32 in [0, 1], RGB, or with one channel if `color` is false."""
    images = package("PIL.Image", "an image", "pillow")
    is_path = isinstance(filename, (str, os.PathLike))
    with to_read(filename) if is_path else contextlib.nullcontext(filename) as file:
        return _floats(images.open(file), color)


def _floats(image, color: bool) -> np.ndarray:
    """An image of Pillow's, as `load_image` gives it."""
    if image.mode.startswith("I"):  # 16 bits
        values = np.asarray(image).astype(np.float32) / 65535
    else:
        values = np.asarray(image.convert("RGB" if color else "L"), np.float32) / 255
    if values.ndim == 2:
        values = values[:, :, None]
        return np.tile(values, (1, 1, 3)) if color else values
    return values


def resize_image(im: np.ndarray, new_dims, interp_order=1) -> np.ndarray:
    """The image [H, W, K] with height and width new_dims, as float32.

    As in pycaffe: with 1 or 3 channels a pixel is an area, and the outside is 0 (scikit-image's resize, without
    anti-aliasing). With other numbers a pixel is a point, and corners stay corners (scipy's zoom).
    """
    height, width = (int(size) for size in new_dims[:2])
    zoom = package("scipy.ndimage", "an image of another size", "scipy").zoom
    im = np.asarray(im)
    sizes = (height / im.shape[0], width / im.shape[1])
    if im.shape[-1] not in (1, 3):
        planes = [zoom(im[:, :, k].astype(np.float64), sizes, order=interp_order) for k in range(im.shape[2])]
        return np.stack(planes, axis=2).astype(np.float32)
    low, high = im.min(), im.max()
    if low == high:
        return np.full((height, width, im.shape[-1]), low, np.float32)
    scaled = (im.astype(np.float64) - low) / (high - low)
    planes = [
        zoom(scaled[:, :, k], sizes, order=interp_order, mode="grid-constant", grid_mode=True)
        for k in range(im.shape[2])
    ]
    return (np.clip(np.stack(planes, axis=2), 0, 1) * (high - low) + low).astype(np.float32)


def oversample(images, crop_dims) -> np.ndarray:
    """[10 * N, h, w, K]: the four corners and the centre of each image, and their mirror images."""
    size, crop = np.array(images[0].shape[:2]), np.array(crop_dims, dtype=int)
    rows, columns = ((0, n - c) for n, c in zip(size, crop, strict=True))
    corners = [(row, column) for row in rows for column in columns]
    middle = tuple(int(n / 2.0 - c / 2.0) for n, c in zip(size, crop, strict=True))
    crops = []
    for image in images:
        five = [image[y : y + crop[0], x : x + crop[1], :] for y, x in (*corners, middle)]
        crops += [*five, *(cut[:, ::-1, :] for cut in five)]
    return np.array(crops, dtype=np.float32)


class Transformer:
    """Turns images into a net's input: resize, transpose, channel_swap, raw_scale, mean, input_scale, in this order.

    Args:
        inputs: the shape of each input blob, by name: {"data": net.blobs["data"].data.shape}.
    """

    def __init__(self, inputs: dict):
        self.inputs = inputs
        self.transpose, self.channel_swap, self.raw_scale, self.mean, self.input_scale = {}, {}, {}, {}, {}

    def _check(self, in_: str) -> None:
        if in_ not in self.inputs:
            near = did_you_mean(in_, self.inputs)
            raise CaffeValueError(f"{in_} is not one of the net inputs: {', '.join(self.inputs)}{near}")

    def preprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        """The image as the input's [K, H, W]."""
        self._check(in_)
        self._check_image(in_, data)
        image = data.astype(np.float32, copy=False)
        if image.shape[:2] != tuple(self.inputs[in_][2:]):
            image = resize_image(image, self.inputs[in_][2:])
        if (order := self.transpose.get(in_)) is not None:
            image = image.transpose(order)
        if (swap := self.channel_swap.get(in_)) is not None:
            image = image[list(swap), :, :]
        if (scale := self.raw_scale.get(in_)) is not None:
            image = image * np.float32(scale)
        if (mean := self.mean.get(in_)) is not None:
            image = image - mean.astype(np.float32)
        if (scale := self.input_scale.get(in_)) is not None:
            image = image * np.float32(scale)
        return image

    def _check_image(self, in_: str, data) -> None:
        """Is it an image with the channels of the input?"""
        if data is None:
            raise CaffeValueError(
                f"{in_}: expected an image, got None, which cv2.imread gives if it cannot read the file"
            )
        shape, channels = list(np.shape(data)), self.inputs[in_][1]
        if in_ in self.transpose and len(shape) != len(self.transpose[in_]):
            grey = (
                ". A grey image: image[:, :, None], or load_image, which makes it RGB"
                if len(shape) == 2
                else ""
            )
            raise CaffeValueError(f"{in_}: expected an image [height, width, channels], got {shape}{grey}")
        if in_ in self.channel_swap and in_ in self.transpose and shape[self.transpose[in_][0]] < channels:
            had = shape[self.transpose[in_][0]]
            raise CaffeValueError(f"{in_}: an image of {had} channels, and the input has {channels}")

    def deprocess(self, in_: str, data: np.ndarray) -> np.ndarray:
        """The image of an input."""
        self._check(in_)
        image = data.copy().squeeze()
        if (scale := self.input_scale.get(in_)) is not None:
            image = image / np.float32(scale)
        if (mean := self.mean.get(in_)) is not None:
            image = image + mean.astype(np.float32)
        if (scale := self.raw_scale.get(in_)) is not None:
            image = image / np.float32(scale)
        if (swap := self.channel_swap.get(in_)) is not None:
            image = image[np.argsort(swap), :, :]
        if (order := self.transpose.get(in_)) is not None:
            image = image.transpose(np.argsort(order))
        return image

    def set_transpose(self, in_: str, order) -> None:
        """Set the order of axes: (2, 0, 1) turns [H, W, K] into [K, H, W]."""
        self._check(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise CaffeValueError(
                "Transpose order needs to have the same number of dimensions as the input: "
                f"{len(self.inputs[in_]) - 1} without the batch, got {tuple(order)}"
            )
        self.transpose[in_] = order

    def set_channel_swap(self, in_: str, order) -> None:
        """Set the order of channels: (2, 1, 0) turns RGB into BGR."""
        self._check(in_)
        if len(order) != self.inputs[in_][1]:
            raise CaffeValueError(
                "Channel swap needs to have the same number of dimensions as the input channels: "
                f"{self.inputs[in_][1]}, got {tuple(order)}"
            )
        self.channel_swap[in_] = order

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Set the factor before the mean is subtracted: 255 for images of load_image."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_: str, mean: np.ndarray) -> None:
        """Set the mean: [K], a value for each channel, or an image [K, H, W] of the input's size."""
        self._check(in_)
        if isinstance(mean, str | os.PathLike):
            raise CaffeValueError(
                f"Mean of {in_}: expected an array, got the path {str(mean)!r}: {_how_to_read(str(mean))}"
            )
        mean = np.asarray(mean)
        if mean.ndim == 1:
            if mean.shape[0] != self.inputs[in_][1]:
                has = f"{mean.shape[0]} values, {in_} has {self.inputs[in_][1]} channels"
                raise CaffeValueError(
                    f"Mean channels incompatible with input: {has}: give one value for each, or an array (C, H, W)"
                )
            mean = mean[:, None, None]
        else:
            mean = mean[None] if mean.ndim == 2 else mean
            if mean.ndim != 3:
                hint = ": mean[0] is its image" if mean.ndim == 4 and len(mean) == 1 else ""
                raise CaffeValueError(
                    f"Mean shape invalid: {list(mean.shape)}, not [channels] or [channels, height, width]{hint}"
                )
            if tuple(mean.shape) != tuple(self.inputs[in_][1:]):
                mean = self._resized_mean(in_, mean)
        self.mean[in_] = mean

    def _resized_mean(self, in_: str, mean: np.ndarray) -> np.ndarray:
        if mean.shape[0] not in (1, self.inputs[in_][1]):
            last = mean.shape[-1] == self.inputs[in_][1]
            hint = ". Its channels are last: mean.transpose(2, 0, 1)" if last else ""
            raise CaffeValueError(
                f"Mean shape incompatible with input shape: {list(mean.shape)}, {in_} is "
                f"[channels, height, width] {list(self.inputs[in_][1:])}{hint}"
            )
        return resize_image(mean.transpose(1, 2, 0), self.inputs[in_][2:]).transpose(2, 0, 1)

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Set the factor after the mean is subtracted."""
        self._check(in_)
        self.input_scale[in_] = scale


def _how_to_read(path: str) -> str:
    if path.endswith(".npy"):
        return f"numpy.load({path!r})"
    if path.endswith(".npz"):
        return f"numpy.load({path!r}), and one of its arrays"
    return f"read it, blob.ParseFromString(open({path!r}, 'rb').read()), and give caffe.io.blobproto_to_array(blob)[0]"


# ---------------------------------------------------------------------------------------------- protobuf


def blobproto_to_array(blob, return_diff=False) -> np.ndarray:
    """The values of a BlobProto, or its diffs, in its shape."""
    values = np.array(blob.diff if return_diff else blob.data, np.float32)
    old = any(blob.HasField(name) for name in ("num", "channels", "height", "width"))
    shape = (blob.num, blob.channels, blob.height, blob.width) if old else tuple(blob.shape.dim)
    return values.reshape(shape)


def array_to_blobproto(arr: np.ndarray, diff=None):
    """A BlobProto of an array, and of its diffs."""
    blob = caffe_pb2.BlobProto()
    blob.shape.dim.extend(np.shape(arr))
    blob.data.extend(np.asarray(arr, float).flat)
    if diff is not None:
        blob.diff.extend(np.asarray(diff, float).flat)
    return blob


def arraylist_to_blobprotovector_str(arrays) -> bytes:
    """The bytes of a BlobProtoVector."""
    return caffe_pb2.BlobProtoVector(blobs=[array_to_blobproto(a) for a in arrays]).SerializeToString()


def blobprotovector_str_to_arraylist(text: bytes) -> list[np.ndarray]:
    """The arrays of a BlobProtoVector's bytes."""
    return [blobproto_to_array(blob) for blob in caffe_pb2.BlobProtoVector.FromString(text).blobs]


def array_to_datum(arr: np.ndarray, label=None):
    """A Datum of an array [K, H, W], of bytes or floats."""
    if np.ndim(arr) != 3:
        raise CaffeValueError("Incorrect array shape.")
    datum = caffe_pb2.Datum(channels=arr.shape[0], height=arr.shape[1], width=arr.shape[2])
    if arr.dtype == np.uint8:
        datum.data = arr.tobytes()
    else:
        datum.float_data.extend(np.asarray(arr, float).flat)
    if label is not None:
        datum.label = int(label)
    return datum


def datum_to_array(datum) -> np.ndarray:
    """The array [K, H, W] of a Datum. An encoded image is not decoded: decode `datum.data` yourself."""
    values = np.frombuffer(datum.data, np.uint8).copy() if datum.data else np.array(datum.float_data, float)
    return values.reshape(datum.channels, datum.height, datum.width)
