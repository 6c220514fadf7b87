"""Python 2's builtins, its division and the methods that its types had."""

from __future__ import annotations
import __future__

import base64
import binascii
import builtins
import codecs
import decimal
import functools
import importlib
import io
import math
import operator
import sys
import warnings
from collections.abc import ItemsView, KeysView, ValuesView
from pathlib import Path

import numpy as np

from .old_numpy import (
    OF_NUMPY,
    augment,
    by_value,
    by_value_in_place,
    equal,
    formatted,
    item,
    scalar,
    store,
    typed,
    unequal,
)

# By ast's operator: the name of operator.iadd and the like.
AUGMENTED = {"Add": "add", "Sub": "sub", "Mult": "mul", "Mod": "mod", "Pow": "pow", "FloorDiv": "floordiv",
             "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "lshift", "RShift": "rshift",
             "Div": "truediv"}  # fmt: skip
_VIEWS = (type({}.keys()), type({}.values()), type({}.items()), KeysView, ValuesView, ItemsView)


def _is_whole(value) -> bool:
    """Is it an integer, or an array of integers?"""
    kind = type(value)
    if kind is float:
        return False
    return (
        kind is int
        or isinstance(value, int | np.integer | np.bool_)
        or (isinstance(value, np.ndarray) and value.dtype.kind in "iub")
    )


def divided(a, b):
    """Python 2's `a / b`: rounded down if both are integers, including numpy's. uint64 and int are floats together."""
    if isinstance(a, OF_NUMPY) or isinstance(b, OF_NUMPY):
        a, b = typed(a, b)
        if _is_whole(a) and _is_whole(b) and np.result_type(a, b).kind == "f":
            return np.true_divide(a, b)
    return a // b if _is_whole(a) and _is_whole(b) else a / b


def divide(a, b):
    """Python 2's `a /= b`. An array is divided in place."""
    if isinstance(a, np.ndarray):
        a_divides = np.floor_divide if _is_whole(a) and _is_whole(b) else np.true_divide
        a_divides(a, typed(a, b)[1], out=a)
        return a
    return divided(a, b)


def divided_unsure(a, b):
    """Like `divided`, for a file that may be Python 3: warns once per line where it makes a difference."""
    if _is_whole(a) and _is_whole(b) and np.any(np.mod(a, b) if np.all(b) else False):
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        warnings.warn(f"{where}: `/` of integers rounds down, as in Python 2. If this is a Python 3 file, say so in "
                      "its first line: #!/usr/bin/env python3", stacklevel=2)  # fmt: skip
    return divided(a, b)


class _Short(float):
    """A float whose text has twelve digits, as Python 2's had."""

    def __str__(self) -> str:
        text = f"{float(self):.12g}"
        return f"{text}.0" if text.lstrip("-").isdigit() else text


def shortened(value):
    """The value, with Python 2's text if it is a float."""
    return _Short(value) if type(value) is float else value


def _of_text(values):
    """What `text % values` gets."""
    if type(values) is dict:
        return {name: shortened(value) for name, value in values.items()}
    return tuple(map(shortened, values)) if isinstance(values, tuple) else shortened(values)


def printed(*values, **named):
    """print"""
    builtins.print(*map(shortened, values), **named)


def true(value) -> bool:
    """What `if` asks: an array without elements was false until numpy 2.2."""
    return bool(value.size and value) if isinstance(value, np.ndarray) else bool(value)


# int(x) and float(x) also of an array with one element, as in numpy until 2.4, and str(x) with Python 2's digits.
_TYPES = (
    (int, lambda value: int(scalar(value))),
    (float, lambda value: float(scalar(value))),
    (str, lambda value: str(shortened(value))),
)


def old_type(function):
    """What a call of int, float or str runs; other functions, also a file's own of that name, run themselves."""
    return next((old for kind, old in _TYPES if function is kind), function)


def _compared(compare):
    """Python 2's `a < b` and the like: None is less than anything else."""

    def call(a, b):
        try:
            return compare(a, b)
        except TypeError:
            if a is not None and b is not None:
                raise
            return compare(a is not None, b is not None)

    return call


def index(value):
    """A slice's bound: numpy before 1.12 accepted a whole float."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iu":
        return value.item()
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return int(value) if np.size(value) == 1 and value == int(value) else value
    return value


# ---------------------------------------------------------------------------------------------- methods


def _listed(method):
    """`d.keys()` as a list."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        found = method(*args, **kwargs)
        return list(found) if isinstance(found, _VIEWS) else found

    return call


def _decode(text: str):
    """str.decode: returns text unchanged; 'hex' and 'base64' are codecs of bytes."""

    def decode(encoding="ascii", errors="strict"):
        is_binary = encoding.lower() in ("hex", "base64", "zlib", "bz2")
        return codecs.decode(text.encode("latin-1"), encoding) if is_binary else text

    return decode


_OF_BYTES = {"hex": binascii.hexlify, "base64": base64.encodebytes}


def _encode(text: str):
    """str.encode: 'hex' and 'base64' make text."""

    def encode(encoding="ascii", errors="strict"):
        of_bytes = _OF_BYTES.get(encoding.lower())
        return own(encoding, errors) if of_bytes is None else of_bytes(text.encode("latin-1")).decode()

    own = text.encode
    return encode


def _sort(items: list):
    """list.sort(cmp, key, reverse)."""

    def sort(cmp=None, key=None, reverse=False):
        items.sort(key=functools.cmp_to_key(cmp) if cmp else key, reverse=reverse)

    return sort


# Methods that accepted strings and now need bytes: of LMDB transactions and cursors, and of protobuf messages.
_OF_LMDB = ("put", "get", "delete", "set_key", "set_range")
_OF_MESSAGES = ("ParseFromString", "MergeFromString", "FromString")


def _of_bytes(method):
    """The method, with text converted to bytes. Text that `opened` read becomes the file's bytes again."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        args = (arg.encode("utf-8", "surrogateescape") if isinstance(arg, str) else arg for arg in args)
        return method(*args, **kwargs)

    return call


# Old methods, by name, for objects that no longer have them.
METHODS = {
    "has_key": lambda owner: owner.__contains__,
    "iterkeys": lambda owner: lambda: iter(owner.keys()),
    "itervalues": lambda owner: lambda: iter(owner.values()),
    "iteritems": lambda owner: lambda: iter(owner.items()),
    "next": lambda owner: owner.__next__,
    "decode": _decode,
    "encode": None,
    "tostring": lambda owner: owner.tobytes,  # of numpy's and array's arrays
    "itemset": lambda owner: (
        lambda *given: owner.__setitem__(
            given[:-1]
            if len(given) > 2
            else np.unravel_index(*given[:-1], owner.shape)
            if given[:-1]
            else (),
            given[-1],
        )
    ),
    "newbyteorder": lambda owner: lambda order="S": owner.view(owner.dtype.newbyteorder(order)),
    "ptp": lambda owner: functools.partial(np.ptp, owner),
    "keys": None,
    "values": None,
    "items": None,
    "sort": None,
    **dict.fromkeys((*_OF_LMDB, *_OF_MESSAGES)),
}


def method(owner, name: str):
    """`owner.name`, as a method of Python 2."""
    if type(owner) is list and name == "sort":
        return _sort(owner)
    if type(owner) is str and name == "encode":
        return _encode(owner)
    try:
        own = getattr(owner, name)
    except AttributeError:
        make = METHODS[name]
        try:
            return make(owner) if make else getattr(owner, name)
        except AttributeError:
            raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}") from None
    if name in _OF_MESSAGES:
        return _of_bytes(own)
    if name in _OF_LMDB:
        lmdb = sys.modules.get("lmdb")
        return _of_bytes(own) if lmdb and isinstance(owner, lmdb.Transaction | lmdb.Cursor) else own
    return _listed(own) if name in ("keys", "values", "items") else own


# --------------------------------------------------------------------------------------------- builtins


class _File(io.TextIOWrapper):
    """A file that was opened as text, which also accepts bytes, and keeps bytes that are not text."""

    def write(self, text):
        return super().write(text.decode(self.encoding, self.errors) if isinstance(text, bytes) else text)


def opened(path, mode="r", *args, **kwargs):
    """open: mode 'U' is accepted; any bytes can be read as text; bytes may be written."""
    plain = mode.replace("U", "").replace("t", "")
    plain = plain if set(plain) & set("rwax") else "r" + plain
    if "b" in plain or args or kwargs:
        return builtins.open(path, plain, *args, **kwargs)
    newline = None if "U" in mode else "\n"
    binary = builtins.open(path, plain + "b")  # noqa: SIM115 - the text file closes it
    text = _File(binary, "utf-8", "surrogateescape", newline)
    vars(text)["mode"] = plain  # as builtins.open sets it
    return text


def rounded(number, ndigits=0):
    """round: returns a float; halves are rounded away from zero."""
    number = scalar(number)
    if not isinstance(number, float | int | np.number) or not math.isfinite(number):
        return builtins.round(number, ndigits)
    exponent = decimal.Decimal(1).scaleb(-ndigits)
    with decimal.localcontext(decimal.Context(prec=400)):
        return float(decimal.Decimal(float(number)).quantize(exponent, decimal.ROUND_HALF_UP))


def ordered(items, cmp=None, key=None, reverse=False):
    """sorted, with `cmp`."""
    return builtins.sorted(items, key=functools.cmp_to_key(cmp) if cmp else key, reverse=reverse)


def mapped(function, *several):
    """map: a list; None pairs."""
    function = old_type(function)
    return list(map(function, *several)) if function else list(zip(*several, strict=False))


def evaluated(text, names=None, local_names=None):
    """eval: text is read as Python 2."""
    return _run(text, "eval", names, local_names)


def executed(text, names=None, local_names=None) -> None:
    """exec: text is read as Python 2."""
    _run(text, "exec", names, local_names)


def _run(text, mode: str, names, local_names):
    from .convert import converted

    frame = sys._getframe(2)
    while frame.f_globals is globals() and frame.f_back is not None:  # map(eval, texts) calls it from here
        frame = frame.f_back
    if isinstance(text, str):
        divides = not frame.f_code.co_flags & __future__.division.compiler_flag
        text = converted(text.strip(" \t") if mode == "eval" else text, mode, divides)
    if names is None:
        names, local_names = frame.f_globals, frame.f_locals
    if "__builtins__" not in names:
        names["__builtins__"] = frame.f_builtins
    return (builtins.eval if mode == "eval" else builtins.exec)(text, names, local_names)


def run_file(path, globals_=None, locals_=None):
    """execfile."""
    from .convert import compiled

    names = globals_ if globals_ is not None else sys._getframe(1).f_globals
    exec(compiled(Path(path)).code, names, locals_)


OLD_BUILTINS = {
    "xrange": lambda *bounds: range(*map(scalar, bounds)),
    "unicode": str,
    "long": int,
    "basestring": (str, bytes),
    "raw_input": input,
    "unichr": chr,
    "reduce": functools.reduce,
    "reload": lambda module: module if module is sys or module.__name__ == "sys" else importlib.reload(module),
    "cmp": lambda a, b: (a > b) - (a < b),
    "execfile": run_file,
    "eval": evaluated,
    "exec": executed,
    "print": printed,
    "apply": lambda function, args=(), named=None: function(*args, **(named or {})),
    "intern": sys.intern,
    "__type__": old_type,
    "__true__": true,
    "file": opened,
    "open": opened,
    "round": rounded,
    "sorted": ordered,
    "map": mapped,
    "range": lambda *bounds: list(range(*map(scalar, bounds))),
    "zip": lambda *several: list(zip(*several, strict=False)),
    "filter": lambda function, items: (
        type(items)(filter(function, items)) if isinstance(items, tuple) else
        "".join(filter(function, items)) if isinstance(items, str) else list(filter(function, items))
    ),
    "__divided__": divided,
    "__divide__": divide,
    **{f"__i{name}__": by_value_in_place(getattr(operator, f"i{name}")) for name in AUGMENTED.values()},
    **{f"__{kind}__": by_value(getattr(operator, f"__{name}__")) for kind, name in AUGMENTED.items()},
    "divmod": by_value(divmod),
    "pow": lambda a, b, *modulus: pow(a, b, *modulus) if modulus else OLD_BUILTINS["__Pow__"](a, b),
    "sum": lambda items, start=0: functools.reduce(OLD_BUILTINS["__Add__"], items, start),
    "__item__": item,
    "__store__": store,
    "__augment__": augment,
    "__Mod__": lambda a, b: formatted(a, _of_text(b) if isinstance(a, str) else b),
    "__Eq__": equal,
    "__NotEq__": unequal,
    "__Lt__": _compared(by_value(operator.lt)),
    "__LtE__": _compared(by_value(operator.le)),
    "__Gt__": _compared(by_value(operator.gt)),
    "__GtE__": _compared(by_value(operator.ge)),
    "__index__": index,
    "__slice__": slice,
    "__method__": method,
}  # fmt: skip
