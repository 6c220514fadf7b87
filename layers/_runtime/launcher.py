"""The careful call of a C function: every argument is checked, and errors name the argument."""

import functools
import inspect
import math

import torch
from torch import Tensor

from .._backends import HOST
from .errors import CaffeRuntimeError, CaffeTypeError, dtype_name
from .library import backend_of, how_to_build
from .planning import STREAM_VALUE, Launched, is_constant, note, plan
from .short import short

try:  # 0.1 us; torch.cuda.current_stream(device).cuda_stream is the public way, at 4 us
    from torch._C import _cuda_getCurrentRawStream as raw_stream
except ImportError:

    def raw_stream(device: int) -> int:
        return torch.cuda.current_stream(device).cuda_stream


# The dtype of a typed C pointer. A `void *` takes the call's own dtype.
_POINTER_DTYPES = {
    "float": torch.float32,
    "double": torch.float64,
    "int": torch.int32,
    "int8_t": torch.int8,
    "uint8_t": torch.uint8,
    "int16_t": torch.int16,
    "int32_t": torch.int32,
    "int64_t": torch.int64,
    "bool": torch.bool,
}
_NO_BUILTINS = {"__builtins__": {}}
_INTEGER_RANGES = {
    f"{sign}int{bits}_t": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
} | {"int": (-(2**31), 2**31 - 1)}


def is_fake(value) -> bool:
    """Is it a tensor without data, with which torch computes shapes?"""
    return isinstance(value, Tensor) and isinstance(value, torch._subclasses.FakeTensor)


class Launcher:
    """The Python side of one exported C function.

    Raises:
        CaffeRuntimeError: the layer is not built. AttributeError: it declares no such function.
    """

    def __init__(self, layer, function: str):
        self.layer, self.function = layer, function
        built = layer.backends()
        if not built:
            raise CaffeRuntimeError(how_to_build(layer.name, HOST.name, layer.folder / HOST.library))
        signatures = layer.library(built[-1] if torch.cuda.is_available() else built[0]).signatures
        if function not in signatures:
            raise AttributeError(
                f"{layer.name} declares no C function {function!r}. There are: {', '.join(sorted(signatures))}"
            )
        self.parameters = [tuple(p) for p in signatures[function]["parameters"]]
        self.returns = signatures[function]["returns"]
        self.extents = {
            name: [[compile(size, name, "eval") for size in listed] for listed in lists]
            for name, lists in signatures[function].get("extents", {}).items()
        }
        # `int dtype` is the dtype of the `void *` arguments. `int weight_dtype` is that of `weight` and `weight_diff`,
        # which may differ from it.
        names = {n.removesuffix("_diff") for _, n in self.parameters}
        self.dtypes_of = {
            n: of
            for t, n in self.parameters
            if t == "int" and (of := n.removesuffix("_dtype")) in names - {n}
        }
        filled_in = {("int", "dtype"), ("void *", "stream"), *(("int", n) for n in self.dtypes_of)}
        self.passed = [parameter for parameter in self.parameters if parameter not in filled_in]

    def fastest(self):
        """The function to call: the short way, which falls back to the careful one."""
        if self.returns == "int64_t":
            return self._explained(functools.partial(self.number), [("Tensor", "like"), *self.passed])
        letters = "".join("o" if t.endswith("*") else "p" for t, _ in self.passed)
        careful = functools.partial(self.careful)
        self._short = short(letters, careful, careful, self._planning, launches_only=True)
        return self._explained(self._short, self.passed)

    def _explained(self, function, parameters):
        """The function with what help() and a notebook's `?` show."""
        function.__name__ = self.function
        function.__qualname__ = f"{self.layer.name}.{self.function}"
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=kind)
                for kind, name in parameters
            ]
        )
        function.__doc__ = (
            f"{self.function}{function.__signature__}\n\nThe C function of layer {self.layer.name}. "
            + (
                "Its answer may depend on the device and the dtype of `like`."
                if self.returns == "int64_t"
                else "Pass tensors for pointers. It runs on torch's current stream, and returns nothing."
            )
        )
        return function

    def number(self, like: Tensor, *arguments: int) -> int:
        """Call a C function that takes only numbers, such as one that returns the size of a workspace.

        The answer may depend on the backend and the dtype. They are those of the tensor `like`.
        """
        library = self.layer.library(backend_of(like.device).name)
        if like.dtype not in library.codes:
            raise self.layer.wrong(self.function, self._one_of_ours(), like)
        rest = iter(arguments)
        values = [
            library.codes[like.dtype] if name == "dtype" else self._number(kind, name, next(rest))
            for kind, name in self.parameters
        ]
        result = getattr(library.lib, self.function + "_ffi")(*values)
        if result < 0:
            library.fail(self.function)
        return result

    def careful(self, *arguments, **named):
        """Check everything, make inputs contiguous, and call. The short way falls back to this."""
        if named:
            names = ", ".join(name for _, name in self.passed)
            raise CaffeTypeError(
                f"{self.layer.name}: {self.function} takes {names}, in this order and without names"
            )
        launched = self._checked(arguments)
        if launched is not None:
            note(launched)

    def _planning(self, *arguments):
        """A careful call that makes a plan for the next call of this kind."""
        launched = self._checked(arguments)
        if launched is not None and all(map(is_constant, arguments)):
            made = plan(arguments, [], [launched])
            if made is not None:
                self._short.add(arguments, made)

    def _checked(self, arguments: tuple) -> Launched | None:
        """Check and call. None if there was nothing to launch."""
        layer = self.layer
        if len(arguments) != len(self.passed):
            names = ", ".join(name for _, name in self.passed)
            raise CaffeTypeError(
                f"{layer.name}: {self.function} takes {names}: got {len(arguments)} arguments"
            )
        if any(is_fake(a) for a in arguments):
            return None  # shape propagation (torch.compile, opcheck): only the outputs' shapes matter
        by_name = {name: a for (_, name), a in zip(self.passed, arguments, strict=True)}
        tensors = {n: by_name[n] for t, n in self.passed if t.endswith("*") and by_name[n] is not None}
        if not tensors:
            raise CaffeTypeError(f"{layer.name}: {self.function}: got no tensor")
        dtypes = self._check_tensors(tensors)
        values = {n: self._number(t, n, by_name[n]) for t, n in self.passed if not t.endswith("*")}
        self._check_extents(tensors, values)
        # Kept alive until the launch, because C gets only addresses.
        tensors = {n: self._as_c_takes_it(n, tensors[n]) for _, n in self.passed if n in tensors}
        for kind, name in self.passed:
            if kind.endswith("*"):
                values[name] = self._address(name, tensors[name]) if name in tensors else 0
        outputs = [values[n] for t, n in self.passed if t.endswith("*") and not t.startswith("const ")]
        if outputs and not any(outputs):
            return None  # nothing to write: all outputs are empty or unwanted
        library = self._launch(values, dtypes, next(iter(tensors.values())).device)
        values |= tensors | {"stream": STREAM_VALUE}
        kinds, names = zip(*self.parameters, strict=True)
        return Launched(library, self.function, kinds, tuple(values[n] for n in names))

    def _check_tensors(self, tensors: dict[str, Tensor]) -> dict[str, torch.dtype]:
        """Check for dense tensors of the right dtypes on one device. Returns what `dtype` and `weight_dtype` are."""
        layer, leads = self.layer, {}
        first, kinds = next(iter(tensors)), {n: t for t, n in self.passed}
        for name, tensor in tensors.items():
            layer.check_tensor(name, tensor)
            base = kinds[name].removeprefix("const ").removesuffix(" *")
            if base != "void":
                if tensor.dtype != _POINTER_DTYPES[base]:
                    raise layer.wrong(name, dtype_name(_POINTER_DTYPES[base]), tensor)
            elif tensor.dtype not in layer.dtypes:
                raise layer.wrong(name, self._one_of_ours(), tensor)
            else:
                own = name.removesuffix("_diff") + "_dtype"
                lead = leads.setdefault(own if own in self.dtypes_of else "dtype", name)
                if tensor.dtype != tensors[lead].dtype:
                    raise layer.wrong(name, f"{dtype_name(tensors[lead].dtype)} as '{lead}' has", tensor)
            if tensor.device != tensors[first].device:
                raise layer.wrong(name, f"a tensor on {tensors[first].device} as '{first}' is", tensor)
            if not layer.any_layout and not kinds[name].startswith("const ") and not tensor.is_contiguous():
                raise layer.wrong(name, "a contiguous tensor to write to", tensor)
        if "dtype" in leads:
            for own in self.dtypes_of:
                leads.setdefault(own, leads["dtype"])
        return {parameter: tensors[lead].dtype for parameter, lead in leads.items()}

    def _one_of_ours(self) -> str:
        return f"a tensor of {', '.join(dtype_name(d) for d in self.layer.dtypes)}"

    def _number(self, kind: str, name: str, value):
        """The argument as a number of its C type, or an error that names it."""
        if kind in _INTEGER_RANGES:
            least, most = _INTEGER_RANGES[kind]
            return int(value) if isinstance(value, bool) else self.layer.integer(name, value, least, most)
        if kind == "bool":
            return bool(value)
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.layer.wrong(name, "a number", value) from None

    def _check_extents(self, tensors: dict[str, Tensor], numbers: dict[str, int]) -> None:
        """Refuse counts that are larger than their tensors, by the sizes in the header's comments."""
        for name, lists in self.extents.items():
            if name not in tensors:
                continue
            try:
                sizes, strides = ([eval(e, _NO_BUILTINS, numbers) for e in listed] for listed in lists)
            except ZeroDivisionError:
                sizes, strides = [-1], []
            tensor = tensors[name]
            there = reach(tensor.shape, tensor.stride() if self.layer.any_layout else ())
            if reach(sizes, strides) > there or min(sizes, default=0) < 0:
                said = ", ".join(f"{n} {v}" for n, v in numbers.items())
                self.layer.check(
                    False, name, f"memory for {sizes} elements, as {self.function} is told by {said}", tensor
                )

    def _as_c_takes_it(self, name: str, tensor: Tensor) -> Tensor:
        """Contiguous (unless the layer takes any layout), and without a negative bit."""
        if not self.layer.any_layout:
            tensor = tensor.contiguous()
        # The memory of a view like z.conj().imag holds the negative values.
        return tensor.resolve_neg() if tensor.is_neg() else tensor

    def _address(self, name: str, tensor: Tensor) -> int:
        """The address of a tensor's memory; 0 if it has no elements. An error if it has elements and no memory."""
        # Modes that watch an operator's function see only what the function itself asks.
        with torch._C.DisableTorchFunction():
            address = tensor.data_ptr()
        if not address and tensor.numel():
            raise self.layer.wrong(name, "a tensor that has memory (not a ZeroTensor or a freed one)", tensor)
        return address

    def _launch(self, values: dict, dtypes: dict[str, torch.dtype], device: torch.device):
        """Call the function on the current stream. Returns the library."""
        backend = backend_of(device)
        library = self.layer.library(backend.name)
        values |= {parameter: library.codes[dtype] for parameter, dtype in dtypes.items()}
        call = getattr(library.lib, self.function + "_ffi")
        if backend.on_host:
            values["stream"] = 0
            library.lib.caffe_set_num_threads(torch.get_num_threads())
            status = call(*(values[n] for _, n in self.parameters))
        else:
            with torch.cuda.device(device):
                values["stream"] = raw_stream(device.index)
                status = call(*(values[n] for _, n in self.parameters))
        if status:
            library.fail(self.function)
        return library


def reach(sizes, strides=()) -> int:
    """How many elements of memory lie between a tensor's first and last. Without strides it is contiguous."""
    if any(size == 0 for size in sizes):
        return 0
    if strides:
        return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    return math.prod(sizes)
