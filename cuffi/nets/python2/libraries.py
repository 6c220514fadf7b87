"""Old behaviour of libraries: removed or moved names, and old forms of calls.

A converted file gets the library behind an object that also has the old names: `np.float`, `scipy.misc.imread`,
`yaml.load(text)`. Other code does not change.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import re
import sys
import types
from typing import Any

import numpy as np

from . import old_numpy


class Library(types.ModuleType):
    """A module with some of its old names."""

    def __init__(self, module: types.ModuleType, old: dict[str, Any], wrap=None, more=()):
        super().__init__(module.__name__, module.__doc__)
        vars(self).update(_module=module, _old=old, _wrap=wrap, _more=more)
        for name in ("__path__", "__file__", "__version__"):
            if hasattr(module, name):
                vars(self)[name] = getattr(module, name)

    def __getattr__(self, name: str):
        if name in self._old:
            return self._old[name]
        if f"{self.__name__}.{name}" in LIBRARIES:
            return library(f"{self.__name__}.{name}")
        if name == "__all__" and not hasattr(self._module, name):
            return [name for name in vars(self._module) if name[:1] != "_"]
        for module in (self._module, *self._more):
            if hasattr(module, name):
                value = getattr(module, name)
                return self._wrap(value) if self._wrap else value
        return getattr(self._module, name)  # its own error

    def __setattr__(self, name: str, value) -> None:
        setattr(self._module, name, value)

    def __dir__(self):
        return sorted({*dir(self._module), *self._old})


# ------------------------------------------------------------------------------------------------ numpy


def _whole(value):
    """Whole floats become ints, also in tuples and lists."""
    if isinstance(value, float | np.floating) and value == int(value):
        return int(value)
    return type(value)(map(_whole, value)) if type(value) in (tuple, list) else value


@functools.cache
def _lenient(function):
    """A function of numpy that accepts a whole float as a size, as before numpy 1.12."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if "integer" not in str(error):
                raise
            return function(*map(_whole, args), **{name: _whole(value) for name, value in kwargs.items()})

    return call


def _numpy_s(value):
    if isinstance(value, np.ufunc):
        return _ufunc(value)
    is_function = callable(value) and not isinstance(value, type | old_numpy.Ufunc)
    return _lenient(value) if is_function else value


@functools.cache
def _ufunc(function: np.ufunc):
    return old_numpy.Ufunc(function) if function.nin == 2 else function


def _array(*args, **kwargs):
    """np.array: lists of unequal lengths make an array of objects; copy=False copies if it must."""
    if kwargs.get("copy") is False:
        kwargs = {name: value for name, value in kwargs.items() if name != "copy"}
        return np.asanyarray(*args, **kwargs) if kwargs.pop("subok", False) else np.asarray(*args, **kwargs)
    try:
        return np.array(*args, **kwargs)
    except OverflowError:  # until 1.24 integers wrapped around
        dtype = kwargs.pop("dtype", None) or args[1]
        return np.array(args[0], **kwargs).astype(dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error) or kwargs.get("dtype") is not None:
            raise
        kwargs["dtype"] = object
        return np.array(*args, **kwargs)


def _sum(values, *args, **kwargs):
    """np.sum: also of a generator's values."""
    return np.sum(list(values) if isinstance(values, types.GeneratorType) else values, *args, **kwargs)


def _delete(array, places, axis=None):
    """np.delete: a list of booleans has the numbers 0 and 1, as before 1.19."""
    places = np.asarray(places) if isinstance(places, list) else places
    is_mask = isinstance(places, np.ndarray) and places.dtype == bool
    return np.delete(array, places.astype(int) if is_mask else places, axis)


def _histogram(*args, normed=None, **kwargs):
    """np.histogram: `normed` is today's `density`."""
    return np.histogram(*args, **kwargs | ({"density": normed} if normed is not None else {}))


def _interpolated(function):
    """percentile and its relatives: `interpolation` is today's `method`."""

    def call(*args, interpolation=None, **kwargs):
        return function(*args, **kwargs | ({"method": interpolation} if interpolation else {}))

    return call


def _from_string(text, dtype=float, count=-1, sep=""):
    """np.fromstring: without a separator it copies bytes."""
    if sep:
        return np.fromstring(text, dtype, count, sep=sep)
    return np.frombuffer(text.encode("latin-1") if isinstance(text, str) else text, dtype, count).copy()


def _from_buffer(data, *args, **kwargs):
    """np.frombuffer: text stands for bytes."""
    return np.frombuffer(data.encode("latin-1") if isinstance(data, str) else data, *args, **kwargs)


def _load(file, mmap_mode=None, allow_pickle=True, fix_imports=True, encoding="latin1"):
    """np.load: also objects, and pickles of Python 2."""
    return np.load(file, mmap_mode, allow_pickle=allow_pickle, fix_imports=fix_imports, encoding=encoding)


def _set_printoptions(precision=None, threshold=None, *args, **kwargs):
    """np.set_printoptions: a threshold of 'nan' or nan prints all elements, as no number of them is above it."""
    if isinstance(threshold, str) or (isinstance(threshold, float) and np.isnan(threshold)):
        threshold = sys.maxsize
    np.set_printoptions(precision, threshold, *args, **kwargs)


def _numpy(module: types.ModuleType) -> Library:
    old = old_numpy.names() | {"array": _array, "load": _load, "fromstring": _from_string, "unique": _unique}
    old["frombuffer"] = _from_buffer
    old |= {"set_printoptions": _set_printoptions, "sum": _sum, "delete": _delete, "histogram": _histogram}
    old |= {name: _interpolated(getattr(np, name)) for name in _PERCENTILES}
    old["divide"] = old_numpy.Divide(np.divide)
    found = Library(module, old, _numpy_s)
    vars(found)["__all__"] = [name for name in old_numpy.STAR if name in old or hasattr(module, name)]
    return found


_PERCENTILES = ("percentile", "nanpercentile", "quantile", "nanquantile")


def _unique(*args, **kwargs):
    """np.unique: without an axis the inverse has one axis."""
    made = np.unique(*args, **kwargs)
    if len(args) > 2 or not kwargs.get("return_inverse") or kwargs.get("axis") is not None:
        return made
    place = 1 + bool(kwargs.get("return_index"))
    return (*made[:place], made[place].reshape(-1), *made[place + 1 :])


def _linalg(module: types.ModuleType) -> Library:
    """numpy.linalg: lstsq keeps all singular values, unless rcond says otherwise; solve takes stacks of vectors."""

    def lstsq(a, b, rcond=-1):
        return module.lstsq(a, b, rcond)

    def solve(a, b):
        of_vectors = 1 < np.ndim(b) == np.ndim(a) - 1
        return module.solve(a, np.asarray(b)[..., None])[..., 0] if of_vectors else module.solve(a, b)

    return Library(module, {"lstsq": lstsq, "solve": solve, "linalg": module})


def _pylab(module: types.ModuleType) -> Library:
    """pylab: its star brings numpy's old names, and none of builtins."""
    old = {name: getattr(library("numpy"), name) for name in library("numpy").__all__}
    new = {n for n in np.__all__ if n not in old} | set(vars(builtins))
    found = Library(module, {name: value for name, value in old.items() if not hasattr(module, name)})
    own = [name for name in vars(module) if name[:1] != "_" and (name not in new or name in old)]
    vars(found)["__all__"] = sorted({*own, *old})
    return found


def _math(module: types.ModuleType) -> Library:
    """math: floor and ceil return floats, and arrays with one element are numbers."""
    plain = {n: old_numpy.numeric(f) for n, f in vars(module).items() if callable(f) and n[:1] != "_"}

    def whole(function):
        return old_numpy.numeric(lambda x: float(function(x)))

    return Library(module, plain | {"floor": whole(module.floor), "ceil": whole(module.ceil)})


# ------------------------------------------------------------------------------------------------ others


class StringIO(io.BytesIO):
    """StringIO.StringIO and cStringIO.StringIO: for text or bytes, also bytes that were read as text."""

    def __init__(self, content=""):
        self.is_text = True
        super().__init__(self._taken(content))

    def _taken(self, content) -> bytes:
        if isinstance(content, str):
            data = content.encode("utf-8", "surrogateescape")
            self.is_text = self.is_text and not re.search("[\udc80-\udcff]", content)
            return data
        self.is_text = False
        return content

    def write(self, content):
        return super().write(self._taken(content))

    def _given(self, content: bytes):
        return content.decode("utf-8", "surrogateescape") if self.is_text else content

    def getvalue(self):
        return self._given(super().getvalue())

    def read(self, size=-1):
        return self._given(super().read(size))

    def readline(self, size=-1):
        return self._given(super().readline(size))

    def __next__(self):
        return self._given(super().__next__())


def _pickle(module: types.ModuleType) -> Library:
    """pickle: accepts files that were opened as text, and strings of Python 2."""
    binary = lambda file: getattr(file, "buffer", file)  # noqa: E731
    encoded = lambda text: text.encode("latin-1", "surrogateescape") if isinstance(text, str) else text  # noqa: E731
    old = {
        "load": lambda file, **k: module.load(binary(file), **{"encoding": "latin1"} | k),
        "loads": lambda text, **k: module.loads(encoded(text), **{"encoding": "latin1"} | k),
        "dump": lambda value, file, *a, **k: module.dump(value, binary(file), *a, **k),
    }
    return Library(module, old)


def _yaml(module: types.ModuleType) -> Library:
    """yaml.load(text): works without a Loader, and with tuples (`!!python/tuple`)."""
    return Library(module, {"load": lambda text, Loader=module.FullLoader: module.load(text, Loader)})


def _string(module: types.ModuleType) -> Library:
    """string.replace(text, ...) for text.replace(...)."""
    old = {n: functools.partial(getattr, str)(n) for n in dir(str) if not n.startswith("_") and n != "join"}
    old |= {
        "join": lambda words, sep=" ": sep.join(words),
        "letters": module.ascii_letters,
        "atoi": int,
        "atof": float,
    }
    return Library(module, old | {"lowercase": module.ascii_lowercase, "uppercase": module.ascii_uppercase})


def _misc(module: types.ModuleType | None = None) -> types.ModuleType:
    """scipy.misc: images by Pillow."""
    from PIL import Image

    def imread(path, flatten=False, mode=None):
        image = Image.open(path)
        mode = mode or ("F" if flatten else "RGB" if image.mode in ("P", "CMYK", "YCbCr") else image.mode)
        return np.asarray(image.convert(mode)).copy()

    def toimage(array, **_):
        array = np.asarray(array)
        if array.dtype != np.uint8:
            low, high = float(array.min()), float(array.max())
            array = ((array - low) * (255 / max(high - low, 1e-30)) + 0.5).astype(np.uint8)
        return Image.fromarray(array)

    def imresize(array, size, interp="bilinear", mode=None):
        image = toimage(array)
        if isinstance(size, int):
            new = [int(n * size / 100) for n in image.size]
        else:
            new = (
                [int(n * size) for n in image.size]
                if isinstance(size, float)
                else [int(size[1]), int(size[0])]
            )
        ways = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}
        return np.asarray(image.resize(new, ways[interp])).copy()

    old = {"imread": imread, "imresize": imresize, "toimage": toimage, "fromimage": np.asarray}
    old["imsave"] = lambda path, array, **_: toimage(array).save(path)
    return Library(module or types.ModuleType("scipy.misc"), old)


def _transform(module: types.ModuleType) -> Library:
    """skimage.transform: does not scale the axis of colours."""

    def rescale(image, scale, *args, **kwargs):
        is_colour = np.ndim(image) == 3 and np.shape(image)[-1] in (3, 4) and np.isscalar(scale)
        if is_colour and "channel_axis" not in kwargs:
            kwargs["channel_axis"] = -1
        return module.rescale(image, scale, *args, **kwargs)

    return Library(module, {"rescale": rescale})


def _urllib(module: types.ModuleType) -> Library:
    return Library(
        module, {}, more=[importlib.import_module(f"urllib.{part}") for part in ("request", "parse")]
    )


def _plain(**old):
    return lambda module: Library(module, {name: value() for name, value in old.items()})


def _of(module: str, name: str):
    return lambda: getattr(importlib.import_module(module), name)


# The wrappers of libraries, by name.
LIBRARIES = {
    "numpy": _numpy,
    "numpy.linalg": _linalg,
    "numpy.lib": lambda module: Library(module, {"pad": np.pad}, _numpy_s),
    "math": _math,
    "pylab": _pylab,
    "matplotlib.pylab": _pylab,
    "numpy.random": lambda module: Library(module, {}, _numpy_s),
    "yaml": _yaml,
    "pickle": _pickle,
    "string": _string,
    "scipy.misc": _misc,
    "skimage.transform": _transform,
    "urllib": _urllib,
    "StringIO": lambda module: Library(module, {"StringIO": StringIO}),
    "collections": lambda module: Library(module, {}, more=[importlib.import_module("collections.abc")]),
    "itertools": _plain(izip=lambda: zip, imap=lambda: map, ifilter=lambda: filter,
                        izip_longest=_of("itertools", "zip_longest")),
    "os": _plain(getcwdu=_of("os", "getcwd"), errno=lambda: importlib.import_module("errno")),
    "sys": _plain(maxint=lambda: sys.maxsize, setdefaultencoding=lambda: lambda name: None),
    "time": _plain(clock=_of("time", "perf_counter")),
    "inspect": _plain(getargspec=_of("inspect", "getfullargspec")),
    "fractions": _plain(gcd=_of("math", "gcd")),
    "PIL.Image": _plain(ANTIALIAS=lambda: 1, LINEAR=lambda: 2, CUBIC=lambda: 3),
    "cv2": _plain(CV_LOAD_IMAGE_COLOR=lambda: 1, CV_LOAD_IMAGE_GRAYSCALE=lambda: 0, CV_LOAD_IMAGE_UNCHANGED=lambda: -1,
                  CV_AA=lambda: 16),
}  # fmt: skip
# Renamed modules, besides those that fissix knows.
MOVED = {
    "cPickle": "pickle",
    "StringIO": "StringIO",
    "cStringIO": "StringIO",
    "urllib2": "urllib",
    "urlparse": "urllib",
    "Image": "PIL.Image",
    "ImageDraw": "PIL.ImageDraw",
    "ImageFont": "PIL.ImageFont",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
}


@functools.cache
def moved() -> dict[str, str]:
    """Today's names of modules."""
    try:
        from fissix.fixes.fix_imports import MAPPING
    except ImportError:
        MAPPING = {}
    return MAPPING | MOVED


@functools.cache
def library(name: str) -> types.ModuleType:
    """The module of that name, with its old behaviour. ModuleNotFoundError if there is none."""
    if name == "StringIO":
        module = types.ModuleType(name)
    else:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            if name != "scipy.misc":
                raise
            return _misc()
    if name in LIBRARIES:
        return LIBRARIES[name](module)
    return Library(module, {}) if any(other.startswith(f"{name}.") for other in LIBRARIES) else module
