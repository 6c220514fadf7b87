"""Old behaviour of libraries: removed or moved names, and old forms of calls.

A converted file gets the library behind an object that also has the old names: `np.float`, `scipy.misc.imread`,
`yaml.load(text)`. Other code does not change.
"""

from __future__ import annotations

import builtins
import errno
import functools
import html
import importlib
import io
import itertools
import math
import operator
import os
import re
import sys
import time
import types
from typing import Any

import numpy as np

from . import old_modules, old_numpy, old_pictures, old_random
from .literals import as_bytes, as_text
from .text import again, each, opened


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
        if (inner := f"{self.__name__}.{name}") in LIBRARIES or inner in old_pictures.GONE:
            return library(inner)
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
                return again(error, function, args, kwargs)
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
    return np.frombuffer(as_bytes(text) if isinstance(text, str) else text, dtype, count).copy()


def _of_lines(function):
    """loadtxt and its relatives: the words of a file are text, whatever bytes they have."""

    def call(file, *args, **kwargs):
        if isinstance(file, str) and not file.endswith((".gz", ".bz2", ".xz")) and os.path.isfile(file):
            with opened(file) as lines:
                return function(lines, *args, **{"encoding": None} | kwargs)
        lines = file if isinstance(file, str) or not hasattr(file, "read") else each(file)
        return function(lines, *args, **{"encoding": None} | kwargs)

    return call


def _imap(function, *several):
    return zip(*several, strict=False) if function is None else map(function, *several)


def _from_buffer(data, *args, **kwargs):
    """np.frombuffer: text stands for bytes."""
    return np.frombuffer(as_bytes(data) if isinstance(data, str) else data, *args, **kwargs)


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
    old |= {name: _of_lines(getattr(np, name)) for name in ("loadtxt", "genfromtxt")}
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
        return old_numpy.numeric(lambda x: float(function(float(x))))

    return Library(module, plain | {"floor": whole(np.floor), "ceil": whole(np.ceil)})


# ------------------------------------------------------------------------------------------------ others


class StringIO(io.BytesIO):
    """StringIO.StringIO and cStringIO.StringIO: for text or bytes, also bytes that were read as text."""

    def __init__(self, content=""):
        self.is_text = True
        super().__init__(self._taken(content))

    def _taken(self, content) -> bytes:
        if isinstance(content, str):
            self.is_text = self.is_text and not re.search("[\udc80-\udcff]", content)
            return as_bytes(content)
        self.is_text = False
        return content

    def write(self, content):
        return super().write(self._taken(content))

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def _given(self, content: bytes):
        return as_text(content) if self.is_text else content

    def getvalue(self):
        return self._given(super().getvalue())

    def read(self, size=-1):
        return self._given(super().read(size))

    def readline(self, size=-1):
        return self._given(super().readline(size))

    def readlines(self, hint=-1):
        return [self._given(line) for line in super().readlines(hint)]

    def __next__(self):
        return self._given(super().__next__())


def _pickle(module: types.ModuleType) -> Library:
    """pickle: accepts files that were opened as text, and strings of Python 2."""
    binary = lambda file: getattr(file, "buffer", file)  # noqa: E731
    encoded = lambda text: as_bytes(text) if isinstance(text, str) else text  # noqa: E731
    latin = {"encoding": "latin1"}  # which numpy's arrays need
    old = {
        "Unpickler": lambda file, **k: module.Unpickler(binary(file), **latin | k),
        "Pickler": lambda file, *a, **k: module.Pickler(binary(file), *a, **k),
        "load": lambda file, **k: module.load(binary(file), **latin | k),
        "loads": lambda text, **k: module.loads(encoded(text), **latin | k),
        "dump": lambda value, file, *a, **k: module.dump(value, binary(file), *a, **k),
    }
    return Library(module, old)


def _yaml(module: types.ModuleType) -> Library:
    """yaml.load(text): works without a Loader, and with tuples (`!!python/tuple`)."""
    return Library(module, {"load": lambda text, Loader=module.FullLoader: module.load(text, Loader)})


def _table(old: str, new: str) -> str:
    """string.maketrans"""
    changed = dict(zip(map(ord, old), new, strict=True))
    return "".join(changed.get(code, chr(code)) for code in range(256))


def _string(module: types.ModuleType) -> Library:
    """string.replace(text, ...) for text.replace(...)."""
    old = {n: functools.partial(getattr, str)(n) for n in dir(str) if not n.startswith("_") and n != "join"}
    old |= {
        "join": lambda words, sep=" ": sep.join(words),
        "letters": module.ascii_letters,
        "atoi": int,
        "atof": float,
        "maketrans": _table,
    }
    return Library(module, old | {"lowercase": module.ascii_lowercase, "uppercase": module.ascii_uppercase})


def _urllib(module: types.ModuleType) -> Library:
    return Library(
        module, {}, more=[importlib.import_module(f"urllib.{part}") for part in ("request", "parse")]
    )


def _hdf5(module: types.ModuleType) -> Library:
    """h5py.File: without a mode it reads and writes, and makes the file."""

    class File(module.File):
        def __init__(self, name, mode=None, *args, **named):
            if mode is None:
                exists = os.path.exists(name) if isinstance(name, str) else True
                mode = "r" if exists and not os.access(name, os.W_OK) else "a"
            super().__init__(name, mode, *args, **named)

    return Library(module, {"File": File})


def _config(module: types.ModuleType) -> Library:
    """ConfigParser: an option may stand there twice."""
    kinds = {
        name: functools.partial(getattr(module, name), strict=False)
        for name in ("ConfigParser", "RawConfigParser")
    }
    return Library(module, kinds | {"SafeConfigParser": kinds["ConfigParser"]})


def _platform(module: types.ModuleType) -> Library:
    def distribution(*_, **__) -> tuple[str, str, str]:
        found = module.freedesktop_os_release()
        return found.get("NAME", ""), found.get("VERSION_ID", ""), found.get("VERSION_CODENAME", "")

    return Library(module, {"linux_distribution": distribution, "dist": distribution})


def _old(names):
    """A wrapper with these old names, or with those that a function finds for the module."""
    return lambda module: Library(module, names(module) if callable(names) else names)


def _base64(module: types.ModuleType) -> dict[str, Any]:
    return {"encodestring": module.encodebytes, "decodestring": module.decodebytes}


def _cgi_names() -> types.ModuleType:
    module: Any = types.ModuleType("cgi")
    module.escape = lambda text, quote=None: html.escape(text, bool(quote))
    return module


# The wrappers of libraries, by name.
LIBRARIES = {
    "numpy": _numpy,
    "numpy.linalg": _linalg,
    "numpy.lib": lambda module: Library(module, {"pad": np.pad}, _numpy_s),
    "math": _math,
    "pylab": _pylab,
    "matplotlib.pylab": _pylab,
    "matplotlib.pyplot": _old(old_pictures.pyplot_names),
    "matplotlib.cm": _old(old_pictures.maps),
    "numpy.random": lambda module: Library(module, {}, _numpy_s),
    "scipy": lambda module: Library(module, {}, more=[library("numpy")]),
    "yaml": _yaml,
    "pickle": _pickle,
    "string": _string,
    "h5py": _hdf5,
    "random": _old(lambda module: old_random.names()),
    "importlib": _old({"import_module": old_modules.import_module}),
    "runpy": _old({"run_path": old_modules.run_path}),
    "csv": _old(old_modules.CSV),
    "struct": _old(old_modules.STRUCT),
    "hmac": _old({"new": old_modules.new_hmac}),
    "json": _old(old_modules.json_names),
    "types": _old(old_modules.TYPES),
    "base64": _old(_base64),
    "platform": _platform,
    "configparser": _config,
    "operator": _old({"div": operator.floordiv, "isCallable": callable, "sequenceIncludes": operator.contains}),
    "os.path": _old({"walk": old_modules.walk}),
    "scipy.misc": _old(old_pictures.MISC),
    "skimage.transform": _old(old_pictures.transform_names),
    "urllib": _urllib,
    "collections": lambda module: Library(module, {}, more=[importlib.import_module("collections.abc")]),
    "itertools": _old({"izip": zip, "imap": _imap, "ifilter": filter, "izip_longest": itertools.zip_longest,
                       "ifilterfalse": itertools.filterfalse}),
    "os": _old({"getcwdu": os.getcwd, "errno": errno}),
    "sys": _old({"maxint": sys.maxsize, "setdefaultencoding": lambda name: None, "exc_clear": lambda: None,
                 "setcheckinterval": lambda count: None}),
    "time": _old({"clock": time.perf_counter}),
    "inspect": _old({"getargspec": old_modules.getargspec}),
    "fractions": _old({"gcd": math.gcd}),
    "PIL.Image": _old(old_pictures.image_names),
    "cv2": _old(old_pictures.cv2_names),
    "cv2.cv": lambda module: module,
    **{name: _old(old_pictures.CROSS_VALIDATION) for name in ("sklearn.cross_validation",)},
}  # fmt: skip
# Modules that are made here: they are gone, or hold other things today.
MADE = {
    "StringIO": lambda: Library(types.ModuleType("StringIO"), {"StringIO": StringIO}),
    "imp": lambda: Library(types.ModuleType("imp"), old_modules.IMP),
    "commands": lambda: Library(types.ModuleType("commands"), old_modules.COMMANDS),
    "md5": lambda: old_modules.digest_module("md5"),
    "sha": lambda: old_modules.digest_module("sha"),
    "sets": old_modules.sets_module,
    "exceptions": old_modules.exceptions_module,
    "cgi": _cgi_names,
    "scipy.misc": lambda: Library(types.ModuleType("scipy.misc"), old_pictures.MISC),
    "cv2.cv": lambda: old_pictures.cv(importlib.import_module("cv2")),
}
# Renamed modules, besides those that fissix knows.
MOVED = {
    "cPickle": "pickle",
    "cStringIO": "StringIO",
    "urllib2": "urllib",
    "urlparse": "urllib",
    "Image": "PIL.Image",
    "ImageDraw": "PIL.ImageDraw",
    "ImageFont": "PIL.ImageFont",
    "xml.etree.cElementTree": "xml.etree.ElementTree",
    **{name: name for name in MADE},
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
    try:
        if name in ("StringIO", "imp", "commands", "cgi"):
            return MADE[name]()
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        if name in MADE:
            return MADE[name]()
        if name not in old_pictures.GONE:
            raise
        importlib.import_module(name.partition(".")[0])
        module = old_pictures.joined(name, *old_pictures.GONE[name])
    if name in LIBRARIES:
        return LIBRARIES[name](module)
    has_inner = any(other.startswith(f"{name}.") for other in (*LIBRARIES, *old_pictures.GONE))
    return Library(module, {}) if has_inner else module
