"""Python 2's builtins, and its division."""

from __future__ import annotations
import __future__

import builtins
import decimal
import functools
import importlib
import math
import operator
import sys
import warnings
from pathlib import Path

import numpy as np

from .literals import as_text
from .methods import attribute_of, method
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
from .order import by_order, compare, greatest, least, less
from .printing import printed, represented, shortened, shown
from .text import callee, each, ended, opened, set_attribute, text, until, within

# By ast's operator: the name of operator.iadd and the like.
AUGMENTED = {"Add": "add", "Sub": "sub", "Mult": "mul", "Mod": "mod", "Pow": "pow", "FloorDiv": "floordiv",
             "BitAnd": "and", "BitOr": "or", "BitXor": "xor", "LShift": "lshift", "RShift": "rshift",
             "Div": "truediv"}  # fmt: skip


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
    if isinstance(a, OF_NUMPY) or isinstance(b, OF_NUMPY) or (_is_whole(a) and _is_whole(b)):
        return divided(a, b)
    return operator.itruediv(a, b)


def divided_unsure(a, b):
    """Like `divided`, for a file that may be Python 3: warns once per line where it makes a difference."""
    if _is_whole(a) and _is_whole(b) and np.any(np.mod(a, b) if np.all(b) else False):
        frame = sys._getframe(1)
        where = f"{frame.f_code.co_filename}, line {frame.f_lineno}"
        warnings.warn(f"{where}: `/` of integers rounds down, as in Python 2. If this is a Python 3 file, say so in "
                      "its first line: #!/usr/bin/env python3", stacklevel=2)  # fmt: skip
    return divided(a, b)


def _of_text(values):
    """What `text % values` gets."""
    if type(values) is dict:
        return {name: shortened(value) for name, value in values.items()}
    return tuple(map(shortened, values)) if isinstance(values, tuple) else shortened(values)


def true(value) -> bool:
    """What `if` asks: an array without elements was false until numpy 2.2."""
    return bool(value.size and value) if isinstance(value, np.ndarray) else bool(value)


# int(x) and float(x) also of an array with one element, as in numpy until 2.4, and str(x) with Python 2's digits.
_TYPES = (
    (int, lambda value: int(scalar(value))),
    (float, lambda value: float(scalar(value))),
    (str, lambda value: as_text(bytes(value)) if isinstance(value, bytearray | memoryview) else shown(value)),
)


def old_type(function):
    """What a call of int, float or str runs; other functions, also a file's own of that name, run themselves."""
    return next((old for kind, old in _TYPES if function is kind), function)


def index(value):
    """A slice's bound: numpy before 1.12 accepted a whole float."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iu":
        return value.item()
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return int(value) if np.size(value) == 1 and value == int(value) else value
    return value


# --------------------------------------------------------------------------------------------- builtins


def rounded(number, ndigits=0):
    """round: returns a float; halves are rounded away from zero."""
    number = scalar(number)
    if not isinstance(number, float | int | np.number) or not math.isfinite(number):
        return builtins.round(number, ndigits)
    exponent = decimal.Decimal(1).scaleb(-ndigits)
    with decimal.localcontext(decimal.Context(prec=400)):
        return float(decimal.Decimal(float(number)).quantize(exponent, decimal.ROUND_HALF_UP))


def mapped(function, *several):
    """map: a list; None pairs."""
    function = old_type(function)
    return list(map(function, *several)) if function else list(zip(*several, strict=False))


def filtered(function, items):
    """filter: a tuple, a string or a list."""
    if isinstance(items, str):
        return "".join(filter(function, items))
    return tuple(filter(function, items)) if isinstance(items, tuple) else list(filter(function, items))


def unicode(value="", encoding=None, errors="strict") -> str:
    """unicode(x)"""
    if encoding is not None and isinstance(value, str):
        return method(value, "decode")(encoding, errors)
    own = getattr(type(value), "__unicode__", None)
    return str(shortened(value)) if own is None else own(value)


def old_unicode(function):
    """What a call of the name unicode runs."""
    return unicode if function is str else function


def character(code: int) -> str:
    """chr: a byte."""
    if not 0 <= code < 256:
        raise ValueError("chr() arg not in range(256)")
    return chr(code) if code < 128 else chr(0xDC00 + code)


def code_of(text: str) -> int:
    """ord: also of a byte."""
    code = ord(text)
    return code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code


def in_base(digits, before: str, today: int):
    """hex or oct, with Python 2's 0 and L."""

    def call(number):
        own = getattr(type(number), f"__{digits.__name__}__", None)
        if own is not None:
            return own(number)
        number = operator.index(number)
        text = (
            ("-" if number < 0 else "")
            + (before if number or before == "0x" else "")
            + digits(abs(number))[today:]
        )
        return text if -sys.maxsize - 1 <= number <= sys.maxsize else f"{text}L"

    return call


def old_class(cls: type) -> type:
    """A class with today's names of Python 2's methods, and with the hash that it inherits."""
    own = vars(cls)
    for old, new in _RENAMED:
        if old in own and new not in own:
            setattr(cls, new, own[old])
    if "__getslice__" in own:
        cls.__getitem__ = _by_slices(own["__getslice__"], own.get("__getitem__"))  # ty: ignore
    if "__cmp__" in own:
        for name, compares in _COMPARES.items():
            if name not in own:
                setattr(cls, name, compares)
    if own.get("__hash__", 0) is None:
        del cls.__hash__
    return cls


def _by_cmp(compares):
    return lambda self, other: compares(self.__cmp__(other), 0)


def _by_slices(get_slice, get_item):
    """__getitem__ of a class with __getslice__."""

    def get(self, index):
        if isinstance(index, slice) and index.step is None:
            low = 0 if index.start is None else index.start
            return get_slice(self, low, sys.maxsize if index.stop is None else index.stop)
        if get_item is None:
            raise TypeError(f"{type(self).__name__!r} object is not subscriptable")
        return get_item(self, index)

    return get


_RENAMED = (("next", "__next__"), ("__nonzero__", "__bool__"), ("__div__", "__truediv__"), ("__rdiv__", "__rtruediv__"),
            ("__idiv__", "__itruediv__"), ("__long__", "__int__"))  # fmt: skip
_COMPARES = {f"__{name}__": _by_cmp(getattr(operator, name)) for name in ("lt", "le", "eq", "ne", "gt", "ge")}


def code_of_text(source, filename="<string>", mode="exec", *args, **named):
    """compile: text is read as Python 2."""
    from .convert import converted

    if not isinstance(source, str):
        return builtins.compile(source, filename, mode, *args, **named)
    divides = not sys._getframe(1).f_code.co_flags & __future__.division.compiler_flag
    return converted(source.strip(" \t") if mode == "eval" else source, mode, divides, filename)


def contours(found, count: int):
    """cv2.findContours, which gave the picture, too, in OpenCV 3."""
    return (None, *found) if count == 3 and len(found) == 2 else tuple(found)[-count:]


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
    "chr": character,
    "ord": code_of,
    "bytes": str,
    "StandardError": Exception,
    "__within__": within,
    "repr": represented,
    "buffer": lambda value, offset=0, size=-1: (value if isinstance(value, str) else memoryview(value))[
        offset : None if size < 0 else offset + size
    ],
    "coerce": lambda a, b: (a + type(b)(0), b + type(a)(0)),
    "input": lambda prompt="": evaluated(input(prompt), sys._getframe(1).f_globals, sys._getframe(1).f_locals),
    "oct": in_base(oct, "0", 2),
    "hex": in_base(hex, "0x", 2),
    "format": lambda value, spec="": format(value if spec else shortened(value), spec),
    "compile": code_of_text,
    "min": least,
    "max": greatest,
    "__text__": text,
    "__each__": each,
    "__callee__": callee,
    "__until__": until,
    "__ended__": ended,
    "__set__": set_attribute,
    "__attribute__": attribute_of,
    "__unicode__": old_unicode,
    "__old_class__": old_class,
    "__contours__": contours,
    "reduce": functools.reduce,
    "reload": lambda module: module if module is sys or module.__name__ == "sys" else importlib.reload(module),
    "cmp": compare,
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
    "sorted": by_order,
    "map": mapped,
    "range": lambda *bounds: list(range(*map(scalar, bounds))),
    "zip": lambda *several: list(zip(*several, strict=False)),
    "filter": filtered,
    "__divided__": divided,
    "__divide__": divide,
    **{f"__i{name}__": by_value_in_place(getattr(operator, f"i{name}")) for name in AUGMENTED.values()},
    **{f"__{kind}__": by_value(getattr(operator, f"__{name}__")) for kind, name in AUGMENTED.items()},
    "divmod": by_value(divmod),
    "pow": lambda a, b, *modulus: pow(a, b, *modulus) if modulus else OLD_BUILTINS["__Pow__"](a, b),
    "sum": lambda items, start=0: functools.reduce(OLD_BUILTINS["__Add__"], items, start),
    "__item__": lambda owner, index: text(item(owner, index)),
    "__store__": store,
    "__augment__": augment,
    "__Mod__": lambda a, b: formatted(a, _of_text(b) if isinstance(a, str) else b),
    "__Eq__": equal,
    "__NotEq__": unequal,
    "__Lt__": less(by_value(operator.lt), operator.lt),
    "__LtE__": less(by_value(operator.le), operator.le),
    "__Gt__": less(by_value(operator.gt), operator.gt),
    "__GtE__": less(by_value(operator.ge), operator.ge),
    "__index__": index,
    "__slice__": slice,
    "__method__": method,
}  # fmt: skip
