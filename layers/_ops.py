"""From a Python function to an operator: eager, autograd, autocast and torch.compile, stated once.

    @operator(layer)
    def round_ste(bottom: Tensor) -> Tensor:
        top = layer.empty_like(bottom)
        layer.round_forward(bottom, top, bottom.numel())
        return top

    @round_ste.backward
    def _(ctx, top_diff):
        return top_diff

The function allocates and launches; it is the eager implementation, the shape function of
torch.compile (where launches do nothing) and what autograd runs. Eager calls take the shortest way there
is; tracing and exotic tensors take the way through torch.library.
"""

import inspect

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._runtime import PLAIN, CaffeRuntimeError, Layer

_defined: dict[str, torch.library.Library] = {}


def operator(layer: Layer, *, autocast: str = "promote"):
    """Decorate a layer's function: tensors, then parameters, in; a tensor or a tuple of tensors out.

    Args:
        layer: whose operator it is. torch knows it as `torch.ops.<package>_<layer>.<function>`.
        autocast: what happens to floating inputs under torch.autocast. 'promote': all get the widest
            dtype among them (as torch does for pointwise functions); 'lower': all get autocast's dtype (as
            torch does for convolutions); 'float32': all get float32.
    """
    if autocast not in ("promote", "lower", "float32"):
        raise ValueError(f"autocast: expected 'promote', 'lower' or 'float32', got {autocast!r}")
    return lambda function: Operator(layer, function, autocast).entry


class Operator:
    """What `operator` builds. Its `entry` is the function that users call."""

    def __init__(self, layer: Layer, function, autocast: str):
        self.layer, self.function, self.autocast = layer, function, autocast
        self.signature = inspect.signature(function)
        self.tensors = [n for n, p in self.signature.parameters.items() if _is_tensor(p.annotation)]
        if not self.tensors:
            raise TypeError(f"{layer.name}: {function.__name__}: annotate the tensors among its parameters")
        self.torch_op = self._register()
        self.scope = {
            "forward": function,
            "apply": self._node(self._no_backward),  # replaced by `backward`
            "torch_op": self.torch_op,
            "PLAIN": PLAIN,
            "cast": self.cast,
            "exotic": self.exotic,
            "rescued": self.rescued,
            "Tensor": Tensor,
            "tracing": torch.compiler.is_dynamo_compiling,
            "autocasting": torch._C._is_any_autocast_enabled,
            "modes": torch._C._len_torch_dispatch_stack,
            "grad_enabled": torch.is_grad_enabled,
            "forward_ad": forward_ad,
        }
        self.entry = self._entry()
        self.entry.backward = self.backward
        self.entry.operator = self

    def _register(self):
        function, layer = self.function, self.layer
        namespace = layer.module.replace(".", "_")
        name = f"{namespace}::{function.__name__}"
        if name in _defined:  # the module was reloaded
            _defined.pop(name)._destroy()
        library = _defined[name] = torch.library.Library(namespace, "FRAGMENT")
        schema = torch.library.infer_schema(function, mutates_args=())
        library.define(function.__name__ + schema, tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            library.impl(function.__name__, function, key)
        torch.library.register_fake(name, function, lib=library)
        return getattr(getattr(torch.ops, namespace), function.__name__).default

    def _entry(self):
        """The function users call, with this operator's own parameters: no *args, no loop, no binding."""
        names, tensors = list(self.signature.parameters), self.tensors
        given = ", ".join(names)
        optional = {
            n
            for n in tensors
            if "None" in str(self.signature.parameters[n].annotation)
            or "Optional" in str(self.signature.parameters[n].annotation)
        }
        plain = " and ".join(
            f"({n} is None or type({n}) in PLAIN)" if n in optional else f"type({n}) in PLAIN"
            for n in tensors
        )
        wants = " or ".join(
            f"({n} is not None and {n}.requires_grad)" if n in optional else f"{n}.requires_grad"
            for n in tensors
        )
        defaults = ", ".join(
            f"{n}=defaults[{n!r}]" if p.default is not p.empty else n
            for n, p in self.signature.parameters.items()
        )
        # 'promote' has nothing to do where all dtypes are one, and then is not worth asking whether autocast is on.
        differ = (
            " or ".join(f"{n} is not None and {n}.dtype is not {tensors[0]}.dtype" for n in tensors[1:])
            or "False"
        )
        casting = f"({differ}) and autocasting()" if self.autocast == "promote" else "autocasting()"
        text = f"""
def {self.function.__name__}({defaults}):
    if tracing():
        if autocasting():
            {given}, = cast({given})
        return torch_op({given})
    if not ({plain}) or modes():
        return exotic({given})
    if {casting}:
        {given}, = cast({given})
    try:
        if ({wants}) and grad_enabled() or forward_ad._current_level >= 0:
            return apply({given})
        return forward({given})
    except RuntimeError:
        return rescued({given})
"""
        self.scope["defaults"] = {n: p.default for n, p in self.signature.parameters.items()}
        exec(compile(text, f"<{self.layer.name}.{self.function.__name__}>", "exec"), self.scope)
        entry = self.scope[self.function.__name__]
        entry.__doc__, entry.__module__ = self.function.__doc__, self.function.__module__
        entry.__signature__ = self.signature
        return entry

    def exotic(self, *arguments):
        """Tensor subclasses, dispatch modes and functorch transforms: torch.library knows them."""
        self.refuse(*arguments)
        if forward_ad._current_level >= 0:  # it would drop the tangents in silence
            raise CaffeRuntimeError(
                f"{self.layer.name}: {self.function.__name__} has no forward-mode derivative (jvp)"
            )
        return self.torch_op(*arguments)

    def rescued(self, *arguments):
        """Called while an error is handled: a functorch tensor has no address, and a sparse one is refused by name."""
        if torch._C._are_functorch_transforms_active():
            return self.exotic(*arguments)
        self.refuse(*arguments)
        raise

    def refuse(self, *arguments) -> None:
        """Name the argument that is no dense tensor; torch's own message would name a schema."""
        for (name, parameter), value in zip(self.signature.parameters.items(), arguments, strict=True):
            if (
                name in self.tensors
                and not isinstance(value, Tensor)
                and not (value is None and parameter.default is None)
            ):
                raise self.layer.wrong(name, "a tensor", value)
            if isinstance(value, Tensor) and value.layout != torch.strided:
                raise self.layer.wrong(name, "a dense tensor", value)

    def cast(self, *arguments):
        """Bring floating tensors to one dtype, as autocast wants it for this operator."""
        floating = [a for a in arguments if isinstance(a, Tensor) and a.dtype.is_floating_point]
        kind = floating[0].device.type if floating else "cpu"
        if not floating or not torch.is_autocast_enabled(kind):
            return arguments
        dtype = {"lower": torch.get_autocast_dtype(kind), "float32": torch.float32}.get(self.autocast)
        if dtype is None:
            dtype = max((a.dtype for a in floating), key=lambda d: (d.itemsize, d == torch.float16))
            if {torch.float16, torch.bfloat16} <= {a.dtype for a in floating}:
                dtype = max(dtype, torch.float32, key=lambda d: d.itemsize)
        return tuple(
            a.to(dtype)
            if isinstance(a, Tensor) and a.dtype.is_floating_point and a.dtype != torch.float64
            else a
            for a in arguments
        )

    def backward(self, function=None, *, save=None, twice: bool = False):
        """Decorate `backward(ctx, *top_diffs)`, which returns one gradient (or None) per argument.

        Args:
            save: `save(ctx, arguments, result)` keeps what backward needs, by ctx.save_for_backward for tensors.
            twice: backward is made of differentiable operators, so that it can be differentiated again. Otherwise
                a second derivative is an error, never a wrong number.
        """
        if function is None:
            return lambda function: self.backward(function, save=save, twice=twice)
        name = f"{self.layer.module}.{self.function.__name__}"
        once = function if twice else _once(function, name)
        self.scope["apply"] = self._node(once, save)
        torch.library.register_autograd(
            self.torch_op.name().split(".")[0],
            once,
            setup_context=None if save is None else lambda ctx, inputs, output: save(ctx, inputs, output),
            lib=_defined[f"{self.layer.module.replace('.', '_')}::{self.function.__name__}"],
        )
        return function

    def _node(self, backward, save=None):
        """The `apply` of an autograd.Function."""
        name, given = self.function.__name__, ", ".join(self.signature.parameters)
        text = f"""
def forward(ctx, {given}):
    result = function({given})
    {"" if save is None else f"save(ctx, ({given},), result)"}
    return result
"""
        scope = {"function": self.function, "save": save}
        exec(compile(text, f"<{self.layer.name}.{name}.forward>", "exec"), scope)
        kept = {
            "forward": staticmethod(scope["forward"]),
            "backward": staticmethod(backward),
            "__doc__": f"Autograd of {name}.",
        }
        node = type(f"{name}_function", (torch.autograd.Function,), kept)
        # Function.apply's Python part looks for functorch transforms, which `entry` has excluded already.
        return super(torch.autograd.Function, node).apply

    def _no_backward(self, ctx, *top_diffs):
        raise CaffeRuntimeError(f"{self.layer.name}: {self.function.__name__} has no derivative")


def _once(function, name: str):
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


def _is_tensor(annotation) -> bool:
    return "Tensor" in str(annotation)
