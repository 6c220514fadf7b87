"""No bytes in a file of Python 2: what libraries give as bytes is text there, and those that take bytes get them.

`text` is called on what a file's expressions give, `each` on what its loops go through, `callee` on what it calls.
"""

from __future__ import annotations

import functools
import io
import re
import struct
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from .literals import as_bytes, as_text

_as_texts: Any = np.frompyfunc(as_text, 1, 1)


def _of_array(array: np.ndarray) -> np.ndarray:
    """An array of bytes as an array of text; also HDF5's objects."""
    if array.dtype.kind == "S":
        return (
            _as_texts(array).astype(f"U{max(array.dtype.itemsize, 1)}") if array.size else array.astype("U")
        )
    if array.dtype.kind == "O" and array.size and isinstance(array.flat[0], bytes):
        made = np.empty_like(array)
        made.flat[:] = [text(value) for value in array.flat]
        return made
    return array


def _of_list(values: list) -> list:
    first = values[0] if values else None
    if isinstance(first, bytes | np.str_ | tuple | np.ndarray) and text(first) is not first:
        return [text(value) for value in values]
    return values


def _of_tuple(values: tuple) -> tuple:
    made = tuple(map(text, values))
    return values if all(map(_same, made, values)) else made


def _same(a, b) -> bool:
    return a is b


_MAKE: dict[type, Callable] = {
    bytes: as_text,
    np.bytes_: as_text,
    np.str_: str,
    tuple: _of_tuple,
    list: _of_list,
    np.ndarray: _of_array,
}


def text(value):
    """The value, as text if it is bytes; also the bytes of a tuple, a list or an array."""
    make = _MAKE.get(type(value))
    return value if make is None else make(value)


def characters(data):
    """Binary data as text with one character for each byte, whatever it could mean."""
    return data.decode("ascii", "surrogateescape") if isinstance(data, bytes) else data


def as_written(value):
    """An array of text as an array of bytes, which HDF5 files have."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        value = np.array(value)
    if not isinstance(value, np.ndarray) or value.dtype.kind != "U":
        return value
    found = [as_bytes(each) for each in value.flat]
    width = max(value.dtype.itemsize // 4, max(map(len, found), default=1), 1)
    return np.array(found, f"S{width}").reshape(value.shape)


def of_hdf5(owner) -> bool:
    """Is it h5py's?"""
    return any(kind.__module__.startswith("h5py") for kind in type(owner).__mro__)


def set_attribute(value, owner, name: str) -> None:
    """`owner.name = value`: a message's field of bytes takes text."""
    try:
        setattr(owner, name, value)
    except TypeError:
        if not isinstance(value, str):
            raise
        setattr(owner, name, as_bytes(value))


# ------------------------------------------------------------------------------------------------- loops

_WITHOUT_BYTES = {list, tuple, dict, str, set, frozenset, range, zip, map, filter, enumerate, reversed}


def each(values, unpacks: bool = False):
    """What a loop goes through, with text for bytes.

    Args:
        unpacks: the loop unpacks its items: a row of a table becomes a tuple.
    """
    kind = type(values)
    if kind in _WITHOUT_BYTES or (isinstance(values, np.ndarray) and values.dtype.kind not in "SUOV"):
        return values
    if (
        not hasattr(kind, "__iter__")
        or hasattr(kind, "keys")
        or _is_users(kind)
        or _is_users_generator(values)
    ):
        return values
    return _texts(values, unpacks)


def within(values):
    """What `in` searches: the lines of a file of bytes are text."""
    return each(values) if isinstance(values, io.BufferedIOBase) else values


def _texts(values, unpacks: bool):
    for value in values:
        yield text(tuple(value) if unpacks and isinstance(value, np.void) else value)


def _is_users(kind: type) -> bool:
    return str(kind.__module__).startswith(("caffe_python_", "__main__"))


def _is_users_generator(values) -> bool:
    frame = getattr(values, "gi_frame", None)
    return frame is not None and "__text__" in frame.f_builtins


def until(function, end):
    """iter(function, end)"""
    return iter(lambda: text(function()), end)


def ended(generator):
    """A generator expression, which StopIteration ends."""
    try:
        yield from generator
    except RuntimeError as error:
        if not isinstance(error.__cause__, StopIteration):
            raise


# ------------------------------------------------------------------------------------------------- calls

# What a function says that wanted bytes.
_WANTED = re.compile(
    r"bytes|buffer|not '?str'?\b|[Uu]nicode|encoded before|use a str|without an encoding|bad argument type"
)
# Modules in Python whose functions refuse text before they do anything.
_REFUSE_FIRST = {"base64", "hmac", "hashlib", "gzip", "bz2", "lzma", "tempfile", "zipfile", "urllib", "PIL",
                 "codecs", "binascii", "quopri", "_compression", "h5py", "lmdb", "google", "None"}  # fmt: skip


def callee(function):
    """What `function(...)` calls: a library's function that wants bytes gets them for text."""
    kind = type(function)
    if kind in (FunctionType, MethodType):
        is_plain = str(function.__module__).partition(".")[0] not in _REFUSE_FIRST
    elif kind is BuiltinFunctionType:
        is_plain = type(function.__self__) in _WITHOUT_BYTES
    else:
        is_plain = kind is type and _is_users(function)
    return function if is_plain else functools.partial(with_bytes, function)


def with_bytes(function, *args, **named):
    """`function(*args, **named)`, and again with bytes for text if it says that it wants bytes."""
    try:
        return function(*args, **named)
    except (TypeError, struct.error) as error:
        return again(error, function, args, named)


def again(refused: Exception, function, args: tuple, named: dict[str, Any]):
    """The call that raised this error, with bytes for text. The error itself if that is not what it says."""
    if not _WANTED.search(str(refused)) or not _refused_first(refused):
        raise refused
    for args_, named_ in _encoded(args, named):
        try:
            return function(*args_, **named_)
        except (TypeError, struct.error):
            pass
    raise refused


def _refused_first(error: BaseException) -> bool:
    """Did the function itself refuse its arguments, before it did anything?"""
    trace = error.__traceback__
    while trace is not None and (trace := trace.tb_next) is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if module not in _REFUSE_FIRST:
            return False
    return True


def _encoded(args: tuple, named: dict[str, Any]):
    """The arguments with bytes for text: for one of them, and for all."""
    texts = [i for i, value in enumerate(args) if isinstance(value, str)]
    names = [name for name, value in named.items() if isinstance(value, str)]
    for i in texts:
        yield (*args[:i], as_bytes(args[i]), *args[i + 1 :]), named
    for name in names:
        yield args, named | {name: as_bytes(named[name])}
    if len(texts) + len(names) > 1:
        every = tuple(as_bytes(value) if isinstance(value, str) else value for value in args)
        yield every, named | {name: as_bytes(named[name]) for name in names}


# ------------------------------------------------------------------------------------------------- files


class _AcceptsText:
    """A file that was opened as binary, which also accepts text."""

    def write(self, data):
        return super().write(as_bytes(data) if isinstance(data, str) else data)  # ty: ignore[missing-attribute]

    def writelines(self, lines):
        for line in each(lines):
            self.write(line)


class _Written(_AcceptsText, io.BufferedWriter):
    pass


class _ReadAndWritten(_AcceptsText, io.BufferedRandom):
    pass


class TextFile(io.TextIOWrapper):
    """A file that was opened as text, which also accepts bytes, and keeps bytes that are not text."""

    def write(self, text):
        return super().write(text.decode(self.encoding, self.errors) if isinstance(text, bytes) else text)


def opened(path, mode="r", buffering=-1, **kwargs):
    """open: mode 'U' is accepted; any bytes can be read as text; bytes and text may be written."""
    plain = mode.replace("U", "").replace("t", "")
    plain = plain if set(plain) & set("rwax") else "r" + plain
    if "b" in plain and not kwargs and set(plain) & set("wax+"):
        made = _ReadAndWritten if "+" in plain else _Written
        return made(io.FileIO(path, plain.replace("b", "")))
    if "b" in plain or kwargs:
        return open(path, plain, buffering, **kwargs)
    newline = None if "U" in mode else "\n"
    binary = open(path, plain + "b")  # noqa: SIM115 - the text file closes it
    text = TextFile(binary, "utf-8", "surrogateescape", newline, buffering in (0, 1))
    vars(text)["mode"] = plain  # as builtins.open sets it
    return text
