"""From a Python function to an operator: eager, autograd, autocast and torch.compile, stated once.

    @operator(layer)
    def round_ste(bottom: Tensor) -> Tensor:
        top = layer.empty_like(bottom)
        layer.round_forward(bottom, top, bottom.numel())
        return top

    @round_ste.backward
    def _(ctx, top_diff):
        return top_diff

The function allocates and launches, and depends on its arguments alone. It is the eager implementation, the shape
function of torch.compile (where launches do nothing) and what autograd runs. There are two ways of a call. The short
one is a builtin (src/call.cpp): calls like one that came before are done by its plan. The careful one, `otherwise`
below, takes everything else and says what is wrong.
"""

import collections.abc
import functools
import inspect
import types
import typing
import warnings
from operator import or_

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .errors import PLAIN, CaffeRuntimeError, CaffeTypeError, refuse_script
from .layer import Layer
from .recording import run_and_record
from .short import CASTS, short

# What autocast changes: never a double.
_CASTABLE = frozenset({torch.float32, torch.float16, torch.bfloat16})
_defined: dict[str, torch.library.Library] = {}


def operator(layer: Layer, *, autocast: str = "promote", stays_float: collections.abc.Sequence[str] = ()):
    """Decorate a layer's function: tensors, then parameters, in; a tensor or a tuple of tensors out.

    Args:
        layer: whose operator it is. torch knows it as `torch.ops.<package>_<layer>.<function>`.
        autocast: what happens to floating inputs under torch.autocast. 'promote': all get the widest
            dtype among them (as torch does for pointwise functions); 'lower': all get autocast's dtype (as
            torch does for convolutions); 'float32': all get float32; 'none': they stay as they are, for a backward,
            which gets what its forward had.
        stays_float: tensors, such as weights, that autocast leaves in float32, because the kernels read them beside
            a half type. Neither they nor their gradients are cast.
    """
    if autocast not in CASTS:
        raise ValueError(f"autocast: expected one of {', '.join(map(repr, CASTS))}, got {autocast!r}")
    return lambda function: Operator(layer, function, autocast, stays_float).entry


def schema_of(function) -> str:
    """torch's words for what a function takes and gives."""
    try:
        return torch.library.infer_schema(function, mutates_args=())
    except ValueError:
        # An older torch, 2.5 for one, knows typing's sequences alone.
        hints = typing.get_type_hints(function)
        signature = inspect.signature(function)
        parameters = [
            p.replace(annotation=_by_typing(hints.get(name, p.annotation)))
            for name, p in signature.parameters.items()
        ]

        def same():
            """Has a signature, and that is all."""

        same.__signature__ = signature.replace(parameters=parameters, return_annotation=hints.get("return"))
        return torch.library.infer_schema(same, mutates_args=())


def _by_typing(hint):
    """`list[int]` and `collections.abc.Sequence[int]` as `typing.Sequence[int]`, optional ones, too."""
    origin, of = typing.get_origin(hint), typing.get_args(hint)
    if origin in (list, collections.abc.Sequence):
        return typing.Sequence[of[0]]
    if origin in (types.UnionType, typing.Union):
        return functools.reduce(or_, map(_by_typing, of))
    return hint


def _is_differentiated_by_functorch() -> bool:
    levels = torch._C._functorch.get_interpreter_stack() or ()
    return any(level.key() == torch._C._functorch.TransformType.Grad for level in levels)


class Operator:
    """What `operator` builds. Its `entry` is the function that users call."""

    def __init__(self, layer: Layer, function, autocast: str, stays_float):
        self.layer, self.function, self.autocast, self.stays_float = layer, function, autocast, stays_float
        self.signature = inspect.signature(function)
        # A list: older torch.compile cannot look into a signature.
        self.names = list(self.signature.parameters)
        hints = typing.get_type_hints(function)
        kinds = {n: _tensor_kind(hints[n]) for n in self.names if n in hints}
        self.tensors = [n for n in self.names if kinds.get(n)]
        self.optional = {n for n in self.tensors if kinds[n] == "optional"}
        if not self.tensors:
            raise TypeError(f"{layer.name}: {function.__name__}: annotate the tensors among its parameters")
        self.defaults = {
            n: p.default for n, p in self.signature.parameters.items() if p.default is not p.empty
        }
        if unknown := set(stays_float) - set(self.tensors):
            raise TypeError(
                f"{layer.name}: {function.__name__}: stays_float: no tensors are called {unknown}"
            )
        self.short = self._short()
        self.torch_op = self._register()
        self.backward(self._no_backward, registered=False)
        self.entry = self._entry()

    def _short(self):
        letters = "".join(
            "p" if n not in self.tensors else "o" if n in self.optional else "t" for n in self.names
        )
        letters = "".join(
            c.upper() if n in self.stays_float else c for c, n in zip(letters, self.names, strict=True)
        )
        return short(
            letters, self.otherwise, self.plain, self.record,
            defaults=self.defaults.values(), cast=self.cast, casts=self.autocast,
        )  # fmt: skip

    def _register(self):
        function, layer = self.function, self.layer
        namespace = layer.module.replace(".", "_")
        name = f"{namespace}::{function.__name__}"
        if name in _defined:  # the module was reloaded
            _defined.pop(name)._destroy()
        library = _defined[name] = torch.library.Library(namespace, "FRAGMENT")
        schema = schema_of(function)
        # Operators take any strides, so compiled code need not keep those that were traced: inductor may choose
        # channels_last for a whole network.
        tags = (torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout)
        library.define(function.__name__ + schema, tags=tags)
        torch_op = getattr(getattr(torch.ops, namespace), function.__name__).default
        # Compiled code calls this object. The short way asks what torch's dispatcher would, in less time. `_op` is an
        # attribute of torch's own: under a torch without it, calls are slower, and right.
        if hasattr(self.short, "dispatched") and hasattr(torch_op, "_op"):
            torch_op._op = functools.partial(self.short.dispatched, torch_op._op)
        for key in ("CPU", "CUDA"):
            library.impl(function.__name__, getattr(self.short, "registered", self.registered), key)
        torch.library.register_fake(name, self.shape, lib=library)
        return torch_op

    def _entry(self):
        """The function that users call."""
        call, compiling, compiled = self.short, torch.compiler.is_dynamo_compiling, self.compiled

        def entry(*arguments, **named):
            if compiling():
                return compiled(*arguments, **named)
            return call(*arguments, **named)

        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
            setattr(entry, attribute, getattr(self.function, attribute))
        entry.__signature__ = self.signature
        entry.backward, entry.backward_by, entry.operator = self.backward, self.backward_by, self
        entry.__prepare_scriptable__ = functools.partial(refuse_script, self.layer.name)
        return entry

    # ---------------------------------------------------------------------------------- the careful way

    def bound(self, arguments: tuple, named: dict) -> tuple:
        """A value for each parameter, or an error that names the one that has none or two."""
        given, where = list(arguments), f"{self.layer.name}: {self.function.__name__}"
        names = self.names
        for name in names[len(given) :]:
            if name not in named and name not in self.defaults:
                raise CaffeTypeError(f"{where}: {name} is missing")
            given.append(named[name] if name in named else self.defaults[name])
        if len(given) > len(names) or any(name not in names[len(arguments) :] for name in named):
            raise CaffeTypeError(f"{where} takes {', '.join(names)}, each once")
        return tuple(given)

    def compiled(self, *arguments, **named):
        """What torch.compile and tracers see: the registered operator."""
        arguments = self.bound(arguments, named)
        if torch._C._is_any_autocast_enabled():
            arguments = self.cast(*arguments)
        return self.torch_op(*arguments)

    def otherwise(self, *arguments, **named):
        """Any call: tensor subclasses, modes, tracing, torch.func, wrong arguments."""
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
        # In forward mode, too: autograd refuses tangents with an error, the function would drop them.
        if wants or forward_ad._current_level >= 0:
            return self.apply(*arguments)
        return self.function(*arguments)

    @staticmethod
    def _is_exotic(tensors) -> bool:
        if torch._C._len_torch_dispatch_stack() or torch._C._are_functorch_transforms_active():
            return True
        return any(isinstance(t, Tensor) and type(t) not in PLAIN for t in tensors)

    def exotic(self, *arguments):
        """Tensor subclasses, dispatch modes and functorch transforms: torch.library knows them."""
        self.refuse(*arguments, meta=True)
        if forward_ad._current_level >= 0:  # it would drop the tangents in silence
            raise CaffeRuntimeError(
                f"{self.layer.name}: {self.function.__name__} has no forward-mode derivative (jvp)"
            )
        if _is_differentiated_by_functorch():  # torch's own words name no layer
            raise CaffeRuntimeError(
                f"{self.layer.name}: torch.func's grad, vjp and jacrev cannot look into {self.function.__name__}: "
                "torch.autograd.grad can"
            )
        return self.torch_op(*arguments)

    def registered(self, *arguments, **named):
        """What torch.ops runs: whoever calls that may give anything, and torch leaves out defaults."""
        return self.plain(*self.bound(arguments, named))

    def shape(self, *arguments, **named):
        """What torch.ops runs to know the results' shapes: launches do nothing then."""
        arguments = self.bound(arguments, named)
        self.refuse(*arguments, meta=True)
        return self.function(*arguments)

    def plain(self, *arguments):
        """A call of plain tensors, inside of which no gradient is wanted."""
        self.refuse(*arguments)
        return self.function(*arguments)

    def record(self, *arguments):
        """The same; the next call like it is a plan's, if this one can be written down as one."""
        self.refuse(*arguments)
        result, plan = run_and_record(self.function, arguments)
        if plan is not None:
            self.short.add(arguments, plan)
        return result

    def refuse(self, *arguments, meta: bool = False) -> None:
        """Name the argument that is no tensor for a layer; torch's own message would name a schema or nothing."""
        first = None
        for name, value in zip(self.names, arguments, strict=True):
            if name not in self.tensors or (value is None and name in self.optional):
                continue
            self.layer.check_tensor(name, value, meta=meta)
            first = first or (name, value.device)
            if value.device != first[1]:
                raise self.layer.wrong(name, f"a tensor on {first[1]} as '{first[0]}' is", value)

    def cast(self, *arguments):
        """The arguments with their floating tensors in one dtype, as autocast wants it for this operator."""
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

    def backward_by(self, gradient, save: collections.abc.Sequence[str]):
        """Another operator's results are the gradients, one for each of this one's tensors.

        Args:
            gradient: takes the top_diffs, what is saved, this operator's parameters, and for each of its tensors
                whether that one's gradient is wanted. Where it is not, the result is left out.
            save: the names of those of this operator's tensors that `gradient` takes.
        """
        self._check_gradient(gradient, save)
        places = tuple(self.names.index(name) for name in save)
        is_tensor = [name in self.tensors for name in self.names]

        def keep(ctx, arguments, result):
            ctx.save_for_backward(*(arguments[i] for i in places))
            ctx.parameters = tuple(a for a, t in zip(arguments, is_tensor, strict=True) if not t)

        def backward(ctx, *top_diffs):
            wanted = [w for w, t in zip(ctx.needs_input_grad, is_tensor, strict=True) if t]
            diffs = gradient(*top_diffs, *ctx.saved_tensors, *ctx.parameters, *wanted)
            diffs = iter(diffs if isinstance(diffs, tuple) else (diffs,))
            pairs = zip(ctx.needs_input_grad, (next(diffs) if t else None for t in is_tensor), strict=True)
            return tuple(diff if want else None for want, diff in pairs)

        self.backward(backward, save=keep)
        if hasattr(self.short, "backward") and hasattr(gradient.operator.short, "backward"):
            self.short.differentiate(self.apply, places, self.careful_backward, gradient.operator.short)
            short = self.short.backward
            self.backward_class.apply = lambda ctx, *top_diffs: short(ctx, *top_diffs)

    def _check_gradient(self, gradient, save) -> None:
        """At the definition: a call would only find that the numbers differ."""
        takes = list(inspect.signature(gradient).parameters)
        tops = len(self.torch_op._schema.returns)
        parameters = [name for name in self.names if name not in self.tensors]
        given = ["top_diff"] * tops + [*save, *parameters] + [f"{name}_wanted" for name in self.tensors]
        if unknown := [name for name in save if name not in self.tensors]:
            raise CaffeTypeError(
                f"{self.layer.name}: backward_by: save: {unknown[0]!r} is no tensor of {self.function.__name__}"
            )
        if len(takes) != len(given):
            raise CaffeTypeError(
                f"{self.layer.name}: backward_by: {gradient.__name__} is given {', '.join(given)}; "
                f"it takes {', '.join(takes)}"
            )

    def backward(self, function=None, *, save=None, twice: bool = False, registered: bool = True):
        """Decorate `backward(ctx, *top_diffs)`, which returns one gradient (or None) per argument.

        Args:
            save: `save(ctx, arguments, result)` keeps what backward needs, by ctx.save_for_backward for tensors.
            twice: backward is made of differentiable operators, so that it can be differentiated again. Otherwise
                a second derivative is an error, never a wrong number.
            registered: torch.library is told, too.
        """
        if function is None:
            return lambda function: self.backward(function, save=save, twice=twice)
        name = f"{self.layer.module}.{self.function.__name__}"
        node = function if twice else once(function, name)
        self.apply = self._node(node, save)
        if hasattr(self.short, "differentiate"):
            self.short.differentiate(self.apply, save, node, None)
        if registered:
            torch.library.register_autograd(
                self.torch_op.name().split(".")[0],
                node,
                setup_context=None if save is None else lambda ctx, inputs, output: save(ctx, inputs, output),
                lib=_defined[f"{self.layer.module.replace('.', '_')}::{self.function.__name__}"],
            )
        return function

    def _node(self, backward, save=None):
        """The `apply` of an autograd.Function."""
        name = self.function.__name__

        def forward(ctx, *arguments):
            result = self.plain(*arguments)
            if save is not None:
                save(ctx, arguments, result)
            return result

        kept = {
            "forward": staticmethod(getattr(self.short, "forward", forward)),
            "backward": staticmethod(backward),
            "__doc__": f"Autograd of {name}.",
        }
        node = type(f"{name}_function", (torch.autograd.Function,), kept)
        # What the graph calls. Torch's own looks for a vjp first, which no node of ours has.
        self.backward_class, self.careful_backward = node._backward_cls, backward
        self.backward_class.apply = backward
        # Function.apply's Python part looks for functorch transforms, which are excluded already.
        return super(torch.autograd.Function, node).apply

    def _no_backward(self, ctx, *top_diffs):
        raise CaffeRuntimeError(f"{self.layer.name}: {self.function.__name__} has no derivative")


def _widest(dtypes: list[torch.dtype]) -> torch.dtype:
    """What torch promotes them to."""
    return functools.reduce(torch.promote_types, dtypes) if dtypes else torch.float32


def once(function, name: str):
    """A backward whose own derivative is an error.

    torch's once_differentiable looks at top_diff alone: where that is a constant, as in `y.sum()`, it returns
    gradients without a graph, and a penalty on them would silently add nothing to the next gradient.
    """

    def backward(ctx, *top_diffs):
        if not torch.is_grad_enabled():  # no create_graph=True: nobody can ask
            return function(ctx, *top_diffs)
        with torch.no_grad():
            diffs = function(ctx, *top_diffs)
        diffs = diffs if isinstance(diffs, tuple) else (diffs,)
        kept = [d for d in diffs if d is not None]
        refusing = iter(_Refuse.apply(name, len(kept), *kept, *top_diffs, *ctx.saved_tensors))
        return tuple(None if d is None else next(refusing) for d in diffs)

    return backward


class _Refuse(torch.autograd.Function):
    """Hands its first `count` tensors through; they then depend on all, by a derivative that is an error."""

    @staticmethod
    def forward(ctx, name, count, *tensors):
        ctx.name = name
        return tuple(t.view_as(t) for t in tensors[:count])

    @staticmethod
    def backward(ctx, *_):
        raise CaffeRuntimeError(f"{ctx.name} can be differentiated once only: it has no second derivative")


def fx_node(module: torch.nn.Module, name: str, inputs, named=None) -> torch.fx.Proxy | None:
    """A node for a module that torch.fx's tracer cannot look into; None if it is not at work."""
    if type(inputs) is not tuple:  # *inputs of the traced module itself
        raise CaffeRuntimeError(
            f"{name}: torch.fx cannot look into it: trace a module that holds it, of which it becomes a node"
        )
    for value in (*inputs, *(named or {}).values()):
        if isinstance(value, torch.fx.Proxy):
            tracer = value.tracer
            return tracer.create_proxy("call_module", tracer.path_of_module(module), inputs, named or {})
    return None


def explain_onnx(layer: str, operator) -> None:
    """In a traced export, before torch says that it knows no such operator."""
    if torch.onnx.is_in_onnx_export():
        name = operator.name()
        warnings.warn(
            f"{layer}: ONNX has no operator like {name}. torch.onnx.export(dynamo=False) needs a function that writes "
            f'it in others, torch.onnx.register_custom_op_symbolic("{name}", ...), or operator_export_type='
            "torch.onnx.OperatorExportTypes.ONNX_FALLTHROUGH, for a runtime that has it.",
            stacklevel=4,
        )


def _tensor_kind(annotation) -> str | None:
    """What an annotation takes: 'tensor', 'optional' (a tensor or None), or None for anything else."""
    if annotation is Tensor:
        return "tensor"
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    if is_union and set(typing.get_args(annotation)) == {Tensor, type(None)}:
        return "optional"
    if "Tensor" in str(annotation):
        raise TypeError(f"an operator takes Tensor or Tensor | None, not {annotation}")
    return None
