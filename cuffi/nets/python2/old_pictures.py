"""Old names of libraries for pictures and plots: scipy.misc, scikit-image, OpenCV, Pillow, matplotlib, scikit-learn."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .text import with_bytes

# ------------------------------------------------------------------------------------------- scipy.misc


def _imread(path, flatten=False, mode=None):
    from PIL import Image

    image = Image.open(path)
    mode = mode or ("F" if flatten else "RGB" if image.mode in ("P", "CMYK", "YCbCr") else image.mode)
    return np.asarray(image.convert(mode)).copy()


def _toimage(array, **_):
    from PIL import Image

    array = np.asarray(array)
    if array.dtype != np.uint8:
        low, high = float(array.min()), float(array.max())
        array = ((array - low) * (255 / max(high - low, 1e-30)) + 0.5).astype(np.uint8)
    return Image.fromarray(array)


def _imresize(array, size, interp="bilinear", mode=None):
    image = _toimage(array)
    if isinstance(size, int):
        new = [int(n * size / 100) for n in image.size]
    elif isinstance(size, float):
        new = [int(n * size) for n in image.size]
    else:
        new = [int(size[1]), int(size[0])]
    ways = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}
    return np.asarray(image.resize(new, ways[interp])).copy()


# scipy.misc: pictures by Pillow.
MISC: dict[str, Any] = {
    "imread": _imread,
    "imresize": _imresize,
    "toimage": _toimage,
    "fromimage": np.asarray,
    "imsave": lambda path, array, **_: _toimage(array).save(path),
}

# ----------------------------------------------------------------------------------------- scikit-image


def transform_names(module: types.ModuleType) -> dict[str, Any]:
    """skimage.transform: no filter before it shrinks, black beside a picture, and the axis of colours is left alone."""

    def rescale(image, scale, *args, **kwargs):
        is_colour = np.ndim(image) == 3 and np.shape(image)[-1] in (3, 4) and np.isscalar(scale)
        if is_colour and "channel_axis" not in kwargs:
            kwargs["channel_axis"] = -1
        return module.rescale(image, scale, *args, **{"mode": "constant", "anti_aliasing": False} | kwargs)

    def resize(image, output_shape, order=1, mode="constant", *args, **kwargs):
        return module.resize(image, output_shape, order, mode, *args, **{"anti_aliasing": False} | kwargs)

    return {"rescale": rescale, "resize": resize}


# ----------------------------------------------------------------------------------------------- OpenCV

_READ = {"COLOR": 1, "GRAYSCALE": 0, "UNCHANGED": -1, "ANYDEPTH": 2, "ANYCOLOR": 4}
CV2: dict[str, Any] = {f"CV_LOAD_IMAGE_{name}": value for name, value in _READ.items()} | {"CV_AA": 16}


def cv(cv2: types.ModuleType) -> types.ModuleType:
    """cv2.cv: its names of constants, `CV_BGR2GRAY`, are today's `COLOR_BGR2GRAY`."""
    module: Any = types.ModuleType("cv2.cv")

    def constant(name: str):
        if name in CV2:
            return CV2[name]
        if name == "CV_FOURCC":
            return cv2.VideoWriter_fourcc
        stem = name.removeprefix("CV_")
        for today in (stem, f"COLOR_{stem}", f"IMREAD_{stem}", name):
            if hasattr(cv2, today):
                return getattr(cv2, today)
        raise AttributeError(f"cv2.cv.{name}: this OpenCV has no such name, nor {stem} nor COLOR_{stem}")

    module.__getattr__ = constant
    return module


def cv2_names(module: types.ModuleType) -> dict[str, Any]:
    """cv2, with cv2.cv and the classes that have got functions to make them."""
    made = {
        name: getattr(module, f"{name}_create")
        for name in ("SIFT", "ORB", "MSER", "BRISK")
        if hasattr(module, f"{name}_create")
    }
    return CV2 | {"cv": cv(module)} | {name: make for name, make in made.items() if name != "ORB"}


# ----------------------------------------------------------------------------------------------- Pillow


def image_names(module: types.ModuleType) -> dict[str, Any]:
    """PIL.Image"""

    def from_bytes(mode, size, data, *args):
        return with_bytes(module.frombytes, mode, size, data, *args)

    return {"ANTIALIAS": 1, "LINEAR": 2, "CUBIC": 3, "fromstring": from_bytes, "frombytes": from_bytes}


# ------------------------------------------------------------------------------------------- matplotlib


def pyplot_names(module: types.ModuleType) -> dict[str, Any]:
    """matplotlib.pyplot: nothing is held, because everything is."""

    def spectral() -> None:
        module.set_cmap("nipy_spectral")

    return {"hold": lambda *_: None, "ishold": lambda: True, "over": lambda function, *a, **k: function(*a, **k),
            "spectral": spectral}  # fmt: skip


def maps(module: types.ModuleType) -> dict[str, Any]:
    """matplotlib.cm"""
    import matplotlib

    renamed = {"spectral": "nipy_spectral", "Vega10": "tab10", "Vega20": "tab20"}
    return {name: matplotlib.colormaps[today] for name, today in renamed.items()} | {
        "get_cmap": lambda name=None, lut=None: _map(renamed.get(name, name), lut)
    }


def _map(name, lut):
    import matplotlib

    found = matplotlib.colormaps.get_cmap(name) if isinstance(name, str | None) else name
    return found.resampled(lut) if lut else found


# ----------------------------------------------------------------------------------------- scikit-learn


class _Folds:
    """A splitter of sklearn.cross_validation: it knows its data, and is gone through."""

    def __init__(self, splits: Callable, count: int):
        self._splits, self._count = splits, count

    def __iter__(self):
        return iter(self._splits())

    def __len__(self):
        return self._count


def _folds(name: str, of_labels: bool):
    """KFold(n, n_folds), StratifiedKFold(y, n_folds)."""

    def make(data, n_folds=3, shuffle=False, random_state=None, **_):
        selection = importlib.import_module("sklearn.model_selection")
        made = getattr(selection, name)(n_splits=n_folds, shuffle=shuffle, random_state=random_state)
        rows = np.zeros(len(data) if of_labels else int(data))
        return _Folds(lambda: made.split(rows, data if of_labels else None), n_folds)

    return make


def _shuffled(data, n_iter=10, test_size=0.1, train_size=None, random_state=None):
    """ShuffleSplit(n, n_iter)"""
    selection = importlib.import_module("sklearn.model_selection")
    made = selection.ShuffleSplit(
        n_iter, test_size=test_size, train_size=train_size, random_state=random_state
    )
    return _Folds(lambda: made.split(np.zeros(int(data))), n_iter)


def _leave_one_out(count):
    """LeaveOneOut(n)"""
    selection = importlib.import_module("sklearn.model_selection")
    return _Folds(lambda: selection.LeaveOneOut().split(np.zeros(int(count))), int(count))


CROSS_VALIDATION: dict[str, Any] = {
    "KFold": _folds("KFold", False),
    "StratifiedKFold": _folds("StratifiedKFold", True),
    "ShuffleSplit": _shuffled,
    "LeaveOneOut": _leave_one_out,
}


@functools.cache
def joined(name: str, *parts: str) -> types.ModuleType:
    """A module that is gone, with the names of those that took its place."""
    module: Any = types.ModuleType(name)
    module.__path__ = []
    for part in parts:
        found = importlib.import_module(part)
        names = getattr(found, "__all__", None) or [each for each in vars(found) if each[:1] != "_"]
        vars(module).update({each: getattr(found, each) for each in names})
    return module


# Modules that are gone: the modules that have their names now.
GONE = {
    "sklearn.cross_validation": ("sklearn.model_selection",),
    "sklearn.grid_search": ("sklearn.model_selection",),
    "sklearn.learning_curve": ("sklearn.model_selection",),
    "sklearn.lda": ("sklearn.discriminant_analysis",),
    "sklearn.qda": ("sklearn.discriminant_analysis",),
    "sklearn.externals": (),
    "sklearn.externals.joblib": ("joblib",),
    "skimage.filter": ("skimage.filters",),
    "scipy.ndimage.filters": ("scipy.ndimage",),
    "scipy.ndimage.interpolation": ("scipy.ndimage",),
    "scipy.ndimage.morphology": ("scipy.ndimage",),
    "scipy.ndimage.measurements": ("scipy.ndimage",),
    "matplotlib.mlab": ("matplotlib.mlab",),
}
