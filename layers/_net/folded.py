"""A Convolution with the BatchNorm and the Scale behind it as one convolution, where no gradient is recorded.

With s = scale / sqrt(variance + eps), the one convolution has the weights weight * s and the bias
(bias - mean) * s + shift. On a GPU a depthwise one computes them in each call, and a ReLU behind them, too. Those of
others are kept, and made again when a blob changes. A write to `weight.data` in place, such as `weight.data.mul_(2)`,
leaves no trace that could be seen. So these are folded only in inference mode, in which weights rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .._runtime import backend_of
from .known.relu6 import ReLU6
from .stock.batch_norm import BatchNorm, state_of
from .stock.convolution import Convolution
from .stock.relu import ReLU
from .stock.scale import Scale

# Their numbers in depthwise_conv.h.
_ACTIVATIONS = {type(None): 0, ReLU: 1, ReLU6: 2}


class Folded(NamedTuple):
    """The weights of the one convolution, and what they were made from. The Convolution keeps it for the next call."""

    blobs: list[Tensor]  # they keep the memory, so that no other blob gets its address
    state: list
    dtype: torch.dtype
    function: Callable[[Tensor], Tensor]


def is_foldable(module: nn.Module) -> bool:
    """Is this stock Caffe's Convolution, by whatever name?"""
    stock = isinstance(module, Convolution) and type(module).forward is Convolution.forward
    return stock and not module.transposed


def is_activation(module: nn.Module) -> bool:
    """Can a depthwise convolution compute this, too?"""
    return type(module) in _ACTIVATIONS and not module.negative_slope


@functools.cache
def _operator(device_type: str) -> Callable | None:
    """The operator for depthwise ones on such devices; None if there is none, or torch's own is faster, as on a CPU."""
    if device_type == "cpu":
        return None
    from ..depthwise_conv import depthwise_conv_norm, layer

    is_built = backend_of(torch.device(device_type)).name in layer.backends()
    return depthwise_conv_norm if is_built else None


def depthwise(
    conv: Convolution, norm: BatchNorm, scale: Scale | None, activation: nn.Module | None, x: Tensor
) -> Tensor | None:
    """The top of all four by one kernel of our own; None if there is none for them."""
    weight, bias = conv._parameters.get("weight"), conv._parameters.get("bias")
    if norm.uses_batch() or type(weight) is not nn.Parameter or type(x) is not Tensor:
        return None
    if weight.dim() != 4 or weight.shape[1] != 1 or not conv.group == len(weight) > 1:
        return None
    operator = _operator(x.device.type)
    if operator is None or (conv.has_bias and bias is None):
        return None
    factor, shift = scale.own_blobs() if scale is not None else (None, None)
    sizes, number = (conv.stride, conv.pad, conv.dilation), _ACTIVATIONS[type(activation)]
    return operator(x, weight, *norm.normalised(), *sizes, norm.eps, number, bias, factor, shift)


def folded(conv: Convolution, norm: BatchNorm, scale: Scale | None, x: Tensor) -> Tensor | None:
    """The top of all three, in inference mode; None if they have to be called one by one."""
    weight, bias, kind = conv._parameters.get("weight"), conv._parameters.get("bias"), x.device.type
    if (
        norm.uses_batch()
        or type(weight) is not nn.Parameter
        or type(x) is not Tensor
        or weight.is_inference()
        or (conv.has_bias and bias is None)
    ):
        return None
    shift = scale.own_blobs() if scale is not None else (None, None)
    blobs = (weight, bias, *norm.statistics_blobs(), *shift)
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
    state, known = state_of(blobs), conv._folded
    if state is None:
        return None
    if known is None or known.dtype != dtype or known.state != state:
        kept = [blob.detach() for blob in blobs if blob is not None]
        known = conv._folded = Folded(kept, state, dtype, _function(conv, norm, blobs, dtype))
    return known.function(x)


def _function(conv: Convolution, norm: BatchNorm, blobs: tuple, dtype: torch.dtype) -> Callable:
    weight, bias, _, _, _, factor, shift = blobs
    wide = torch.promote_types(weight.dtype, torch.float32)  # rounded once
    mean, variance = (part.to(wide) for part in norm.divided())
    s = (variance + norm.eps).rsqrt()
    s = s if factor is None else s * factor
    bias = -mean * s if bias is None else (bias - mean) * s
    bias = (bias if shift is None else bias + shift).to(dtype)
    weight = (weight * s.reshape(-1, *(1,) * (weight.dim() - 1))).to(dtype)
    return lambda x: conv.convolved(x, weight, bias)
