"""A C function of a layer as a Python function.

C checks each call by the function's declaration, and launches (src/edge/call_launcher.h). If C does not accept the
arguments, Python converts them here and calls C again, or raises the error that names the argument.
"""

import ast
import functools
import inspect
from typing import Any

import torch
from torch import Tensor

from ..backends import BACKENDS
from ..base.errors import CaffeRuntimeError, describe
from ..base.tracing import explain_onnx, is_recorded, launches
from . import extension
from .checks import Checks
from .conversion import Conversion
from .extension import DTYPES
from .launcher_operator import register
from .library import Libraries, backend_of
from .padding import Padding
from .planning import STREAM_VALUE, Launched, watcher
from .signature import Signature, integer_range, is_const


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
        self.signature = Signature(checks, libraries, function)
        self.conversion = Conversion(self.signature, any_layout)
        self.codes = libraries.codes()
        self._attached: set[str] = set()  # the backends whose function C knows
        self.call = self._builtin()

    # ------------------------------------------------------------------------------------ called by C

    def _builtin(self):
        c, signature = extension.extension(self.checks.name), self.signature
        places = {name: i + signature.returns_number for i, (_, name) in enumerate(signature.parameters)}
        ours = tuple(DTYPES[dtype] for dtype in self.libraries.dtypes)
        like = [(c.LIKE, 0, 0, 1, 0, 0, ours, None, None)] if signature.returns_number else []
        function = _builtin(c.Launcher)(
            parameters=(
                *like,
                *(self._parameter(c, places, kind, name) for kind, name in signature.parameters),
            ),
            codes=tuple((DTYPES[dtype], code) for dtype, code in self.codes.items()),
            any_layout=self.any_layout,
            returns_number=signature.returns_number,
            careful=self.careful,
            fail=self._fail,
        )
        function.__name__, function._module = self.function, self.libraries.module
        function.__qualname__ = f"{self.checks.name}.{self.function}"
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=kind)
                for kind, name in signature.passed
            ]
        )
        function.__doc__ = (
            f"{self.function}{function.__signature__}\n\nThe C function of layer {self.checks.name}. "
            + (
                "Its result may depend on the device and the dtype of `like`."
                if signature.returns_number
                else "Pass tensors for pointers. It runs on torch's current stream, and returns nothing."
            )
        )
        return function

    def _parameter(self, c, places: dict[str, int], kind: str, name: str) -> tuple:
        """struct Parameter of src/edge/call_launcher.h."""
        signature = self.signature
        number = (0, 0, 1, 0, 0, (), None, None)
        if (kind, name) == ("void *", "stream"):
            return c.STREAM, *number
        if (kind, name) not in signature.passed:
            # Where no tensor has it.
            alone = (DTYPES[torch.int64],) if name in signature.indices.values() else ()
            return c.DTYPE, signature.groups.index(name), 0, 1, 0, 0, alone, None, None
        if kind.endswith("*"):
            flags = c.IS_WRITTEN * (not is_const(kind)) | c.MAY_BE_NULL * (name in signature.may_be_null)
            dtypes = tuple(DTYPES[dtype] for dtype in signature.dtypes(kind, name))
            sizes = [
                tuple(_steps(c, places, ast.parse(text, mode="eval").body) for text in texts)
                for texts in signature.extents.get(name, ())
            ] or (None, None)
            group = signature.groups.index(signature.group(name)) if kind.endswith("void *") else -1
            return c.TENSOR, group, flags, signature.alignments.get(name, 1), 0, 0, dtypes, *sizes
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

    # ------------------------------------------------------------------- a call that C does not make at once

    def careful(self, *arguments, **named):
        """Run any call. Where torch must see it, it is a call of an operator; within a shape function it is nothing."""
        arguments = self.conversion.counted(arguments, named)
        if not self.signature.returns_number:
            if not launches():
                return None
            if watcher() is None and is_recorded(arguments):
                return self._recorded(arguments)
        # planning's Reads must not take our own questions for the layer's.
        with torch._C.DisableTorchFunction():
            return self._run(*arguments)

    def _recorded(self, arguments: tuple) -> None:
        """Call the operator of torch.library, which tracers and modes see."""
        tensors = {
            n: a for (_, n), a in zip(self.signature.passed, arguments, strict=True) if isinstance(a, Tensor)
        }
        self.conversion.check_tensors(tensors)
        explain_onnx(self.checks.name, self.torch_op)
        self.torch_op(*arguments)

    @functools.cached_property
    def torch_op(self):
        """The operator of torch.library. It is defined when a graph needs it."""
        parameters = [(kind, name) for kind, name in self.signature.passed if kind != "Tensor"]
        operator, self._library = register(
            self.libraries.module, self.function, parameters, self.signature.may_be_null, self._run
        )
        return operator

    def _run(self, *arguments):
        """Convert the arguments of a call, and call C. If they are wrong, the error names one."""
        arguments = self.conversion.converted(arguments)
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
        if (watching := watcher()) and not self.signature.returns_number:
            watching.launches.append(self._launched(arguments))
        return result

    def _first_call(self, arguments: tuple):
        """C's result, or an error if it wrote beside a tensor."""
        if torch.compiler.is_compiling():  # torch.compile would trace how memory is compared
            return self.call.attempt(*arguments)
        written = {
            name: a
            for (kind, name), a in zip(self.signature.passed, arguments, strict=True)
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
        values = {
            name: 0 if a is None else a for (_, name), a in zip(self.signature.passed, arguments, strict=True)
        }
        tensors = {n: values[n] for t, n in self.signature.passed if t == "void *" or t == "const void *"}
        tensors = {n: t for n, t in tensors.items() if isinstance(t, Tensor)}
        first = next(a for a in arguments if isinstance(a, Tensor))
        library = self.libraries[backend_of(first.device).name]
        dtypes = dict.fromkeys(self.signature.indices.values(), torch.int64)
        dtypes |= {self.signature.group(name): tensor.dtype for name, tensor in tensors.items()}
        values |= {
            group: library.codes[dtype]
            for group in self.signature.groups
            if (dtype := dtypes.get(group, dtypes.get("dtype")))
        }
        kinds, names = zip(*self.signature.parameters, strict=True)
        return Launched(
            library, self.function, kinds, tuple((values | {"stream": STREAM_VALUE})[n] for n in names)
        )

    def _refuse_small(self, arguments: tuple) -> None:
        """Refuse counts that are larger than their tensors: C computes the sizes in the header's comments."""
        if (found := self.call.too_small(*arguments)) is None:
            return
        place, sizes = found
        name = self.signature.parameters[place - self.signature.returns_number][1]
        values = {n: a for (_, n), a in zip(self.signature.passed, arguments, strict=True)}
        numbers = (
            f"{n} {values[n]}" for t, n in self.signature.passed if not t.endswith("*") and t != "Tensor"
        )
        told = f"as {self.function} is told by {', '.join(numbers)}"
        self.checks.check(False, name, f"memory for {list(sizes)} elements, {told}", values[name])


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
