"""What an extension's C++ asks Python for: an operation of ATen, or one of the few that are Python's.

src/aten_python.cpp calls the functions of `of_python`.
"""

import enum
import functools
import math
import operator
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import edge as _edge
from ..base import CaffeRuntimeError
from ..runtime.extension import DTYPES as DLPACK
from ..runtime.extension import of_torch, raw_stream
from ..runtime.memory import view_memory
from .aten_random import philox
from .blas import gemm, gemv

# ATen's numbers.
DTYPES = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    7: torch.float64, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
    27: torch.uint16, 28: torch.uint32, 29: torch.uint64,
}  # fmt: skip
# ATen's numbers of the 8-bit floats that this torch has, and DLPack's.
FLOAT8 = {
    found: numbers
    for name, numbers in {
        "e5m2": (23, 12), "e4m3fn": (24, 10), "e5m2fnuz": (25, 13), "e4m3fnuz": (26, 11), "e8m0fnu": (44, 14),
    }.items()
    if (found := getattr(torch, f"float8_{name}", None))
}  # fmt: skip
DTYPES |= {number: dtype for dtype, (number, _) in FLOAT8.items()}
LAYOUTS = {0: torch.strided, 1: torch.sparse_coo}
FORMATS = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}
DEVICES = {0: "cpu", 1: "cuda", 14: "meta"}
# The number of a device that C++ has no name for.
ELSEWHERE = 127
# What has items, and is no list.
NO_LIST = (bytes, bytearray, str, Mapping)
# The codes of all three kinds of object, as value_of has them.
CODES: dict[torch.dtype | torch.layout | torch.memory_format, int] = {
    dtype: code for code, dtype in DTYPES.items()
}
CODES |= {layout: 1000 + code for code, layout in LAYOUTS.items()}
CODES |= {memory_format: 2000 + code for code, memory_format in FORMATS.items()}
# ATen's number of a dtype that C++ has no name for.
UNDEFINED = 127


def of_python(name: str, edge: str) -> dict:
    """The functions and tables that C++ uses, by their names there. `edge`: the digest of what the library is made of.

    Raises:
        CaffeRuntimeError: another version of the toolkit built the library.
    """
    if _edge.root() and edge != digest():
        raise CaffeRuntimeError(
            f"{name}: another version of the toolkit built this library: build the extension again"
        )
    parts = of_torch()
    parts["dtypes"] = DLPACK | {torch.complex64: 5 << 8 | 64, torch.complex128: 5 << 8 | 128}
    parts["dtypes"] |= {dtype: number << 8 | 8 for dtype, (_, number) in FLOAT8.items()}
    return {
        "special": SPECIAL, "resolve": resolve, "describe": describe, "is_conj": Tensor.is_conj,
        "dtypes": DTYPES, "codes": CODES, "layouts": LAYOUTS, "formats": FORMATS, "device": device, "place": place,
        "library": library, "join": join, "parameters": parameters, "torch": parts,
    }  # fmt: skip


@functools.cache
def digest() -> str:
    """The digest of the files that every extension is made of."""
    own = Path(__file__).parent
    files = [f"src/{f.name}" for f in sorted(own.glob("src/aten*"))]
    files += [str(f.relative_to(own)) for f in sorted(own.glob("include/extension/aten/*"))]
    return _edge.digest(own, tuple(files))


# ------------------------------------------------------------------------------------------------ tensors' fields


def device(kind: int, index: int) -> torch.device:
    return torch.device(DEVICES[kind], index) if index >= 0 else torch.device(DEVICES[kind])


def place(value) -> int | None:
    """A device as a number: its type << 8 | its index + 1. None for other objects and devices that C++ lacks."""
    if not isinstance(value, torch.device):
        return None
    kind = next((number for number, name in DEVICES.items() if name == value.type), None)
    return None if kind is None else kind << 8 | (0 if value.index is None else value.index + 1)


def describe(tensor: Tensor) -> tuple:
    """(sizes, strides, dtype, device type, index) of a tensor whose memory C cannot read."""
    strides = tensor.stride() if tensor.layout == torch.strided else (0,) * tensor.dim()
    where = place(tensor.device)
    where = ELSEWHERE << 8 if where is None else where
    return tuple(tensor.shape), strides, CODES.get(tensor.dtype, UNDEFINED), where >> 8, (where & 255) - 1


# ------------------------------------------------------------------------------------------------ ATen's operations


# Most functions make their result by one of these. torch's Python functions do the same, ten times as fast.
FACTORIES = frozenset(["empty", "empty_like", "ones", "ones_like", "zeros", "zeros_like"])
PLAIN = ("", "memory_format")


def resolve(name: str, overload: str, arguments: str) -> tuple[Callable, int, tuple[str, ...]]:
    """(a function, how many arguments it takes by place, the names of the others) for an operation of ATen.

    Args:
        arguments: the names of the arguments that C++ passes, in order, from the schema of the torch of the build.

    A newer torch may have more arguments; these keep their defaults. An older one may lack some: then a call must leave
    them at None.
    """
    packet = getattr(torch.ops.aten, name, None)
    found = getattr(packet, overload or "default", None)
    if found is None:
        shown = f"aten::{name}" + f".{overload}" * bool(overload)
        raise CaffeRuntimeError(
            f"torch {torch.__version__} has no {shown}: build the extension with this torch"
        )
    passed = tuple(arguments.split(",")) if arguments else ()
    known = [a.name for a in found._schema.arguments]
    by_place = [a.name for a in found._schema.arguments if not a.kwarg_only]
    count = next(
        (i for i, pair in enumerate(zip(passed, by_place, strict=False)) if pair[0] != pair[1]), None
    )
    count = min(len(passed), len(by_place)) if count is None else count
    # The plain builtin: calling the object around it is a microsecond slower.
    function = (
        getattr(torch, name) if name in FACTORIES and overload in PLAIN else getattr(found, "_op", found)
    )
    if unknown := [n for n in passed if n not in known]:
        function = _without(function, unknown, f"aten::{name}")
    return function, count, passed[count:]


def _without(function: Callable, unknown: list[str], shown: str) -> Callable:
    def call(*values, **named):
        for name in unknown:
            if named.pop(name, None) is not None:
                raise CaffeRuntimeError(f"{shown}: torch {torch.__version__} has no argument `{name}`")
        return function(*values, **named)

    return call


# --------------------------------------------------------------------------------------------- Python's operations


def _from_blob(address: int, sizes, strides, dtype: torch.dtype, where: torch.device | None) -> Tensor:
    where = where or torch.device("cpu")
    if strides is None:
        return view_memory(address, math.prod(sizes), dtype, where).view(sizes)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
    return view_memory(address, reach if math.prod(sizes) else 0, dtype, where).as_strided(sizes, strides)


def _to(tensor, dtype, where, non_blocking, copy, memory_format) -> Tensor:
    kept = torch.preserve_format if memory_format is None else memory_format
    return tensor.to(device=where, dtype=dtype, non_blocking=non_blocking, copy=copy, memory_format=kept)


def _set_grad(on: bool) -> bool:
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(on)
    return before


class _Node(torch.autograd.Function):
    """Runs a torch::autograd::Function of C++ (include/aten/autograd.h)."""

    @staticmethod
    def forward(ctx, call, backward, *tensors):
        ctx.call = backward
        outputs, saved, dirty, not_differentiable, materialize = call(list(ctx.needs_input_grad[2:]))
        ctx.save_for_backward(*saved)
        ctx.mark_dirty(*dirty)
        ctx.mark_non_differentiable(*not_differentiable)
        ctx.set_materialize_grads(materialize)
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *ctx.call(list(ctx.saved_tensors), list(grads))


def _setitem(tensor, index, value) -> None:
    tensor[tuple(index)] = value


def _overload(name: str, overload: str):
    space, _, plain = name.partition("::")
    return getattr(getattr(getattr(torch.ops, space), plain), overload or "default")


def _dispatch(name: str, overload: str, values: list) -> tuple:
    """What torch's dispatcher returns for all arguments of a schema, in order."""
    operation = _overload(name, overload)
    pairs = list(zip(operation._schema.arguments, values, strict=True))
    result = operation(
        *(v for a, v in pairs if not a.kwarg_only), **{a.name: v for a, v in pairs if a.kwarg_only}
    )
    return result if isinstance(result, tuple) else () if result is None else (result,)


OPERATORS = "add sub mul truediv mod lt gt le ge eq ne and_ or_ xor neg invert iadd isub imul itruediv"
SPECIAL: dict[str, Callable] = {name: getattr(operator, name) for name in OPERATORS.split()}
SPECIAL |= {
    "arity": lambda name, overload: len(_overload(name, overload)._schema.arguments),
    "autograd": lambda call, backward, tensors: list(_Node.apply(call, backward, *tensors)),
    "as_number": lambda t: t[0],
    "backward": lambda t, gradient: t.backward(gradient),
    "backward_of": lambda tensors, gradients, retain, create, inputs: torch.autograd.backward(
        tensors, gradients or None, retain, create, inputs=inputs or None
    ),
    "bytes": lambda n, where: torch.empty(n, dtype=torch.uint8, device=where),
    "can_cast": torch.can_cast,
    "clone": Tensor.clone,
    "contiguous": lambda t, f: t.resolve_neg().resolve_conj().contiguous(memory_format=f),
    "copy_": lambda t, other: t.copy_(other),
    "detach": Tensor.detach,
    "deterministic": torch.are_deterministic_algorithms_enabled,
    "dispatch": _dispatch,
    "enum": lambda name, members: enum.IntEnum(name, members),
    "exchange_device": lambda index: torch.cuda._exchange_device(index),
    "fill_": Tensor.fill_,
    "from_blob": _from_blob,
    "gemm": gemm,
    "gemv": gemv,
    "getitem": lambda t, index: t[tuple(index)],
    "grad": lambda t: t.grad,
    "gradients": lambda outputs, inputs, gradients, retain, create, unused: torch.autograd.grad(
        outputs, inputs, gradients or None, retain, create, allow_unused=unused
    ),
    "index_put_": lambda t, index, value, accumulate: t.index_put_(
        tuple(index), value if isinstance(value, Tensor) else torch.tensor(value).to(t), accumulate
    ),
    "is_contiguous": lambda t, f: t.is_contiguous(memory_format=f),
    "is_grad_enabled": torch.is_grad_enabled,
    "is_leaf": lambda t: t.is_leaf,
    "is_sparse": lambda t: t.is_sparse,
    "item": Tensor.item,
    "logical_not": torch.logical_not,
    "manual_seed": torch.manual_seed,
    "num_threads": torch.get_num_threads,
    "philox": philox,
    "promote_types": torch.promote_types,
    "repr": repr,
    "requires_grad": lambda t: t.requires_grad,
    "requires_grad_": Tensor.requires_grad_,
    "select": lambda t, i: t[i],
    "set_grad": _set_grad,
    "setitem": _setitem,
    "set_stream": lambda stream, index: torch.cuda.set_stream(torch.cuda.ExternalStream(stream, index)),
    "storage": lambda t: (t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()),
    "storage_offset": Tensor.storage_offset,
    "stack": torch.stack,
    "stream": lambda index: raw_stream(torch.cuda.current_device() if index < 0 else index),
    "tensor": lambda data, dtype, where: torch.tensor(data, dtype=dtype, device=where),
    "to": _to,
    "view": Tensor.view,
    "not_deterministic": lambda what: _not_deterministic(what),
}


# Those of py::object and py::class_ (include/aten/object.h, class.h).


class _Missing:
    """An attribute or an entry that is not there, which C++ may be about to set."""

    def __init__(self, error: Exception):
        self.error = error


def _try(get: Callable, owner, key):
    try:
        return get(owner, key)
    except (AttributeError, KeyError, IndexError) as error:
        return _Missing(error)


def _there(value):
    if isinstance(value, _Missing):
        raise value.error
    return value


def _put_in_class(owner: type, kind: str, name: str, function: Callable) -> None:
    def method(self, *arguments, **named):
        return function(self, *arguments, **named)

    method.__name__ = name
    if kind == "setter":
        setattr(owner, name, vars(owner)[name].setter(method))
    else:
        setattr(owner, name, {"static": staticmethod(function), "getter": property(method)}.get(kind, method))


def _instance(kind: type[Any], held):
    made = kind.__new__(kind)
    made._held = held
    return made


def _array(given, kind: str, flags: int, may_convert: bool):
    """py::array_t: an array of the dtype `kind` ("": any) in the order of `flags`; None if `given` cannot be one."""
    orders: dict[int, Literal["C", "F"]] = {1: "C", 2: "F"}
    order = orders.get(flags & 3)
    dtype = np.dtype(kind) if kind else None
    try:
        if not may_convert and (not isinstance(given, np.ndarray) or dtype not in (None, given.dtype)):
            return None
        if not may_convert and order and not given.flags[f"{order}_CONTIGUOUS"]:
            return None  # C++ would write into a copy
        found = np.asarray(given)
        if found.dtype.kind not in "biufc":
            return None  # such as None, which numpy takes for a NaN
        if not dtype and not found.dtype.isnative:
            return None  # C++ has no name for the other order of bytes
        if dtype and found.dtype != dtype and not flags & 16 and not np.can_cast(found.dtype, dtype):
            return None
        return np.asarray(found, dtype, order)
    except (TypeError, ValueError):
        return None


def _array_fields(found):
    """(address, writeable, dtype, shape, strides in bytes)."""
    if not isinstance(found, np.ndarray):
        return None
    kind = f"{found.dtype.kind}{found.dtype.itemsize}"
    return found.ctypes.data, found.flags.writeable, kind, list(found.shape), list(found.strides)


SPECIAL |= {
    "append": list.append,
    "array": _array,
    "array_fields": _array_fields,
    "as_kind": lambda kind, owner: _as_kind(KINDS[kind], _there(owner)),
    "call": lambda function, arguments, named: _there(function)(*arguments, **named),
    "class": lambda name: type(name, (), {}),
    "class_name": lambda kind: kind.__name__,
    "contains": lambda owner, key: key in _there(owner),
    "dict": dict,
    "getattr": lambda owner, name: _try(getattr, _there(owner), name),
    "getentry": lambda owner, key: _try(operator.getitem, _there(owner), key),
    "hasattr": lambda owner, name: hasattr(_there(owner), name),
    "hold": lambda instance, held: setattr(instance, "_held", held),
    "instance": _instance,
    "is": lambda a, b: a is b,
    "items_of_set": lambda v: list(v) if isinstance(v, (set, frozenset)) else None,
    "len": lambda owner: len(_there(owner)),
    "list": list,
    "new_array": lambda shape, kind: np.empty(shape, np.dtype(kind)),
    "nth": lambda owner, i: owner[i],
    "print": print,
    "put_in_class": _put_in_class,
    "same": _there,
    "set": set,
    "setattr": setattr,
    "sequence": lambda v: list(v) if hasattr(v, "__getitem__") and not isinstance(v, NO_LIST) else None,
    "setentry": operator.setitem,
    "truth": bool,
    "update": dict.update,
}
KINDS = {kind.__name__: kind for kind in (bool, dict, float, int, list, str, tuple)}


def _as_kind(kind: type, value):
    return value if isinstance(value, kind) else kind(value)


def _not_deterministic(what: str) -> None:
    """torch's own error or warning, if deterministic algorithms are asked for."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    text = f"{what} does not have a deterministic implementation"
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(f"{text}, but torch.use_deterministic_algorithms(True) is set")
    print(f"Warning: {text}", file=sys.stderr)


# -------------------------------------------------------------------------------------------- operators and modules

# torch.library's objects, which must live as long as the operators.
_libraries: list[torch.library.Library] = []


class Registered(NamedTuple):
    """Who has an operator, or its implementation for a dispatch key."""

    extension: str
    on_host: int
    function: Callable | None


_registered: dict[tuple[str, str], Registered] = {}
OF_ONE_DEVICE = ("CPU", "CUDA")


def library(name: str, space: str, key: str, action: str, text: str, function, on_host: int):
    """torch::Library: a definition (`text` is the schema) or an implementation of the operator `text`.

    A host library's CUDA kernels serve the processor's tensors, unless the operator has code for the processor.

    Returns:
        If the extension's library for another backend has an implementation that serves all devices: that function. It
        must give tensors on other devices to `function`.
    """
    made = torch.library.Library(space, "FRAGMENT")
    text = text.removeprefix(f"{space}::")
    full = f"{space}::{text.partition('(')[0]}"
    moved = action == "impl" and on_host and key == "CUDA"
    key = "" if action == "define" else "CPU" if moved else key or "CompositeImplicitAutograd"
    owner = _registered.get((full, key))
    if owner and owner.extension == name and owner.on_host != on_host:  # its library for another backend
        return None if key in OF_ONE_DEVICE else owner.function
    if owner and moved:
        return None
    if owner or (action == "define" and _is_defined(full)):
        here = owner and (f"another build of {name}" if owner.extension == name else owner.extension)
        raise RuntimeError(f"{name}: the operator {full} is there already, defined by {here or 'others'}")
    if action == "define":
        made.define(text)
    else:
        made.impl(text, function, key)
    _registered[full, key] = Registered(name, on_host, function)
    _libraries.append(made)
    return None


def parameters(space: str, name: str) -> tuple[tuple, int] | None:
    """(name,) or (name, default) of each argument of an operator, and how many results it has; None if nobody has
    defined it.
    """
    plain, _, overload = name.removeprefix(f"{space}::").partition("(")[0].partition(".")
    try:
        schema = torch._C._get_schema(f"{space}::{plain}", overload)
    except RuntimeError:
        return None
    found = ((a.name, _default_of(a)) if a.has_default_value() else (a.name,) for a in schema.arguments)
    return tuple(found), len(schema.returns)


def _default_of(argument):
    """A default as torch passes it; the schema has dtypes and the like as numbers."""
    kind, value = str(argument.real_type).removeprefix("Optional[").rstrip("]"), argument.default_value
    tables = {"ScalarType": DTYPES, "Layout": LAYOUTS, "MemoryFormat": FORMATS}
    return tables[kind][value] if kind in tables and isinstance(value, int) else value


def opened(name: str, file: str) -> None:
    """A library was loaded without an import: import it, which registers its operators."""
    from .aten_library import import_library

    import_library(name, Path(file))


def _is_defined(operator_name: str) -> bool:
    try:
        torch._C._dispatch_has_kernel(operator_name)
        return bool(torch._C._dispatch_find_schema_or_throw(operator_name, ""))
    except RuntimeError:
        return False


def join(module, file: str) -> None:
    """Called at the end of each module's import. The library for GPUs is beside that for the processor."""
    from .aten_library import join as join_libraries

    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ in (__name__, enum.__name__):
            value.__module__ = module.__name__  # for its repr and for pickle
    join_libraries(module, file)
