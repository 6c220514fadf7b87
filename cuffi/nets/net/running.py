"""Run a net's calls: its inputs are checked, layers may join and overwrite, and an error names the layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from operator import length_hint
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.modules import module as _torch_module

from ...base import CaffeRuntimeError, CaffeTypeError, CaffeValueError, some
from ..stock import StockLayer
from ..stock.arithmetic import Scale
from ..stock.normalisation import BatchNorm, together
from .fused import fused
from .graph import Spec
from .schedule import LayerCall, Schedule

if TYPE_CHECKING:
    from .net import CaffeNet  # which runs by this module

# The hooks that somebody has registered for all modules. torch 2.5 has no function that looks into these.
_GLOBAL_HOOKS = tuple(
    getattr(_torch_module, f"_global_{kind}_hooks")
    for kind in ("forward_pre", "forward", "backward_pre", "backward")
)


def bind(
    net: CaffeNet, schedule: Schedule, inputs: tuple, named: Mapping[str, Tensor]
) -> list[Tensor | None]:
    """Check a call's inputs, and make the list of its values with them."""
    values: list[Tensor | None] = [None] * schedule.count
    # torch.onnx.export(dynamo=False) also passes forward's other arguments, which are None.
    if len(inputs) > len(schedule.inputs) and torch.onnx.is_in_onnx_export():
        warnings.warn(
            f"{net.path}: torch.onnx.export(dynamo=False) fixes what depends on values, and does not know every "
            "layer. net.to_onnx(path) writes the file, and compares every blob",
            stacklevel=3,
        )
    while len(inputs) > len(schedule.inputs) and inputs[-1] is None:
        inputs = inputs[:-1]
    if len(inputs) > len(schedule.inputs):
        raise CaffeTypeError(
            f"{net.path}: {len(inputs)} inputs were given; the net has {', '.join(some(net.inputs)) or 'none'}"
        )
    for (_, value), tensor in zip(schedule.inputs[: len(inputs)], inputs, strict=True):
        values[value] = tensor
    places = dict(schedule.inputs)
    for name, tensor in named.items():
        if name not in places:
            raise CaffeTypeError(
                f"{net.path}: no input {name!r}. There are: {', '.join(some(places)) or 'none'}"
            )
        if values[places[name]] is not None:
            raise CaffeTypeError(f"{net.path}: input {name!r} came twice")
        values[places[name]] = tensor
    for name, value in schedule.inputs:
        if values[value] is None and value in schedule.used:
            raise _missing(net, name, value, schedule)
        if values[value] is not None and not isinstance(values[value], Tensor):
            kind = type(values[value])
            how = ". torch.from_numpy makes a tensor of it" if kind.__name__ == "ndarray" else ""
            raise CaffeTypeError(f"{net.path}: input {name!r}: expected a tensor, got {kind.__name__}{how}")
    return values


def _missing(net: CaffeNet, name: str, value: int, schedule: Schedule) -> CaffeTypeError:
    readers = [net.specs[call.key].name for call in schedule.calls if value in call.bottoms]
    return CaffeTypeError(
        f"{net.path}: input {name!r} is missing; {', '.join(readers[:4]) or 'the output'} needs it. "
        f"To compute less: end='...'"
    )


def run(net: CaffeNet, schedule: Schedule, values: list, inputs: tuple, named: Mapping[str, Tensor]) -> None:
    """Run a schedule. An error names the layer, its line, and what is unlike the file in the inputs."""
    norms = [layer for key in schedule.norms if isinstance(layer := net._modules[key], BatchNorm)]

    def more(failed: LayerCall) -> str:
        given = {**dict(zip(dict(schedule.inputs), inputs, strict=False)), **named}
        return _unlike(net, given, [name for name, i in schedule.inputs if i in failed.bottoms])

    with together(norms) if norms else nullcontext():
        run_named(net, schedule.calls, values, more)


def to_channels_last(schedule: Schedule, values: list) -> bool:
    """Lay out images on a processor as its convolutions are fastest, where a fused call may. Were there any?"""
    images = [
        value
        for _, value in schedule.inputs
        if (x := values[value]) is not None and x.dim() == 4 and x.device.type == "cpu" and x.is_contiguous()
    ]
    if not images or not _may_keep():
        return False
    for value in images:
        values[value] = values[value].contiguous(memory_format=torch.channels_last)
    return True


def from_channels_last(schedule: Schedule, values: list) -> None:
    """Lay out a call's results as those of contiguous inputs."""
    for _, value in schedule.results:
        values[value] = values[value].contiguous()


def run_named(
    net: CaffeNet,
    calls: Sequence[LayerCall],
    values: list,
    more: Callable[[LayerCall], str] = lambda failed: "",
) -> None:
    """`run_calls`, and an error names the layer and its line. more: what it says, too, of the call that failed."""
    left = iter(calls)
    try:
        run_calls(net, left, values)
    except torch.OutOfMemoryError:
        raise
    except (ValueError, TypeError, RuntimeError, IndexError) as error:
        failed = calls[~length_hint(left)]  # the calls that are left come after it
        words = _outside(net, failed, values) if "out of bounds" in str(error) else ""
        raise _failed(net, net.specs[failed.key], error, more(failed), words) from error


def _outside(net: CaffeNet, failed: LayerCall, values: list) -> str:
    """Words for a label that is no class, if a loss's scores and labels are its first two bottoms."""
    layer, bottoms = net.get_layer(failed.key), [values[i] for i in failed.bottoms[:2]]
    if not getattr(layer, "is_loss", False) or not all(
        isinstance(one, Tensor) and one.dim() for one in bottoms
    ):
        return ""
    from ..stock.losses import why_outside  # a family is imported where a net has its types

    dim = getattr(layer, "dim", 1)
    return (
        why_outside(layer, bottoms[1], bottoms[0].shape[dim])
        if -bottoms[0].dim() <= dim < bottoms[0].dim()
        else ""
    )


def _failed(net: CaffeNet, spec: Spec, error: Exception, more: str = "", words: str = "") -> Exception:
    """A layer's error, with the layer's name and line. `words`: what to say in place of torch's own words."""
    kind = CaffeRuntimeError
    if isinstance(error, ValueError | TypeError):
        kind = CaffeValueError if isinstance(error, ValueError) else CaffeTypeError
    return kind(f"{net.path}, line {spec.line}: layer {spec.name!r} ({spec.type}): {words or error}{more}")


def _channels_first(given: tuple[int, ...], own: tuple[int, ...]) -> str:
    """The order that puts the channels of pictures first, if they are last; "" if they are not."""
    if len(own) == 4 and len(given) in (3, 4) and given[-1] == own[1] and given[-3:-1] == own[2:]:
        return "(2, 0, 1)" if len(given) == 3 else "(0, 3, 1, 2)"
    return ""


def _unlike(net: CaffeNet, given: Mapping[str, Tensor], read: list[str]) -> str:
    """What is unlike the file in a call's inputs, or unlike a picture in those that the failed layer reads."""
    words = ""
    for name, tensor in given.items():
        said = net.shapes.get(name)
        if (
            isinstance(tensor, Tensor)
            and said
            and (tensor.dim() != len(said) or tensor.shape[1:] != said[1:])
        ):
            words += f". Input {name!r} is {list(tensor.shape)}; in the file it is {list(said)}"
            order = _channels_first(tuple(tensor.shape), tuple(said))
            words += f", and the channels are last: {name}.permute{order} puts them first" if order else ""
        elif isinstance(tensor, Tensor) and name in read and not tensor.is_floating_point():
            words += f". Input {name!r} is of {tensor.dtype}: {name}.float() is of torch.float32"
    return words


def run_calls(net: CaffeNet, calls: Iterable[LayerCall], values: list) -> None:
    """Run the layers, and put their tops into the list of values."""
    # torch.compile itself decides what to overwrite, and a global hook may keep any tensor.
    modules: dict = net._modules
    write_over = not (torch.compiler.is_compiling() or any(_GLOBAL_HOOKS))
    untracked = not torch.is_grad_enabled()
    fuses = net._fuses and write_over and _may_keep()
    done: set[str | None] = set()
    for key, bottoms, tops, cut, scale, over, norm, in_place, last in calls:
        module = modules[key]
        if fuses and norm and (made := _fused(modules, key, *norm, values[bottoms[0]], done)) is not None:
            pass
        elif key in done:
            made = values[bottoms[0]]
        # No variable for the bottoms: a tensor should be freed as soon as the module drops it.
        elif cut or len(bottoms) != 1:
            if isinstance(module, StockLayer) and not torch.jit.is_tracing():
                module.agree(*[values[b].shape for b in bottoms])
            made = module(*[values[b].detach() if i in cut else values[b] for i, b in enumerate(bottoms)])
        elif scale is not None:
            after = modules[scale]
            if isinstance(after, Scale) and not _hooked(after):
                made = module(values[bottoms[0]], *after.own_blobs())
            else:
                made = after(module(values[bottoms[0]]))
        elif (
            over
            and write_over
            and (in_place or untracked)
            and not any(map(_hooked, map(modules.__getitem__, over)))
        ):
            made = module(values[bottoms[0]], True)
        else:
            made = module(values[bottoms[0]])
        for i in last:
            values[i] = None
        if len(tops) != 1:
            for i, top in zip(tops, made, strict=True):
                values[i] = top
        else:
            values[tops[0]] = made if isinstance(made, Tensor) else made[0]
        del made


def _fused(
    modules: dict, key: str, norm: str, scale: str | None, activation: str | None, x: Tensor, done: set
) -> Tensor | None:
    """The top of a Convolution together with the layers after it. Adds the calls that it replaces to `done`."""
    conv, batch_norm, scaling, after = (
        modules[key],
        modules[norm],
        modules.get(scale),
        modules.get(activation),
    )
    if any(module is not None and _hooked(module) for module in (conv, batch_norm, scaling)):
        return None
    after = None if after is not None and _hooked(after) else after
    if (made := fused(conv, batch_norm, scaling, after, x)) is None:
        return None
    top, activates = made
    done.update((norm, activation if activates else norm))
    return top


def _may_keep() -> bool:
    """May a call use fused weights of an earlier call, and keep its own (fused.py)? Not while a gradient is recorded,
    nor while something records its operators or captures a graph, which would then contain the kept weights."""
    if torch.is_grad_enabled() or torch._C._len_torch_dispatch_stack() or torch._C._is_tracing():
        return False
    captured = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
    return not captured and torch._C._functorch.peek_interpreter_stack() is None


def _hooked(module: nn.Module) -> bool:
    """Does this module have hooks? Then it must be called."""
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)
