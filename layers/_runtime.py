"""From tensors to a C call: the one Python file that knows cffi, addresses, streams and devices.

A layer says `layer = Layer(__name__)` and calls its exported C functions as methods,

    layer.round_forward(bottom, top, bottom.numel())

with tensors where the C declaration has pointers. `dtype` and `stream` are filled in here. What is
checked, made contiguous, guarded and reported is the same for every layer, and said once, here.
"""

import contextlib
import ctypes
import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path

import torch
from torch import Tensor

try:  # 0.1 us; torch.cuda.current_stream(device).cuda_stream is the public way, at 4 us
    from torch._C import _cuda_getCurrentRawStream as _raw_stream
except ImportError:

    def _raw_stream(device: int) -> int:
        return torch.cuda.current_stream(device).cuda_stream


class CaffeError(Exception):
    """Base of all errors raised by layers; each is also the builtin kind that fits."""


class CaffeTypeError(CaffeError, TypeError):
    """Not a tensor, or one of the wrong dtype, device or layout."""


class CaffeValueError(CaffeError, ValueError):
    """A tensor of the wrong shape, or a parameter out of range."""


class CaffeRuntimeError(CaffeError, RuntimeError):
    """The library is missing or unfit for this machine, or the C function failed."""


# Element types by the code that include/caffe_ffi.h gives them (checked against C at load).
_DTYPE_NAMES = {
    torch.float32: "CAFFE_FLOAT32",
    torch.float64: "CAFFE_FLOAT64",
    torch.float16: "CAFFE_FLOAT16",
    torch.bfloat16: "CAFFE_BFLOAT16",
}
FLOATING = tuple(_DTYPE_NAMES)
# What a typed C pointer takes; `void *` takes the call's own dtype.
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
# DLPack's C functions on torch's tensors, from torch 2.10 on: what src/ffi_call.h reads tensors with.
_EXCHANGE = getattr(Tensor, "__dlpack_c_exchange_api__", None)
PLAIN = frozenset({Tensor, torch.nn.Parameter})


def describe(value) -> str:
    """What an error message says came instead: 'cuda:0 float32 [2, 3]'."""
    if not isinstance(value, Tensor):
        return f"{type(value).__name__} {value!r}"[:80]
    layout = "" if value.layout == torch.strided else f"{str(value.layout).removeprefix('torch.')} "
    return f"{layout}{value.device} {dtype_name(value.dtype)} {list(value.shape)}"


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Library:
    """One loaded extension: a layer's C functions for one backend."""

    def __init__(self, layer: "Layer", backend: str):
        self.layer, self.backend = layer, backend
        path = layer.folder / f"_{backend}.abi3.so"
        if not path.exists():
            raise CaffeRuntimeError(_how_to_build(layer, backend, path))
        # Loaded by path, under a name of its own: two packages may hold a layer of the same name.
        loader = importlib.machinery.ExtensionFileLoader(f"{layer.module}._{backend}", str(path))
        spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        self.lib, self.ffi = module.lib, module.ffi
        if reason := self._text(self.lib.caffe_unsupported()):
            raise CaffeRuntimeError(f"{layer.name}: {path.name} cannot run here: {reason}")
        self.signatures = json.loads(self._text(self.lib.caffe_signatures()))
        self.codes = {d: getattr(self.lib, n) for d, n in _DTYPE_NAMES.items() if d in layer.dtypes}

    def _text(self, pointer) -> str:
        return self.ffi.string(pointer).decode(errors="replace") if pointer else ""

    def builtin(self, function: str, otherwise):
        """A C function as a builtin that takes tensors and, in any doubt, calls `otherwise`; None if it cannot be."""
        if _EXCHANGE is None:
            return None
        # cffi knows the address, but has no Python objects to pass: ctypes has.
        bind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(self.lib.caffe_bind_address())
        device = None if torch.cuda.device_count() <= 1 else torch.cuda.current_device
        return bind(
            (function, otherwise, lambda: self.fail(function), Tensor, torch.nn.Parameter, Tensor.is_neg,
             torch.get_num_threads, device, {"host": 1, "cuda": 2}[self.backend],
             sum(1 << code for code in self.codes.values()), self.layer.any_layout, _EXCHANGE)
        )  # fmt: skip

    def fail(self, function: str):
        """Raise what the C side left in its error slot."""
        text = self._text(self.lib.caffe_last_error()) or "failed without saying why"
        raise CaffeRuntimeError(f"{self.layer.name}: {function} on {self.backend}: {text}")


def _how_to_build(layer: "Layer", backend: str, path: Path) -> str:
    needs = " (needs nvcc, see README.md)" if backend == "cuda" else ""
    return (
        f"{layer.name}: not built for {backend}: {path} is missing. "
        f"Type `make LAYERS={layer.name}` in the toolkit's folder{needs}."
    )


class Layer:
    """A layer's folder seen from Python.

    Args:
        module: the layer package's `__name__`.
        dtypes: what its C functions were written for, if not all four floating types.
        any_layout: hand tensors over as they lie in memory. Otherwise inputs are made contiguous.

    Attributes:
        name: the folder's name, which starts every error message.
    """

    def __init__(self, module: str, *, dtypes: tuple[torch.dtype, ...] = FLOATING, any_layout: bool = False):
        self.module, self.dtypes, self.any_layout = module, dtypes, any_layout
        self.name = module.rpartition(".")[2]
        self.folder = Path(sys.modules[module].__file__).resolve().parent
        self._libraries: dict[str, _Library] = {}

    def library(self, backend: str) -> _Library:
        """The loaded library for 'host' or 'cuda'; CaffeRuntimeError says what to type if it is missing."""
        if backend not in self._libraries:
            self._libraries[backend] = _Library(self, backend)
        return self._libraries[backend]

    def backends(self) -> list[str]:
        """The backends this layer is built for."""
        return [backend for backend in ("host", "cuda") if (self.folder / f"_{backend}.abi3.so").exists()]

    def __getattr__(self, function: str):
        if function.startswith("_"):
            raise AttributeError(function)
        launcher = _Launcher(self, function).fastest()
        setattr(self, function, launcher)  # the next access finds it without coming here
        return launcher

    def check(self, condition: bool, argument: str, wanted: str, got) -> None:
        """Raise CaffeValueError('<layer>: <argument>: expected <wanted>, got <got>') unless the condition holds."""
        if not condition:
            got = describe(got) if isinstance(got, Tensor) else got
            raise CaffeValueError(f"{self.name}: {argument}: expected {wanted}, got {got}")

    def wrong(self, argument: str, wanted: str, got) -> CaffeTypeError:
        return CaffeTypeError(f"{self.name}: {argument}: expected {wanted}, got {describe(got)}")

    @staticmethod
    def empty_like(tensor: Tensor) -> Tensor:
        """An uninitialised contiguous tensor of the same shape, dtype and device."""
        if tensor.is_contiguous():
            return torch.empty_like(tensor)
        return torch.empty_like(tensor, memory_format=torch.contiguous_format)


class _Launcher:
    """The Python side of one exported C function."""

    def __init__(self, layer: Layer, function: str):
        self.layer, self.function = layer, function
        built = layer.backends()
        if not built:
            raise CaffeRuntimeError(_how_to_build(layer, "host", layer.folder / "_host.abi3.so"))
        signatures = layer.library(built[-1] if torch.cuda.is_available() else built[0]).signatures
        if function not in signatures:
            raise AttributeError(
                f"{layer.name} declares no C function {function!r}. There are: {', '.join(sorted(signatures))}"
            )
        self.parameters = [tuple(p) for p in signatures[function]["parameters"]]
        self.returns = signatures[function]["returns"]
        self.taken = [
            (t, n) for t, n in self.parameters if (t, n) not in (("int", "dtype"), ("void *", "stream"))
        ]

    def number(self, like: Tensor, *arguments: int) -> int:
        """What a C function of numbers alone says, a workspace's size for one.

        `like` is a tensor of the call in question: its backend is asked (backends may differ), with its dtype.
        """
        library = self.layer.library("cuda" if like.is_cuda else "host")
        rest = iter(arguments)
        given = [library.codes[like.dtype] if name == "dtype" else next(rest) for _, name in self.parameters]
        result = getattr(library.lib, self.function + "_ffi")(*given)
        if result < 0:
            library.fail(self.function)
        return result

    # ------------------------------------------------------------------ the careful way

    def careful(self, *arguments):
        """Check everything, say what is wrong, make inputs contiguous, call. The fast way ends here in any doubt."""
        layer = self.layer
        if len(arguments) != len(self.taken):
            names = ", ".join(name for _, name in self.taken)
            raise CaffeTypeError(
                f"{layer.name}: {self.function} takes {names}: {len(arguments)} arguments came"
            )
        if any(is_fake(a) for a in arguments):
            return  # shape propagation (torch.compile, opcheck): the outputs exist, nothing is computed
        lead, lead_name, device = None, None, None
        values, keep = {}, []
        for (kind, name), argument in zip(self.taken, arguments, strict=True):
            if not kind.endswith("*"):
                values[name] = argument
                continue
            if argument is None:
                values[name] = 0
                continue
            self._check_tensor(name, argument)
            base = kind.removeprefix("const ").removesuffix(" *")
            if base == "void":
                if argument.dtype not in layer.dtypes:
                    wanted = ", ".join(dtype_name(d) for d in layer.dtypes)
                    raise layer.wrong(name, f"a tensor of {wanted}", argument)
                if lead is not None and argument.dtype != lead.dtype:
                    raise layer.wrong(name, f"{dtype_name(lead.dtype)} as '{lead_name}' has", argument)
                if lead is None:
                    lead, lead_name = argument, name
            elif argument.dtype != _POINTER_DTYPES.get(base):
                raise layer.wrong(name, f"{dtype_name(_POINTER_DTYPES[base])}", argument)
            if device is not None and argument.device != device[0]:
                raise layer.wrong(name, f"a tensor on {device[0]} as '{device[1]}' is", argument)
            device = device or (argument.device, name)
            if not layer.any_layout and not argument.is_contiguous():
                if not kind.startswith("const "):
                    raise layer.wrong(name, "a contiguous tensor to write to", argument)
                argument = argument.contiguous()
            if argument.is_neg():
                argument = argument.resolve_neg()  # a view like z.conj().imag: its memory holds -value
            keep.append(argument)  # alive until the launch: its address is all that C gets
            values[name] = argument.data_ptr() or self.no_memory(name, argument)
        if device is None:
            raise CaffeTypeError(f"{layer.name}: {self.function}: no tensor came")
        outputs = [values[n] for t, n in self.taken if t.endswith("*") and not t.startswith("const ")]
        if outputs and not any(outputs):
            return  # nothing to write: all outputs are empty or unwanted
        library = layer.library("cuda" if device[0].type == "cuda" else "host")
        if lead is not None:
            values["dtype"] = library.codes[lead.dtype]
        call = getattr(library.lib, self.function + "_ffi")
        if device[0].type == "cuda":
            with torch.cuda.device(device[0]):
                values["stream"] = _raw_stream(device[0].index)
                status = call(*(values[n] for _, n in self.parameters))
        else:
            values["stream"] = 0
            library.lib.caffe_set_num_threads(torch.get_num_threads())
            status = call(*(values[n] for _, n in self.parameters))
        if status:
            library.fail(self.function)

    def no_memory(self, name: str, argument: Tensor) -> int:
        """The address of a tensor whose address is 0: 0 if it is empty, else an error before C follows it."""
        if argument.numel():
            raise self.layer.wrong(
                name, "a tensor that has memory (not a ZeroTensor or a freed one)", argument
            )
        return 0

    def _check_tensor(self, name: str, argument) -> None:
        if not isinstance(argument, Tensor):
            raise self.layer.wrong(name, "a tensor", argument)
        if argument.layout != torch.strided:
            raise self.layer.wrong(name, "a dense tensor", argument)
        if argument.device.type not in ("cpu", "cuda"):
            raise self.layer.wrong(name, "a tensor on cpu or cuda", argument)

    # ------------------------------------------------------------------- the fast ways

    def fastest(self):
        """The libraries' own builtins, one behind the other (the GPU's first), and last what is made below."""
        launcher = self.fast()
        for backend in self.layer.backends() if self.returns == "int" else ():
            if backend == "cuda" and not torch.cuda.is_available():
                continue
            with contextlib.suppress(CaffeRuntimeError, ImportError):  # said when a tensor is there for it
                launcher = self.layer.library(backend).builtin(self.function, launcher) or launcher
        return launcher

    def fast(self):
        """A function with this launcher's own checks written out, for plain tensors that need no care.

        A loop over the arguments would cost more than the launch's own overhead; so, as namedtuple does,
        the text of the function is made here: conditions, a stream, a call. Whatever fails a condition
        goes the careful way, which knows what to say.
        """
        if self.returns == "int64_t":
            return self.number
        # Prefixed, because a C parameter may be called `in`, `lambda` or like one of the helpers below.
        names = ["a_" + name for _, name in self.taken]
        pointers = [(t, "a_" + n) for t, n in self.taken if t.endswith("*")]
        voids = [n for t, n in pointers if t.removeprefix("const ") == "void *"]
        if not pointers or (("int", "dtype") in self.parameters and not voids):
            return self.careful
        lead = voids[0] if voids else pointers[0][1]
        conditions = ["(code := CODES.get(dtype)) is not None"] if voids else []
        for kind, name in pointers:
            base = kind.removeprefix("const ").removesuffix(" *")
            is_input = kind.startswith("const ")
            tests = [] if name == lead else [f"{name}.get_device() == device"]
            if is_input and name != lead:  # an output is the layer's own, never a subclass
                tests.insert(0, f"type({name}) in PLAIN")
            if base != "void":
                tests.append(f"{name}.dtype is POINTER_DTYPES[{base!r}]")
            elif name != lead:
                tests.append(f"{name}.dtype is dtype")
            if not self.layer.any_layout:
                tests.append(f"{name}.is_contiguous()")
            if kind.startswith("const "):
                tests.append(f"not {name}.is_neg()")
            test = " and ".join(tests) or "True"
            conditions.append(test if name == lead else f"({name} is None or {test})")
        # Under names of their own: an argument may be a temporary that lives as long as its name.
        addresses = "; ".join(
            f"{n}_at = {'' if n == lead else f'0 if {n} is None else '}{n}.data_ptr() or no_memory({n[2:]!r}, {n})"
            for _, n in pointers
        )
        outputs = " or ".join(f"{n}_at" for t, n in pointers if not t.startswith("const ")) or "True"
        special = {"a_dtype": "code", "a_stream": "stream"} | {n: f"{n}_at" for _, n in pointers}
        given = ", ".join(special.get("a_" + n, "a_" + n) for _, n in self.parameters)
        arguments = ", ".join(names)
        text = f"""
def {self.function}({arguments}):
    if type({lead}) not in PLAIN:
        return careful({arguments})
    device, dtype = {lead}.get_device(), {lead}.dtype
    if not ({" and ".join(conditions)}):
        return careful({arguments})
    if {lead}.is_cuda:
        if not one_device and current_device() != device:
            with device_guard(device):
                return {self.function}({arguments})
        {addresses}
        if {outputs}:
            stream = raw_stream(device)
            if (cuda or load_cuda())({given}):
                library("cuda").fail({self.function!r})
    elif {lead}.is_cpu:
        {addresses}
        if {outputs}:
            stream = 0
            set_num_threads(get_num_threads())
            if (host or load_host())({given}):
                library("host").fail({self.function!r})
    else:
        return careful({arguments})
"""
        scope = {
            "PLAIN": PLAIN,
            "CODES": self.layer.library(self.layer.backends()[0]).codes,
            "POINTER_DTYPES": _POINTER_DTYPES,
            "careful": self.careful,
            "no_memory": self.no_memory,
            "library": self.layer.library,
            "raw_stream": _raw_stream,
            "current_device": torch.cuda.current_device,
            "device_guard": torch.cuda.device,
            "one_device": torch.cuda.device_count() <= 1,
            "get_num_threads": torch.get_num_threads,
            "set_num_threads": lambda count: self.layer.library("host").lib.caffe_set_num_threads(count),
            "cuda": None,
            "host": None,
        }

        def load(backend: str):
            library = self.layer.library(backend)
            scope[backend] = getattr(library.lib, self.function + "_ffi")
            if backend == "host":
                scope["set_num_threads"] = library.lib.caffe_set_num_threads
            return scope[backend]

        scope["load_cuda"] = lambda: load("cuda")
        scope["load_host"] = lambda: load("host")
        exec(compile(text, f"<{self.layer.name}.{self.function}>", "exec"), scope)
        return scope[self.function]


def is_fake(value) -> bool:
    """A tensor without data, which torch uses to work out shapes."""
    return isinstance(value, Tensor) and isinstance(value, torch._subclasses.FakeTensor)
