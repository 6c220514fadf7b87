"""numpy 1.10 to 1.16: the names of `from numpy import *`, those that are gone, and the old rules of arrays."""

from __future__ import annotations

import ast
import math
import operator
import pickle
import warnings
from typing import Any

import numpy as np

from .literals import as_bytes
from .text import as_written, of_hdf5, with_bytes

# What `from numpy import *` brought: numpy's __all__ of 1.10 and 1.16, without divmod, which only 1.13 brought. Names
# of builtins, such as max, min, round, abs and pow, came later.
_NAMES = """
ALLOW_THREADS AxisError BUFSIZE CLIP ComplexWarning DataSource ERR_CALL ERR_DEFAULT ERR_IGNORE ERR_LOG ERR_PRINT
ERR_RAISE ERR_WARN FLOATING_POINT_SUPPORT FPE_DIVIDEBYZERO FPE_INVALID FPE_OVERFLOW FPE_UNDERFLOW False_ Inf
Infinity MAXDIMS MAY_SHARE_BOUNDS MAY_SHARE_EXACT MachAr ModuleDeprecationWarning NAN NINF NZERO NaN PINF PZERO
RAISE RankWarning SHIFT_DIVIDEBYZERO SHIFT_INVALID SHIFT_OVERFLOW SHIFT_UNDERFLOW ScalarType TooHardError True_
UFUNC_BUFSIZE_DEFAULT UFUNC_PYVALS_NAME VisibleDeprecationWarning WRAP __version__ absolute add add_docstring
add_newdoc add_newdoc_ufunc alen all allclose alltrue amax amin angle any append apply_along_axis apply_over_axes
arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array
array2string array_equal array_equiv array_repr array_split array_str asanyarray asarray asarray_chkfinite
ascontiguousarray asfarray asfortranarray asmatrix asscalar atleast_1d atleast_2d atleast_3d average bartlett
base_repr binary_repr bincount bitwise_and bitwise_not bitwise_or bitwise_xor blackman block bmat bool8 bool_
broadcast broadcast_arrays broadcast_to busday_count busday_offset busdaycalendar byte byte_bounds bytes_ c_
can_cast cast cbrt cdouble ceil cfloat char character chararray choose clip clongdouble clongfloat column_stack
common_type compare_chararrays complex128 complex256 complex64 complex_ complexfloating compress concatenate conj
conjugate convolve copy copysign copyto corrcoef correlate cos cosh count_nonzero cov cross csingle ctypeslib
cumprod cumproduct cumsum datetime64 datetime_as_string datetime_data deg2rad degrees delete deprecate
deprecate_with_doc diag diag_indices diag_indices_from diagflat diagonal diff digitize disp divide dot double dsplit
dstack dtype e ediff1d einsum einsum_path emath empty empty_like equal errstate euler_gamma exp exp2 expand_dims
expm1 extract eye fabs fastCopyAndTranspose fft fill_diagonal find_common_type finfo fix flatiter flatnonzero
flexible flip fliplr flipud float128 float16 float32 float64 float_ float_power floating floor floor_divide fmax
fmin fmod format_float_positional format_float_scientific format_parser frexp frombuffer fromfile fromfunction
fromiter frompyfunc fromregex fromstring full full_like fv gcd generic genfromtxt geomspace get_array_wrap
get_include get_printoptions getbuffer getbufsize geterr geterrcall geterrobj gradient greater greater_equal half
hamming hanning heaviside histogram histogram2d histogram_bin_edges histogramdd hsplit hstack hypot i0 identity
iinfo imag in1d index_exp indices inexact inf info infty inner insert int0 int16 int32 int64 int8 int_ int_asbuffer
intc integer interp intersect1d intp invert ipmt irr is_busday isclose iscomplex iscomplexobj isfinite isfortran
isin isinf isnan isnat isneginf isposinf isreal isrealobj isscalar issctype issubclass_ issubdtype issubsctype
iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linalg linspace little_endian load loads
loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logspace
longcomplex longdouble longfloat longlong lookfor ma mafromtxt mask_indices mat math matmul matrix maximum
maximum_sctype may_share_memory mean median memmap meshgrid mgrid min_scalar_type minimum mintypecode mirr mod modf
moveaxis msort multiply nan nan_to_num nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin
nanpercentile nanprod nanquantile nanstd nansum nanvar nbytes ndarray ndenumerate ndfromtxt ndim ndindex nditer
negative nested_iters newaxis newbuffer nextafter nonzero not_equal nper npv number obj2sctype object0 object_ ogrid
ones ones_like outer packbits pad partition percentile pi piecewise place pmt poly poly1d polyadd polyder polydiv
polyfit polyint polymul polysub polyval positive power ppmt printoptions prod product promote_types ptp put
put_along_axis putmask pv quantile r_ rad2deg radians random rank rate ravel ravel_multi_index real real_if_close
rec recarray recfromcsv recfromtxt reciprocal record remainder repeat require reshape resize result_type right_shift
rint roll rollaxis roots rot90 round_ row_stack s_ safe_eval save savetxt savez savez_compressed sctype2char
sctypeDict sctypeNA sctypes searchsorted select set_numeric_ops set_printoptions set_string_function setbufsize
setdiff1d seterr seterrcall seterrobj setxor1d shape shares_memory short show_config sign signbit signedinteger sin
sinc single singlecomplex sinh size sometrue sort sort_complex source spacing split sqrt square squeeze stack std
str_ string0 string_ subtract sum swapaxes take take_along_axis tan tanh tensordot tile timedelta64 trace
tracemalloc_domain transpose trapz tri tril tril_indices tril_indices_from trim_zeros triu triu_indices
triu_indices_from true_divide trunc typeDict typeNA typecodes typename ubyte ufunc uint uint0 uint16 uint32 uint64
uint8 uintc uintp ulonglong unicode0 unicode_ union1d unique unpackbits unravel_index unsignedinteger unwrap ushort
vander var vdot vectorize void void0 vsplit vstack where who zeros zeros_like
"""
STAR = _NAMES.split()


def names() -> dict[str, Any]:
    """Old names that numpy may no longer have, with their values."""
    found: dict[str, Any] = {name: kind for name, kind in _PLAIN.items()}
    found |= {name: np.inf for name in ("Inf", "Infinity", "infty", "PINF")}
    found |= {"NINF": -np.inf, "NaN": np.nan, "NAN": np.nan, "PZERO": 0.0, "NZERO": -0.0}
    found |= {new: getattr(np, old) for new, old in _RENAMED.items()}
    found |= {name: getattr(np.exceptions, name) for name in _EXCEPTIONS if hasattr(np, "exceptions")}
    found |= _NUMBERS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy itself warns of its old names
        found |= {name: getattr(np, name) for name in ("chararray",) if hasattr(np, name)}
    found["trapz"] = next(getattr(np, name) for name in ("trapezoid", "trapz") if hasattr(np, name))
    found["sctypes"] = {
        "int": [np.int8, np.int16, np.int32, np.int64],
        "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
        "float": [np.float16, np.float32, np.float64, np.longdouble],
        "complex": [np.complex64, np.complex128, np.clongdouble],
        "others": [bool, object, bytes, str, np.void],
    }
    found["typeDict"] = np.sctypeDict
    kinds = [kind for several in found["sctypes"].values() for kind in several]
    found["nbytes"] = {kind: np.dtype(kind).itemsize for kind in kinds}
    found["cast"] = {kind: lambda x, kind=kind: np.asarray(x).astype(kind) for kind in kinds}
    return found


_PLAIN = {"float": float, "int": int, "bool": bool, "object": object, "str": str, "complex": complex, "long": int,
          "unicode": str, "math": math, "loads": pickle.loads, "safe_eval": ast.literal_eval, "alen": len,
          "asscalar": lambda a: a.item(), "msort": lambda a: np.sort(a, axis=0), "disp": print,
          "fastCopyAndTranspose": lambda a: np.array(a).T.copy(),
          "asfarray": lambda a, dtype=np.float64: np.asarray(
              a, dtype if np.issubdtype(dtype, np.inexact) else np.float64),
          "issubclass_": lambda a, b: isinstance(a, type) and issubclass(a, b),
          "issubsctype": lambda a, b: issubclass(np.dtype(a).type, np.dtype(b).type),
          "issctype": lambda a: isinstance(a, type) and issubclass(a, np.generic),
          "obj2sctype": lambda a, default=None: np.dtype(a).type, "sctype2char": lambda a: np.dtype(a).char,
          "find_common_type": lambda arrays, scalars: np.result_type(*arrays, *scalars)}  # fmt: skip
_RENAMED = {"float_": "float64", "complex_": "complex128", "cfloat": "complex128", "singlecomplex": "complex64",
            "longfloat": "longdouble", "clongfloat": "clongdouble", "longcomplex": "clongdouble", "string_": "bytes_",
            "string0": "bytes_", "unicode_": "str_", "unicode0": "str_", "bool8": "bool_", "int0": "intp",
            "uint0": "uintp", "object0": "object_", "void0": "void", "product": "prod", "cumproduct": "cumprod",
            "alltrue": "all", "sometrue": "any", "rank": "ndim", "round_": "round", "in1d": "isin",
            "row_stack": "vstack", "mat": "asmatrix"}  # fmt: skip
_EXCEPTIONS = ("AxisError", "ComplexWarning", "ModuleDeprecationWarning", "RankWarning", "TooHardError",
               "VisibleDeprecationWarning")  # fmt: skip
_NUMBERS = {"ALLOW_THREADS": 1, "BUFSIZE": 8192, "CLIP": 0, "WRAP": 1, "RAISE": 2, "MAXDIMS": 32, "ERR_IGNORE": 0,
            "ERR_WARN": 1, "ERR_RAISE": 2, "ERR_CALL": 3, "ERR_PRINT": 4, "ERR_LOG": 5, "ERR_DEFAULT": 521,
            "FPE_DIVIDEBYZERO": 1, "FPE_OVERFLOW": 2, "FPE_UNDERFLOW": 4, "FPE_INVALID": 8, "SHIFT_DIVIDEBYZERO": 0,
            "SHIFT_OVERFLOW": 3, "SHIFT_UNDERFLOW": 6, "SHIFT_INVALID": 9,
            "UFUNC_BUFSIZE_DEFAULT": 8192}  # fmt: skip


# --------------------------------------------------------------------------------------------- numbers

OF_NUMPY = (np.ndarray, np.generic)
_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 2}  # of lower and higher types
_OF_PYTHON = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(float),
    complex: np.dtype(complex),
}


def _type(value) -> np.dtype | None:
    """The dtype of a number or of an array of numbers; None for others, and for what has no value."""
    if value is np.ma.masked:
        return None
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        return np.dtype(np.uint64) if 0 < value < 1 << 64 else None
    dtype = value.dtype if isinstance(value, OF_NUMPY) else _OF_PYTHON.get(type(value))
    return dtype if dtype is not None and dtype.kind in _KINDS else None


def _of_value(value, beside: np.dtype) -> np.dtype:
    """The smallest dtype that has a number's value, signed if that of the array beside it is and the value fits."""
    least = np.min_scalar_type(value)
    if least.kind == "u" and beside.kind == "i" and value <= np.iinfo(f"i{least.itemsize}").max:
        return np.dtype(f"i{least.itemsize}")
    return least


def typed(a, b) -> tuple:
    """The operands of `a + b` and the like, with numbers of the dtypes that numpy gave them before 2.0.

    Numbers alone have the dtype of both: uint8 and int make int64. Beside an array, a number of the array's kind or a
    lower one has the smallest dtype that has its value: uint8 pixels and 300 make uint16, float32 values and a float64
    stay float32.
    """
    of_a, of_b = _type(a), _type(b)
    if of_a is None or of_b is None:
        return a, b
    is_array = [isinstance(one, np.ndarray) and one.ndim > 0 for one in (a, b)]
    if all(is_array):
        return a, b
    if not any(is_array):
        made = np.promote_types(of_a, of_b)
        return made.type(a), made.type(b)
    array, number = (of_a, b) if is_array[0] else (of_b, a)
    own = of_b if is_array[0] else of_a
    if _KINDS[own.kind] <= _KINDS[array.kind]:
        own = _of_value(number, array)
    number = np.promote_types(array, own).type(number)
    return (a, number) if is_array[0] else (number, b)


def by_value(operate):
    """An operator of two operands, by numpy's rules before 2.0."""

    def call(a, b):
        if isinstance(a, OF_NUMPY) or isinstance(b, OF_NUMPY):
            a, b = typed(a, b)
        return operate(a, b)

    return call


def by_value_in_place(operate):
    """The same for `a += b`: an array stays that array."""

    def call(a, b):
        if isinstance(a, np.ndarray):
            b = typed(a, b)[1]
        elif isinstance(a, np.generic) or isinstance(b, OF_NUMPY):
            a, b = typed(a, b)
        return operate(a, b)

    return call


class Ufunc:
    """A function of two operands, `np.maximum`, by numpy's rules before 2.0."""

    def __init__(self, function: np.ufunc):
        self._function, self.__name__, self.__doc__ = function, function.__name__, function.__doc__

    def __call__(self, *args, **kwargs):
        if len(args) > 1:
            args = (*typed(*args[:2]), *args[2:])
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str):
        return getattr(self._function, name)


class Divide(Ufunc):
    """np.divide of Python 2: integers are rounded down."""

    def __call__(self, *args, **kwargs):
        kinds = [np.asarray(x).dtype.kind for x in args[:2]]
        if len(kinds) == 2 and all(kind in "iub" for kind in kinds):
            return np.floor_divide(*typed(*args[:2]), *args[2:], **kwargs)
        return super().__call__(*args, **kwargs)


# ---------------------------------------------------------------------------------------------- arrays


def scalar(value):
    """A number, for an array with one element, which numpy took as a number until 2.4."""
    return value.item() if isinstance(value, np.ndarray) and value.size == 1 else value


def _whole(index):
    """An index with numbers for whole floats (until 1.12) and for arrays of one integer."""
    if isinstance(index, tuple):
        return tuple(map(_whole, index))
    if isinstance(index, float | np.floating) and index == int(index):
        return int(index)
    return index


def _masked(owner: np.ndarray, index):
    """An index whose masks may be shorter or longer than their axes, which was accepted until 1.13."""
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(
        part.nonzero()[0] if isinstance(part, np.ndarray) and part.dtype == bool and part.ndim == 1 else part
        for part in map(_arrayed, map(_whole, parts))
    )


def _arrayed(part):
    return (
        np.asarray(part) if isinstance(part, list) and part and isinstance(part[0], bool | np.bool_) else part
    )


def _sequence(index):
    """Until 1.23 a list that contains a sequence or a slice was the same as a tuple."""
    nested = (list, tuple, np.ndarray, slice, type(None), type(...))
    return tuple(index) if len(index) < 32 and any(isinstance(part, nested) for part in index) else index


def item(owner, index):
    """`owner[index]`"""
    if isinstance(owner, BaseException):  # e[0]
        return owner.args[index]
    is_array = isinstance(owner, np.ndarray)
    if is_array and type(index) is list:
        index = _sequence(index)
    try:
        return owner[index]
    except IndexError:
        if not is_array:
            raise
        return owner[_masked(owner, index)]
    except TypeError:
        if is_array or not isinstance(index, np.ndarray) or index.size != 1 or index.dtype.kind not in "iu":
            raise
        return owner[index.item()]


def store(value, owner, index) -> None:
    """`owner[index] = value`"""
    if not isinstance(owner, np.ndarray):
        if of_hdf5(owner):
            value = as_written(value)
        with_bytes(operator.setitem, owner, scalar(index) if isinstance(owner, list) else index, value)
        return
    if type(index) is list:
        index = _sequence(index)
    try:
        owner[index] = value
    except IndexError:
        owner[_masked(owner, index)] = value
    except OverflowError:  # until 1.24 integers wrapped around
        owner[index] = np.asarray(value).astype(owner.dtype)
    except (TypeError, ValueError):
        if not isinstance(value, np.ndarray) or value.size != 1 or owner.dtype.kind == "O":
            raise
        owner[index] = value.reshape(())[()]


def augment(owner, index, change, value) -> None:
    """`owner[index] += value`, and the like by `change`."""
    store(change(item(owner, index), value), owner, index)


def equal(a, b):
    """`a == b`: False for arrays of unlike shapes, and for an array and None or text, as until 1.25."""
    if type(a) is str and type(b) is str:
        return a == b or _same_bytes(a, b)
    return _compared(a, b, np.False_, operator.eq)


def _same_bytes(a: str, b: str) -> bool:
    """Are these one string of Python 2, which one of them has byte by byte?"""
    return not a.isascii() and not b.isascii() and as_bytes(a) == as_bytes(b)


def unequal(a, b):
    """`a != b`"""
    if type(a) is str and type(b) is str:
        return a != b and not _same_bytes(a, b)
    return _compared(a, b, np.True_, operator.ne)


def _compared(a, b, otherwise, compare):
    for one, other in ((a, b), (b, a)):
        if (
            isinstance(one, np.ndarray)
            and one.dtype.kind not in "OSU"
            and (other is None or isinstance(other, str))
        ):
            return otherwise
    try:
        return compare(*typed(a, b))
    except ValueError:
        if not (isinstance(a, np.ndarray) or isinstance(b, np.ndarray)):
            raise
        return otherwise


_remainder = by_value(operator.mod)


def formatted(a, b):
    """`a % b`: text accepts arrays with one element as numbers."""
    if not isinstance(a, str | bytes):
        return _remainder(a, b)
    try:
        return a % b
    except TypeError:
        return a % (tuple(map(scalar, b)) if isinstance(b, tuple) else scalar(b))


def numeric(function):
    """A function of numbers, which also accepts arrays with one element."""

    def call(*arguments):
        try:
            return function(*arguments)
        except TypeError:
            return function(*map(scalar, arguments))

    return call
