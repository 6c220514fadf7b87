"""Methods, attributes and keywords that Python 2's types and old libraries had."""

from __future__ import annotations

import base64
import binascii
import codecs
import functools
import io
import string
from collections.abc import Callable, ItemsView, KeysView, ValuesView
from types import FunctionType
from typing import Any

import numpy as np

from .literals import as_bytes, as_text
from .order import by_order
from .printing import forget_comma, shortened
from .text import as_written, characters, of_hdf5, with_bytes

_VIEWS = (type({}.keys()), type({}.values()), type({}.items()), KeysView, ValuesView, ItemsView)

# ---------------------------------------------------------------------------------------------- of text


def _decode(text: str, _=None):
    """str.decode: its bytes, decoded. 'hex' and 'base64' are codecs of bytes."""

    def decode(encoding="ascii", errors="strict"):
        if encoding.lower() in ("string_escape", "string-escape"):
            return as_text(codecs.escape_decode(as_bytes(text))[0])
        if text.isascii() and codecs.lookup(encoding).name in ("ascii", "utf-8", "iso8859-1"):
            return text
        return codecs.decode(as_bytes(text), encoding, errors)

    return decode


_OF_BYTES = {"hex": binascii.hexlify, "base64": base64.encodebytes}


def _encode(text: str, own):
    """str.encode: 'hex' and 'base64' make text."""

    def encode(encoding="ascii", errors="strict"):
        if encoding.lower() in ("string_escape", "string-escape"):
            return as_text(codecs.escape_encode(as_bytes(text))[0])
        if encoding.lower() in ("rot13", "rot-13", "rot_13"):
            return str(codecs.getencoder(encoding)(text)[0])
        of_bytes = _OF_BYTES.get(encoding.lower())
        if of_bytes is not None:
            return of_bytes(as_bytes(text)).decode()
        is_codec_of_bytes = encoding.lower() in ("zlib", "bz2")
        return codecs.encode(as_bytes(text), encoding) if is_codec_of_bytes else own(encoding, errors)  # ty: ignore[no-matching-overload]

    return encode


class _Formatter(string.Formatter):
    """'{}'.format: floats have twelve digits, as Python 2's str gave them."""

    def format_field(self, value, format_spec):
        return format(shortened(value) if not format_spec else value, format_spec)

    def convert_field(self, value, conversion):
        return super().convert_field(shortened(value) if conversion == "s" else value, conversion)


def _format(text: str, _):
    return lambda *args, **named: _Formatter().vformat(text, args, named)


def _translate(text: str, own):
    """str.translate(table, deletions)"""

    def translate(table, deletions=""):
        kept = "".join(c for c in text if c not in deletions) if deletions else text
        return kept if table is None else kept.translate(table)

    return translate


def _sort(items: list, _):
    """list.sort(cmp, key, reverse)."""

    def sort(cmp=None, key=None, reverse=False):
        items[:] = by_order(items, cmp, key, reverse)

    return sort


# -------------------------------------------------------------------------------------------- of others


def _listed(_, method):
    """`d.keys()` as a list."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        found = method(*args, **kwargs)
        return list(found) if isinstance(found, _VIEWS) else found

    return call


def _read(owner, method):
    """file.read(n): so many bytes are so many characters."""
    if not isinstance(owner, io.BufferedIOBase | io.RawIOBase):
        return method
    return lambda size=-1: method(size) if size is None or size < 0 else characters(method(size))


def _write(owner, method):
    """file.write: the next print writes no blank first."""
    forget_comma(owner)
    return method


def _communicate(owner, method):
    """Popen.communicate(text)"""
    streams = (owner.stdin, owner.stdout, owner.stderr) if hasattr(owner, "stdin") else ()
    if any(isinstance(stream, io.TextIOBase) for stream in streams):
        return method
    return lambda input=None, *args: method(as_bytes(input) if isinstance(input, str) else input, *args)


def _binary(_, method):
    """A method that gives binary data."""
    return lambda *args, **named: characters(method(*args, **named))


def _to_bytes(owner):
    """tostring: of arrays and pictures. An array of text has as many bytes as in Python 2."""
    if isinstance(owner, np.ndarray) and owner.dtype.kind == "U":
        encoded = np.array([as_bytes(value) for value in owner.flat], f"S{owner.dtype.itemsize // 4}")
        return lambda *_: encoded.tobytes()
    return _binary(owner, owner.tobytes)


def _of_hdf5(owner, method):
    """create_dataset and the like: arrays of text are written as bytes."""
    if not of_hdf5(owner):
        return method
    return lambda *args, **named: method(
        *map(as_written, args), **{name: as_written(value) for name, value in named.items()}
    )


def _projected(owner, method):
    """gca(projection="3d")"""
    return lambda **named: (
        (getattr(owner, "subplot", None) or owner.add_subplot)(**named) if named else method()
    )


# Methods that exist, and do what they did: from the owner and its method.
CHANGED: dict[str, Callable] = {
    "keys": _listed,
    "values": _listed,
    "items": _listed,
    "read": _read,
    "write": _write,
    "communicate": _communicate,
    "recv": _binary,
    "digest": _binary,
    "tobytes": _binary,
    "create_dataset": _of_hdf5,
    "require_dataset": _of_hdf5,
    "create": _of_hdf5,
    "modify": _of_hdf5,
    "gca": _projected,
}
# Those of str and list alone.
_OF_TEXT = {"encode": _encode, "format": _format, "translate": _translate}


def _itemset(owner):
    def itemset(*given):
        place = given[:-1]
        if len(place) == 1:
            place = np.unravel_index(place[0], owner.shape) if not isinstance(place[0], tuple) else place[0]
        owner[place] = given[-1]

    return itemset


def _size_of_text(owner):
    """draw.textsize(text)"""

    def textsize(text, font=None, *args, **kwargs):
        return tuple(map(int, owner.textbbox((0, 0), text, font, **kwargs)[2:]))

    return textsize


def _size_by_font(owner):
    """font.getsize(text)"""
    return lambda text, *args, **kwargs: tuple(map(int, owner.getbbox(text, *args, **kwargs)[2:]))


def _rgb(owner):
    """canvas.tostring_rgb()"""
    return lambda: np.asarray(owner.buffer_rgba())[..., :3].tobytes()


def _named(name: str):
    return lambda owner: getattr(owner, name)


# Old methods, by name, for objects that no longer have them.
METHODS: dict[str, Any] = {
    "has_key": lambda owner: owner.__contains__,
    "iterkeys": lambda owner: lambda: iter(owner.keys()),
    "itervalues": lambda owner: lambda: iter(owner.values()),
    "iteritems": lambda owner: lambda: iter(owner.items()),
    "next": _named("__next__"),
    "decode": _decode,
    "tostring": _to_bytes,
    "fromstring": lambda owner: functools.partial(with_bytes, owner.frombytes),
    "itemset": _itemset,
    "newbyteorder": lambda owner: lambda order="S": owner.view(owner.dtype.newbyteorder(order)),
    "ptp": lambda owner: functools.partial(np.ptp, owner),
    "getchildren": lambda owner: lambda: list(owner),
    "getiterator": _named("iter"),
    "isAlive": _named("is_alive"),
    "readfp": _named("read_file"),
    "as_matrix": _named("to_numpy"),
    "assertEquals": _named("assertEqual"),
    "textsize": _size_of_text,
    "multiline_textsize": _size_of_text,
    "getsize": _size_by_font,
    "hold": lambda owner: lambda *_: owner.plot and None,
    "ishold": lambda owner: lambda: owner.plot is not None,
    "set_axis_bgcolor": _named("set_facecolor"),
    "get_axis_bgcolor": _named("get_facecolor"),
    "set_window_title": lambda owner: owner.manager.set_window_title,
    "tostring_rgb": _rgb,
    "sort": None,
    **dict.fromkeys((*CHANGED, *_OF_TEXT)),
}
# Methods that only Python 2 had, which a file may also name without calling them.
UNCALLED = frozenset(("has_key", "iterkeys", "itervalues", "iteritems", "next"))


def method(owner, name: str):
    """`owner.name`, as a method of Python 2."""
    if type(owner) is list and name == "sort":
        return _sort(owner, None)
    if type(owner) is str and name in _OF_TEXT:
        return _OF_TEXT[name](owner, getattr(owner, name))
    try:
        own = getattr(owner, name)
    except AttributeError:
        make = METHODS[name]
        try:
            return make(owner) if make else getattr(owner, name)
        except AttributeError:
            raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}") from None
    return CHANGED[name](owner, own) if name in CHANGED else own


# ------------------------------------------------------------------------------- attributes and keywords


def _message(error):
    if not isinstance(error, BaseException):
        raise AttributeError
    return error.args[0] if len(error.args) == 1 else ""


def _value(dataset):
    if not of_hdf5(dataset):
        raise AttributeError
    return dataset[()]


def _function(owner):
    if not isinstance(owner, FunctionType):
        raise AttributeError
    return owner


# Old attributes, by name, for objects that no longer have them.
ATTRIBUTES: dict[str, Callable] = {
    "message": _message,
    "value": _value,
    "func_name": _named("__name__"),
    "func_code": _named("__code__"),
    "func_defaults": _named("__defaults__"),
    "func_doc": _named("__doc__"),
    "func_globals": _named("__globals__"),
    "func_dict": _named("__dict__"),
    "im_func": lambda owner: getattr(owner, "__func__", None) or _function(owner),
    "im_self": lambda owner: getattr(owner, "__self__", None),
    "im_class": lambda owner: type(owner.__self__),
}


def attribute_of(owner, name: str):
    """`owner.name`, also if only Python 2 had it."""
    try:
        return getattr(owner, name)
    except AttributeError as error:
        try:
            return ATTRIBUTES[name](owner)
        except AttributeError:
            raise error from None


# Renamed keywords, by a method's name.
_COLOUR, _DENSITY = {"axisbg": "facecolor"}, {"normed": "density"}
KEYWORDS = {
    "subplot": _COLOUR,
    "axes": _COLOUR,
    "add_subplot": _COLOUR,
    "add_axes": _COLOUR,
    "hist": _DENSITY,
    "hist2d": _DENSITY,
    "bar": {"left": "x"},
    "barh": {"bottom": "y"},
}
