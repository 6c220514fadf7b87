"""A Convolution with the BatchNorm and the Scale behind it as one convolution, under torch.inference_mode.

With s = scale / sqrt(variance + eps), the one convolution has the weights weight * s and the bias
(bias - mean) * s + shift. They are kept, and made again when a blob changes. A write to `weight.data` in place, such as
`weight.data.mul_(2)`, leaves no trace that could be seen. So only inference mode, in which weights rest, folds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .._runtime import backend_of
from .stock.batch_norm import BatchNorm, state_of
from .stock.convolution import Convolution
from .stock.scale import Scale


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


def folded(conv: Convolution, norm: BatchNorm, scale: Scale | None, x: Tensor) -> Tensor | None:
    """The top of all three; None if they have to be called one by one."""
    weight, kind = conv._parameters.get("weight"), x.device.type
    if (
        norm.uses_batch()
        or type(weight) is not nn.Parameter
        or type(x) is not Tensor
        or weight.is_inference()
    ):
        return None
    shift = scale.own_blobs() if scale is not None else (None, None)
    blobs = (weight, conv._parameters.get("bias"), *norm.statistics_blobs(), *shift)
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
    if weight.is_cuda and weight.dim() == 4 and weight.shape[1] == 1 and conv.group == len(weight) > 1:
        from ..depthwise_conv import depthwise_conv, layer

        if backend_of(weight.device).name in layer.backends():
            return lambda x: depthwise_conv(x, weight, bias, conv.stride, conv.pad, conv.dilation)
    return lambda x: conv.convolved(x, weight, bias)
