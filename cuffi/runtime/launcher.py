"""A C function of a layer as a Python function.

C checks each call by the function's declaration, and launches (src/edge/call_launcher.h). If C does not accept the
arguments, Python converts them here and calls C again, or raises the error that names the argument.
"""

import ast
import functools
import inspect
import operator
import struct
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..backends import BACKENDS
from ..base.errors import PLAIN, CaffeRuntimeError, CaffeTypeError, describe, dtype_name
from ..base.tracing import explain_onnx, is_recorded, launches
from . import extension
from .checks import Checks
from .extension import DTYPES
from .launcher_operator import register
from .library import INDICES, Libraries, backend_of
from .padding import Padding
from .passed import in_order
from .planning import STREAM_VALUE, Launched, watcher

# The bits of a C integer type, by its words besides `int` and the sign. The same on every supported system.
_BITS = {
    "char": 8, "short": 16, "": 32, "long": 64, "long long": 64, "size_t": 64, "ssize_t": 64, "ptrdiff_t": 64,
    "intptr_t": 64, "uintptr_t": 64,
    **{f"{sign}int{bits}_t": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_UNSIGNED = {"unsigned", "size_t", "uintptr_t", *(f"uint{bits}_t" for bits in (8, 16, 32, 64))}
_OTHERS = {"float": torch.float32, "double": torch.float64, "bool": torch.bool, "_Bool": torch.bool}
# Said of a kernel's template.
COMPILED_FOR = (
    " (its template is compiled for no other type: load_inline(..., instances={kernel: [types]}) names them)"
)
# What a launch needs besides the kernel's own arguments. tools/new_layer/geometry.py asks for it by these names.
_GEOMETRY = {
    "shared_bytes",
    *(f"{what}{axis}" for what in ("grid", "block") for axis in ("", "_x", "_y", "_z")),
}


def integer_range(kind: str) -> tuple[int, int] | None:
    """The least and the greatest value of a C integer type, such as `unsigned long`; None for another type."""
    words = kind.split()
    bits = _BITS.get(" ".join(w for w in words if w not in ("int", "signed", "unsigned")))
    if bits is None or not words:
        return None
    return (0, 2**bits - 1) if _UNSIGNED & set(words) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def pointed_dtypes(base: str) -> tuple[torch.dtype, ...]:
    """The dtypes of tensors for a typed C pointer. A pointer to unsigned numbers also accepts signed tensors."""
    if base in _OTHERS:
        return (_OTHERS[base],)
    least, most = integer_range(base) or (0, 0)
    bits = (most - least).bit_length()
    if not bits:
        return ()
    signed, unsigned = getattr(torch, f"int{bits}"), getattr(torch, f"uint{bits}")
    if least < 0:
        return (signed,)
    return (unsigned,) if bits == 8 else (signed, unsigned)


def _of_the_launch(missing) -> str:
    """The sentence for a call without the geometry of its launch."""
    asked = [name for name in missing if name.rstrip("_") in _GEOMETRY]
    if not asked:
        return ""
    return f". The kernel's source does not determine its launch, so the caller gives {', '.join(asked)}"


@functools.cache
def _builtin(base: Any) -> Any:
    """The class of builtins of C functions, with the text for help() and a notebook's `?`.

    Args:
        base: the extension's Launcher.
    """

    class Builtin(base):
        __name__: str
        __qualname__: str
        __signature__: inspect.Signature
        _module: str

        def __repr__(self):
            return f"<{self.__qualname__}>"

        def __reduce__(self):
            from .layer import launcher_of  # which imports this module

            return launcher_of, (self._module, self.__name__)

    return Builtin


class Launcher:
    """The Python side of one exported C function. Users call its `call`, the builtin.

    Args:
        checks: raises the layer's errors.
        libraries: the layer's libraries, which have the function.
        function: its name in C.
        any_layout: pass tensors in their own layout. Otherwise inputs are made contiguous.

    Raises:
        CaffeRuntimeError: the layer is not built. AttributeError: it declares no such function.
    """

    def __init__(self, checks: Checks, libraries: Libraries, function: str, any_layout: bool):
        self.checks, self.libraries, self.function, self.any_layout = checks, libraries, function, any_layout
        signatures = libraries.signatures()
        if function not in signatures:
            raise AttributeError(
                f"{checks.name} declares no C function {function!r}. There are: {', '.join(sorted(signatures))}"
            )
        signature = signatures[function]
        self.parameters = [tuple(p) for p in signature["parameters"]]
        self.returns_number = signature["returns"] == "int64_t"
        self.extents = signature.get("extents", {})
        self.may_be_null = set(signature.get("null", ()))
        self.alignments = signature.get("alignments", {})
        self.indices = signature.get("indices", {})
        self.elements = signature.get("elements", {})
        self.geometry = tuple(signature.get("geometry", ()))
        self.launched = signature.get("launched", {})
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
        if self.returns_number:
            self.passed.insert(0, ("Tensor", "like"))
        self.groups = ["dtype", *self.dtypes_of]
        self.codes = libraries.codes()
        self._attached: set[str] = set()  # the backends whose function C knows
        self.call = self._builtin()

    # ------------------------------------------------------------------------------------ called by C

    def _builtin(self):
        c = extension.extension(self.checks.name)
        places = {name: i + self.returns_number for i, (_, name) in enumerate(self.parameters)}
        ours = tuple(DTYPES[dtype] for dtype in self.libraries.dtypes)
        like = [(c.LIKE, 0, 0, 1, 0, 0, ours, None, None)] if self.returns_number else []
        function = _builtin(c.Launcher)(
            parameters=(*like, *(self._parameter(c, places, kind, name) for kind, name in self.parameters)),
            codes=tuple((DTYPES[dtype], code) for dtype, code in self.codes.items()),
            any_layout=self.any_layout,
            returns_number=self.returns_number,
            careful=self.careful,
            fail=self._fail,
        )
        function.__name__, function._module = self.function, self.libraries.module
        function.__qualname__ = f"{self.checks.name}.{self.function}"
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=kind)
                for kind, name in self.passed
            ]
        )
        function.__doc__ = (
            f"{self.function}{function.__signature__}\n\nThe C function of layer {self.checks.name}. "
            + (
                "Its result may depend on the device and the dtype of `like`."
                if self.returns_number
                else "Pass tensors for pointers. It runs on torch's current stream, and returns nothing."
            )
        )
        return function

    def _parameter(self, c, places: dict[str, int], kind: str, name: str) -> tuple:
        """struct Parameter of src/edge/call_launcher.h."""
        number = (0, 0, 1, 0, 0, (), None, None)
        if (kind, name) == ("void *", "stream"):
            return c.STREAM, *number
        if (kind, name) not in self.passed:
            alone = (DTYPES[torch.int64],) if name in self.indices.values() else ()  # where no tensor has it
            return c.DTYPE, self.groups.index(name), 0, 1, 0, 0, alone, None, None
        if kind.endswith("*"):
            flags = c.IS_WRITTEN * (not is_const(kind)) | c.MAY_BE_NULL * (name in self.may_be_null)
            dtypes = tuple(DTYPES[dtype] for dtype in self._dtypes(kind, name))
            sizes = [
                tuple(_steps(c, places, ast.parse(text, mode="eval").body) for text in texts)
                for texts in self.extents.get(name, ())
            ] or (None, None)
            group = self.groups.index(self._group(name)) if kind.endswith("void *") else -1
            return c.TENSOR, group, flags, self.alignments.get(name, 1), 0, 0, dtypes, *sizes
        if kind in ("float", "double", "bool", "_Bool"):
            return {"float": c.FLOAT, "double": c.DOUBLE}.get(kind, c.BOOL), *number
        least, most = integer_range(kind) or (0, 0)
        if not most:
            raise self.checks.wrong(
                self.function, f"a C function of tensors and numbers: `{name}` is none", kind
            )
        if most >= 2**63:
            return c.UNSIGNED64, *number
        return c.INTEGER, 0, 0, 1, least, most, (), None, None

    def _dtypes(self, kind: str, name: str) -> tuple[torch.dtype, ...]:
        """The dtypes of tensors for a pointer."""
        if name in self.elements:
            return tuple(getattr(torch, dtype) for dtype in self.elements[name])
        base = kind.removeprefix("const ").removesuffix(" *")
        if base == "void":
            return INDICES if name in self.indices else self.libraries.dtypes
        dtypes = pointed_dtypes(base)
        if not dtypes:
            raise self.checks.wrong(
                self.function, f"a C function of tensors and numbers: `{name}` is none", kind
            )
        return dtypes

    def _group(self, name: str) -> str:
        own = self.indices.get(name) or name.removesuffix("_diff") + "_dtype"
        return own if own in self.dtypes_of else "dtype"

    def _fail(self, device_type: int):
        backend = next(name for name in self.libraries if BACKENDS[name].dlpack == device_type)
        self.libraries[backend].fail(self.function)

    def _attach(self, device: torch.device) -> None:
        """Load the library for a device, and give C the function's address."""
        backend = backend_of(device)
        if backend.name not in self._attached:
            library = self.libraries[backend.name]
            run = library.runner(self.function)
            self.call.attach(backend.dlpack, run, library.is_program, library.set_num_threads)
            self._attached.add(backend.name)

    # ------------------------------------------------------------------- arguments that C does not accept

    def careful(self, *arguments, **named):
        """Run any call. Where torch must see it, it is a call of an operator; within a shape function it is nothing."""
        arguments = self._counted(arguments, named)
        if not self.returns_number:
            if not launches():
                return None
            if watcher() is None and is_recorded(arguments):
                return self._recorded(arguments)
        # planning's Reads must not take our own questions for the layer's.
        with torch._C.DisableTorchFunction():
            return self._run(*arguments)

    def _recorded(self, arguments: tuple) -> None:
        """Call the operator of torch.library, which tracers and modes see."""
        tensors = {n: a for (_, n), a in zip(self.passed, arguments, strict=True) if isinstance(a, Tensor)}
        self._check_tensors(tensors)
        explain_onnx(self.checks.name, self.torch_op)
        self.torch_op(*arguments)

    @functools.cached_property
    def torch_op(self):
        """The operator of torch.library. It is defined when a graph needs it."""
        parameters = [(kind, name) for kind, name in self.passed if kind != "Tensor"]
        operator, self._library = register(
            self.libraries.module, self.function, parameters, self.may_be_null, self._run
        )
        return operator

    def _run(self, *arguments):
        """Convert the arguments of a call, and call C. If they are wrong, the error names one."""
        arguments = self._converted(arguments)
        first = next(a for a in arguments if isinstance(a, Tensor))
        result = self.call.attempt(*arguments)
        if result is NotImplemented:
            self._attach(first.device)
            result = self._first_call(arguments)
        if result is NotImplemented:
            self._refuse_small(arguments)
            raise CaffeRuntimeError(
                f"{self.checks.name}: {self.function} cannot be called with these arguments"
            )
        if (watching := watcher()) and not self.returns_number:
            watching.launches.append(self._launched(arguments))
        return result

    def _first_call(self, arguments: tuple):
        """C's result, or an error if it wrote beside a tensor."""
        if torch.compiler.is_compiling():  # torch.compile would trace how memory is compared
            return self.call.attempt(*arguments)
        written = {
            name: a
            for (kind, name), a in zip(self.passed, arguments, strict=True)
            if isinstance(a, Tensor) and kind.endswith("*") and not is_const(kind)
        }
        padding = Padding(written)
        result = self.call.attempt(*arguments)
        if place := padding.changed():
            raise CaffeRuntimeError(
                f"{self.checks.name}: {place[0]}: {self.function} wrote {place[1]}, to memory that is not this "
                f"tensor's ({describe(written[place[0]])}). Compare the kernel's indices with the tensor's size; in a "
                "layer's folder `make sanitize` names the line. Only the first call is watched"
            )
        return result

    def _launched(self, arguments: tuple) -> Launched:
        """The launch that C made with these arguments, for a plan."""
        values = {name: 0 if a is None else a for (_, name), a in zip(self.passed, arguments, strict=True)}
        tensors = {n: values[n] for t, n in self.passed if t == "void *" or t == "const void *"}
        tensors = {n: t for n, t in tensors.items() if isinstance(t, Tensor)}
        first = next(a for a in arguments if isinstance(a, Tensor))
        library = self.libraries[backend_of(first.device).name]
        dtypes = dict.fromkeys(self.indices.values(), torch.int64)
        dtypes |= {self._group(name): tensor.dtype for name, tensor in tensors.items()}
        values |= {
            group: library.codes[dtype]
            for group in self.groups
            if (dtype := dtypes.get(group, dtypes.get("dtype")))
        }
        kinds, names = zip(*self.parameters, strict=True)
        return Launched(
            library, self.function, kinds, tuple((values | {"stream": STREAM_VALUE})[n] for n in names)
        )

    def _counted(self, arguments: tuple, named: dict) -> tuple:
        """An argument for each parameter that is passed."""
        try:
            names = tuple(name for _, name in self.passed)
            arguments = in_order(names, arguments, named, self.geometry, self.launched)
        except CaffeTypeError as error:
            raise CaffeTypeError(f"{self.checks.name}: {self.function}: {error}") from None
        if len(arguments) != len(self.passed):
            typed = ", ".join(
                f"{kind}{'' if kind.endswith('*') else ' '}{name}" for kind, name in self.passed
            )
            raise CaffeTypeError(
                f"{self.checks.name}: {self.function} takes {len(self.passed)} arguments, {typed}: "
                f"got {len(arguments)}{_of_the_launch(name for _, name in self.passed[len(arguments) :])}"
            )
        return arguments

    def _converted(self, arguments: tuple) -> tuple:
        """The arguments, converted for C."""
        by_name = {name: a for (_, name), a in zip(self.passed, arguments, strict=True)}
        pointers = [(t, n) for t, n in self.passed if t.endswith("*")]
        values = dict(by_name)
        if self.returns_number:
            values["like"] = self._like(by_name["like"])
        tensors = {n: by_name[n] for _, n in pointers if by_name[n] is not None}
        if not tensors and not self.returns_number:
            raise CaffeTypeError(f"{self.checks.name}: {self.function}: got no tensor")
        self._check_tensors(tensors)
        others = [(t, n) for t, n in self.passed if not t.endswith("*") and t != "Tensor"]
        numbers = {name: self._number(kind, name, by_name[name]) for kind, name in others}
        values |= numbers
        for kind, name in pointers:
            if name in tensors:
                values[name] = self._as_c_takes_it(kind, name, tensors[name])
            elif name not in self.may_be_null:
                raise self.checks.wrong(
                    name, "a tensor (the C declaration does not say that it may be NULL)", None
                )
        return tuple(values[name] for _, name in self.passed)

    def _like(self, like) -> Tensor:
        if not isinstance(like, Tensor) or like.dtype not in self.libraries.dtypes:
            raise self.checks.wrong(self.function, _one_of(self.libraries.dtypes), like)
        with torch._C._DisableTorchDispatch():
            return torch.empty(0, dtype=like.dtype, device=like.device)

    def _check_tangent(self, name: str, tensor: Tensor) -> None:
        """Refuse a dual tensor of forward-mode AD.

        It has no tangent where torch drops that itself (inference_mode), nor in an autograd.Function's forward, where
        the function's jvp refuses it.
        """
        if forward_ad.unpack_dual(tensor).tangent is not None:
            raise CaffeRuntimeError(
                f"{self.checks.name}: {name}: {self.function} has no forward-mode derivative, and would lose the "
                "tangent. Give it forward_ad.unpack_dual(tensor).primal"
            )

    def _check_tensors(self, tensors: dict[str, Tensor]) -> None:
        """Check for dense tensors of the right dtypes on one device."""
        checks, leads = self.checks, {}
        first, kinds = next(iter(tensors), ""), {n: t for t, n in self.passed}
        for name, tensor in tensors.items():
            checks.check_tensor(name, tensor)
            self._check_tangent(name, tensor)
            functorch = torch._C._functorch
            if functorch.is_functorch_wrapped_tensor(tensor) or functorch.is_legacy_batchedtensor(tensor):
                raise CaffeRuntimeError(
                    f"{checks.name}: {name}: torch.func's transforms (vmap, grad, ...) cannot look into a C function"
                )
            kind, dtypes = kinds[name], self._dtypes(kinds[name], name)
            if tensor.dtype not in dtypes:
                compiled = kind.endswith("void *") and name in self.elements
                raise checks.wrong(name, _one_of(dtypes) + COMPILED_FOR * compiled, tensor)
            if kind.endswith("void *"):
                lead = leads.setdefault(self._group(name), name)
                if tensor.dtype != tensors[lead].dtype:
                    raise checks.wrong(name, f"{dtype_name(tensors[lead].dtype)} as '{lead}' has", tensor)
            if tensor.device != tensors[first].device:
                raise checks.wrong(name, f"a tensor on {tensors[first].device} as '{first}' is", tensor)
            if not is_const(kind):
                self._check_output(name, tensor)

    def _check_output(self, name: str, tensor: Tensor) -> None:
        if not self.any_layout and not tensor.is_contiguous():
            raise self.checks.wrong(name, "a contiguous tensor to write to", tensor)
        if tensor.is_neg() or tensor.is_conj():
            other = "negatives" if tensor.is_neg() else "conjugates"
            raise self.checks.wrong(
                name, f"a tensor to write to, whose memory holds its values, not their {other}", tensor
            )
        if tensor.requires_grad and torch.is_grad_enabled() and tensor.numel():
            raise CaffeRuntimeError(
                f"{self.checks.name}: {name}: autograd does not see what {self.function} writes to a tensor that "
                "requires a gradient: call it under torch.no_grad(), or detach the tensor"
            )

    def _number(self, kind: str, name: str, value):
        """The argument as a number of its C type, or an error that names it."""
        if bounds := integer_range(kind):
            return int(value) if isinstance(value, bool) else self.checks.integer(name, value, *bounds)
        if kind in ("bool", "_Bool"):
            return self._truth(name, value)
        if getattr(getattr(value, "dtype", None), "kind", "f") not in "biuf" or _is_complex(value):  # numpy's
            raise self.checks.wrong(name, "a number", value)
        try:  # float() would read text, too
            number = float(value if hasattr(value, "__float__") else operator.index(value))
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise self.checks.wrong(name, "a number", value) from None
        if kind == "float":
            try:
                struct.pack("<f", number)  # C would round it to infinity
            except OverflowError:
                self.checks.check(False, name, "a number that a float can hold", value)
        return number

    def _truth(self, name: str, value) -> bool:
        """A bool of Python, numpy or torch, or the number 0 or 1. The truth of anything else is not meant."""
        dtype = getattr(value, "dtype", None)
        try:
            if isinstance(value, bool) or dtype is torch.bool or getattr(dtype, "kind", "") == "b":
                return bool(value)
            if (number := operator.index(value)) in (0, 1):
                return bool(number)
        except (TypeError, ValueError, RuntimeError):
            pass
        raise self.checks.wrong(name, "a bool", value)

    def _refuse_small(self, arguments: tuple) -> None:
        """Refuse counts that are larger than their tensors: C computes the sizes in the header's comments."""
        if (found := self.call.too_small(*arguments)) is None:
            return
        place, sizes = found
        name = self.parameters[place - self.returns_number][1]
        values = {n: a for (_, n), a in zip(self.passed, arguments, strict=True)}
        numbers = (f"{n} {values[n]}" for t, n in self.passed if not t.endswith("*") and t != "Tensor")
        told = f"as {self.function} is told by {', '.join(numbers)}"
        self.checks.check(False, name, f"memory for {list(sizes)} elements, {told}", values[name])

    def _as_c_takes_it(self, kind: str, name: str, tensor: Tensor) -> Tensor:
        """Plain, with no negative or conjugate bit, and contiguous unless the layer takes any layout, or an error."""
        if is_const(kind):
            tensor = tensor if self.any_layout else tensor.contiguous()
            # The memory of a view like z.conj().imag holds the negative values.
            tensor = tensor.resolve_neg() if tensor.is_neg() else tensor
            tensor = tensor.resolve_conj() if tensor.is_conj() else tensor
        tensor = tensor if type(tensor) in PLAIN else tensor.as_subclass(Tensor)
        address = tensor.data_ptr()
        if not address and tensor.numel():
            raise self.checks.wrong(
                name, "a tensor that has memory (not a ZeroTensor or a freed one)", tensor
            )
        alignment = max(self.alignments.get(name, 1), tensor.element_size())
        if address % alignment:
            at = f"{address % alignment} bytes beyond such an address"
            self.checks.check(
                False, name, f"memory at a multiple of {alignment} bytes ({at}: clone it)", tensor
            )
        return tensor


def _is_complex(value) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def _one_of(dtypes: tuple[torch.dtype, ...]) -> str:
    """Tensors of these dtypes, in words."""
    names = [dtype_name(dtype) for dtype in dtypes]
    return f"a tensor of {', '.join(names)}" if len(names) > 2 else " or ".join(names)


def is_const(kind: str) -> bool:
    """Is it a pointer to const, which C does not write to?"""
    return kind.startswith("const ")


def _steps(c, places: dict[str, int], node: ast.expr) -> tuple[tuple[int, int], ...]:
    """An expression's steps for class Formula of src/edge/call_launcher.h."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return ((c.NUMBER, node.value),)
    if isinstance(node, ast.Name):
        return ((c.PARAMETER, places[node.id]),)
    if isinstance(node, ast.UnaryOp):
        negated = ((c.NEGATE, 0),) if isinstance(node.op, ast.USub) else ()
        return (*_steps(c, places, node.operand), *negated)
    assert isinstance(node, ast.BinOp)  # build_ffi.py admits no other
    kinds: dict[type[ast.operator], int] = {
        ast.Add: c.ADD, ast.Sub: c.SUBTRACT, ast.Mult: c.MULTIPLY, ast.FloorDiv: c.DIVIDE,
    }  # fmt: skip
    left, right = (_steps(c, places, side) for side in (node.left, node.right))
    return (*left, *right, (kinds[type(node.op)], 0))
