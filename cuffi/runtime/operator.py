"""Make an operator of a layer's Python function: for eager calls, autograd, autocast and torch.compile.

    @operator(layer)
    def round_ste(bottom: Tensor) -> Tensor:
        top = layer.empty_like(bottom)
        layer.round_forward(bottom, top, bottom.numel())
        return top

    @round_ste.backward
    def _(ctx, top_diff):
        return top_diff

The function allocates and launches, and its result depends only on its arguments. Eager calls and autograd run it. It
is also torch.compile's shape function, in which launches do nothing.

There are two ways to make a call. The short way is a builtin (src/edge/call_short.h), which runs a call by the plan of
an earlier call of the same kind. The careful way, `Operator.careful`, makes all other calls, and words the errors.
"""

import difflib
import functools
import inspect
import typing
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..backends import DISPATCH_KEYS, HOST
from ..base.errors import PLAIN, CaffeRuntimeError, CaffeTypeError, CaffeValueError
from ..base.tracing import explain_onnx, refuse_script, traces_before_dispatch, without_launches
from . import extension
from .derivative import by_another, node_of, once, register_backward
from .layer import Layer
from .library import how_to_build
from .named import name_and_library, tell_caches
from .planning import run_and_plan
from .schema import schema_of, tensor_kind

CASTS = ("promote", "lower", "float32", "none")
# The dtypes that autocast casts. It leaves doubles as they are.
_CASTABLE = frozenset({torch.float32, torch.float16, torch.bfloat16})


_P = typing.ParamSpec("_P")
_Result = typing.TypeVar("_Result", covariant=True)


class Differentiable(typing.Protocol[_P, _Result]):
    """What `operator` makes of a function: it is called as the function is, and gets a derivative by these."""

    __name__: str
    operator: "Operator"
    backward: Callable[..., typing.Any]

    def backward_by(self, gradient: Callable[..., typing.Any], save: Sequence[str]) -> None: ...

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _Result: ...


def operator(
    layer: Layer, *, autocast: str = "promote", stays_float: Sequence[str] = ()
) -> Callable[[Callable[_P, _Result]], Differentiable[_P, _Result]]:
    """Decorate a layer's function. It takes tensors and parameters, and returns a tensor or a tuple of tensors.

    The function must depend only on its arguments: a call like an earlier one is repeated without calling it.

    Args:
        layer: the function's layer. torch knows the operator as `torch.ops.<package>_<layer>.<function>`.
        autocast: what happens to floating inputs under torch.autocast. 'promote': all get the widest
            dtype among them (as torch does for pointwise functions); 'lower': all get autocast's dtype (as
            torch does for convolutions); 'float32': all get float32; 'none': they stay as they are. Use 'none' for a
            backward, which gets the tensors that its forward used.
        stays_float: tensors, such as weights, that autocast leaves in float32, because the kernels read them beside
            a half type. Neither they nor their gradients are cast.

    Returns:
        A decorator. It returns a function with the same arguments, which has the decorator `backward` and the method
        `backward_by` (class Operator) to define its derivative. Without them it has no derivative.

    Raises:
        CaffeTypeError: no parameter is annotated as a tensor, or `stays_float` names one that is none.
        CaffeValueError: `autocast` is none of these words.
    """
    if autocast not in CASTS:
        wanted = f"expected one of {', '.join(map(repr, CASTS))}, got {autocast!r}"
        raise CaffeValueError(f"{layer.name}: operator: autocast: {wanted}")
    return lambda function: Operator(layer, function, autocast, stays_float).entry


def _is_differentiated_by_functorch() -> bool:
    levels = torch._C._functorch.get_interpreter_stack() or ()
    return any(level.key() == torch._C._functorch.TransformType.Grad for level in levels)


class Operator:
    """One operator. Users call its `entry`.

    Attributes:
        names, tensors, optional: the names of all parameters, of the tensors, and of the tensors that may be None.
        short: the builtin that runs a call by its plan. Without the extension, a function that raises the error.
        torch_op: the operator in torch.ops, for graphs.
        library, of_torch: what torch.library has of it, and torch's own way to call it.
        apply: makes the autograd node of a call.
    """

    def __init__(self, layer: Layer, function, autocast: str, stays_float):
        self.layer, self.function, self.autocast, self.stays_float = layer, function, autocast, stays_float
        self.signature = inspect.signature(function)
        # A list: older torch.compile cannot look into a signature.
        self.names = list(self.signature.parameters)
        hints = typing.get_type_hints(function)
        where = f"{layer.name}: {function.__name__}"
        kinds = {n: tensor_kind(f"{where}: {n}", hints[n]) for n in self.names if n in hints}
        self.tensors = [n for n in self.names if kinds.get(n)]
        self.optional = {n for n in self.tensors if kinds[n] == "optional"}
        if not self.tensors:
            raise CaffeTypeError(
                f"{where}: annotate the tensors among {', '.join(self.names) or 'its parameters'}"
            )
        self.defaults = {
            n: p.default for n, p in self.signature.parameters.items() if p.default is not p.empty
        }
        if unknown := set(stays_float) - set(self.tensors):
            raise CaffeTypeError(f"{where}: stays_float: no tensors are called {', '.join(sorted(unknown))}")
        self.short = self._short()
        self.torch_op = self._register()
        self.backward(self._no_backward, registered=False)
        self.entry = self._entry()

    def _short(self):
        c = extension.usable()
        if c is None:
            return self._missing
        letters = "".join(
            "p" if n not in self.tensors else "o" if n in self.optional else "t" for n in self.names
        )
        letters = "".join(
            c.upper() if n in self.stays_float else c for c, n in zip(letters, self.names, strict=True)
        )
        if len(letters) > c.MOST_PARAMETERS:
            return self.careful
        return c.Short(
            parameters=letters, defaults=tuple(self.defaults.values()), cast=self.cast,
            casts=getattr(c, f"CAST_{self.autocast.upper()}"),
            careful=self.careful, plain=self.plain, planning=self.planning,
        )  # fmt: skip

    def _missing(self, *_, **__):
        layer = self.layer
        if not layer.backends():
            raise CaffeRuntimeError(how_to_build(layer.name, HOST.name, layer.folder / HOST.library))
        extension.extension(layer.name)

    def _register(self):
        function, layer = self.function, self.layer
        name, library = name_and_library(layer.module, function.__name__)
        self.library = library
        schema = schema_of(function)
        # Operators take any strides, so compiled code need not keep the traced ones, and inductor may choose
        # channels_last for a whole network.
        tags = (torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout)
        library.define(function.__name__ + schema, tags=tags)
        torch_op = getattr(getattr(torch.ops, library.ns), function.__name__).default
        kernel = self._in_torch(torch_op)
        for key in DISPATCH_KEYS:
            library.impl(function.__name__, kernel, key)
        torch.library.register_fake(name, self.shape, lib=library)
        tell_caches(name, function)
        return torch_op

    def _in_torch(self, torch_op):
        """The kernel for a device's key. Compiled code calls torch_op, and that calls its _op, which is set here."""
        if not hasattr(self.short, "in_torch"):
            return self.registered
        self.of_torch = torch_op._op
        self.short.in_torch(registered=self.registered, autograd=None, op=self.of_torch)
        torch_op._op = self.short.op  # before torch hashes torch_op, which is by its _op
        return self.short.kernel

    def _entry(self):
        """The function that users call."""
        call, compiling, compiled = self.short, torch.compiler.is_dynamo_compiling, self.compiled

        def entry(*arguments, **named):
            if compiling():
                return compiled(*arguments, **named)
            return call(*arguments, **named) if named else call(*arguments)

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
            setattr(entry, attribute, getattr(self.function, attribute))
        vars(entry).update(
            __signature__=self.signature,
            backward=self.backward,
            backward_by=self.backward_by,
            operator=self,
            __prepare_scriptable__=functools.partial(refuse_script, self.layer.name),
        )
        return entry

    # ---------------------------------------------------------------------------------- the careful way

    def bound(self, arguments: tuple, named: dict) -> tuple:
        """A value for each parameter. The error names what is unknown, too much, given twice, or missing."""
        values, where = list(arguments), f"{self.layer.name}: {self.function.__name__}"
        names = self.names
        if len(values) > len(names):
            raise CaffeTypeError(
                f"{where} takes {len(names)} argument{'s' * (len(names) != 1)}, {', '.join(names)}: got {len(values)}"
            )
        for name in named:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f". Did you mean {near[0]}?" if near else ""
                raise CaffeTypeError(f"{where} has no parameter {name}. It takes {', '.join(names)}{hint}")
            if name in names[: len(arguments)]:
                raise CaffeTypeError(f"{where}: {name} is given twice, by its place and by its name")
        for name in names[len(values) :]:
            if name not in named and name not in self.defaults:
                raise CaffeTypeError(f"{where}: {name} is missing")
            values.append(named[name] if name in named else self.defaults[name])
        return tuple(values)

    def compiled(self, *arguments, **named):
        """Call the registered operator, which torch.compile and tracers see."""
        arguments = self.bound(arguments, named)
        if torch._C._is_any_autocast_enabled():
            arguments = self.cast(*arguments)
        return self.torch_op(*arguments)

    def careful(self, *arguments, **named):
        """Run any call: with tensor subclasses, modes, tracing, torch.func or wrong arguments."""
        arguments = self.bound(arguments, named)
        if any(isinstance(a, torch.fx.Proxy) for a in arguments):  # a node of torch.fx's
            return self.torch_op(*arguments)
        tensors = [a for n, a in zip(self.names, arguments, strict=True) if n in self.tensors]
        if torch._C._is_tracing():
            explain_onnx(self.layer.name, self.torch_op)
            return self.compiled(*arguments)
        if torch._C._is_any_autocast_enabled():
            arguments = self.cast(*arguments)
        if self._is_exotic(tensors):
            return self.exotic(*arguments)
        self.refuse(*arguments)
        wants = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)
        # In forward mode, too: autograd raises an error for tangents, and the plain function would lose them.
        if wants or forward_ad._current_level >= 0:
            return self.apply(*arguments)
        return self.function(*arguments)

    @staticmethod
    def _is_exotic(tensors) -> bool:
        modes = torch._C._len_torch_dispatch_stack() or traces_before_dispatch()
        if modes or torch._C._are_functorch_transforms_active():
            return True
        # Batched: of autograd.grad's is_grads_batched, and jacobian's vectorize.
        batched = torch._C._functorch.is_legacy_batchedtensor
        return any(isinstance(t, Tensor) and (type(t) not in PLAIN or batched(t)) for t in tensors)

    def exotic(self, *arguments):
        """Run a call with tensor subclasses, dispatch modes or functorch transforms, which torch.library handles."""
        self.refuse(*arguments, meta=True)
        if forward_ad._current_level >= 0:  # torch.library would lose the tangents silently
            raise CaffeRuntimeError(
                f"{self.layer.name}: {self.function.__name__} has no forward-mode derivative (jvp)"
            )
        if _is_differentiated_by_functorch():  # torch's own message names no layer
            raise CaffeRuntimeError(
                f"{self.layer.name}: torch.func's grad, vjp and jacrev cannot look into {self.function.__name__}: "
                "torch.autograd.grad can"
            )
        return self.torch_op(*arguments)

    def registered(self, *arguments, **named):
        """The implementation for torch.ops. Its callers may pass anything, and torch leaves out defaults."""
        return self.plain(*self.bound(arguments, named))

    def shape(self, *arguments, **named):
        """The shape function for torch.ops: launches do nothing."""
        arguments = self.bound(arguments, named)
        self.refuse(*arguments, meta=True)
        with without_launches():
            return self.function(*arguments)

    def plain(self, *arguments):
        """Run a call of plain tensors that needs no gradient."""
        self.refuse(*arguments)
        return self.function(*arguments)

    def planning(self, *arguments):
        """Like plain, and make a plan for the next call of this kind, if that is possible."""
        self.refuse(*arguments)
        result, plan = run_and_plan(self.function, arguments)
        if plan is not None:
            self.short.add(arguments, plan)
        return result

    def refuse(self, *arguments, meta: bool = False) -> None:
        """Check the tensors. torch's own message would not name the argument."""
        first = None
        for name, value in zip(self.names, arguments, strict=True):
            if name not in self.tensors or (value is None and name in self.optional):
                continue
            self.layer.check_tensor(name, value, meta=meta)
            first = first or (name, value.device)
            if value.device != first[1]:
                raise self.layer.wrong(name, f"a tensor on {first[1]} as '{first[0]}' is", value)

    def cast(self, *arguments):
        """The arguments with their floating tensors in the dtype that autocast chooses for this operator."""
        tensors = [a for a in arguments if isinstance(a, Tensor)]
        if self.autocast == "none" or not tensors or not torch.is_autocast_enabled(tensors[0].device.type):
            return arguments
        if self.autocast == "lower":
            dtype = torch.get_autocast_dtype(tensors[0].device.type)
        elif self.autocast == "float32":
            dtype = torch.float32
        else:
            dtype = _widest([t.dtype for t in tensors if t.dtype.is_floating_point])
        return tuple([
            a.to(dtype) if isinstance(a, Tensor) and a.dtype is not dtype and a.dtype in _CASTABLE
            and not (a.dtype is torch.float32 and n in self.stays_float) else a
            for n, a in zip(self.names, arguments, strict=True)
        ])  # fmt: skip

    def backward_by(self, gradient, save: Sequence[str]):
        """Let another operator compute the gradients: its results are one gradient for each tensor of this operator.

        Args:
            gradient: the other operator. It takes the top_diffs, the saved tensors, this operator's parameters, and for
                each of its tensors a bool: is its gradient needed? Other results are ignored.
            save: the names of the tensors of this operator that `gradient` takes.
        """
        keep, backward = by_another(self, gradient, save)
        self.backward(backward, save=keep)
        if hasattr(self.short, "differentiate") and hasattr(gradient.operator.short, "differentiate"):
            careful = once(backward, f"{self.layer.module}.{self.function.__name__}")
            self.apply = node_of(self, self.short.backward)
            saved = tuple(self.names.index(name) for name in save)
            self.short.differentiate(
                apply=self.apply, save=saved, backward=careful, by=gradient.operator.short
            )

    def backward(self, function=None, *, save=None, twice: bool = False, registered: bool = True):
        """Decorate `backward(ctx, *top_diffs)`, which returns one gradient (or None) per argument.

        Args:
            save: `save(ctx, arguments, result)` saves what backward needs, tensors by ctx.save_for_backward.
            twice: backward is made of differentiable operators, so that it can be differentiated again. Otherwise a
                second derivative is an error.
            registered: register it with torch.library, too.
        """
        if function is None:
            return lambda function: self.backward(function, save=save, twice=twice)
        name = f"{self.layer.module}.{self.function.__name__}"
        node = function if twice else once(function, name)
        self.apply = node_of(self, node, save)
        if hasattr(self.short, "differentiate"):
            self.short.differentiate(apply=self.apply, save=save, backward=node, by=None)
        if registered:
            register_backward(self, node, save)
        return function

    def _no_backward(self, ctx, *top_diffs):
        raise CaffeRuntimeError(f"{self.layer.name}: {self.function.__name__} has no derivative")


def _widest(dtypes: list[torch.dtype]) -> torch.dtype:
    """The dtype that torch promotes them to."""
    return functools.reduce(torch.promote_types, dtypes) if dtypes else torch.float32
