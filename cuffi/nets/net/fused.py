"""Fusing: a Convolution with the BatchNorm and the Scale after it as one convolution, in a net after `net.fuse()`.

With s = scale / sqrt(variance + eps), the one convolution has the weights weight * s and the bias
(bias - mean) * s + shift. These are kept, and computed again when a blob changes. A write through a numpy array or
`weight.data`, such as `weight.data.mul_(2)`, cannot be noticed, so only a user who asks gets this. On a GPU, our own
operator computes a depthwise convolution, and the ReLU after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...base.providers import providers
from ..forks.classifiers import ReLU6
from ..stock.activations import ReLU
from ..stock.arithmetic import Scale
from ..stock.convolutions import Convolution
from ..stock.normalisation import BatchNorm

# The activations that a depthwise convolution may compute, by their names in it.
_ACTIVATIONS: dict[type, str | None] = {type(None): None, ReLU: "relu", ReLU6: "relu6"}


class Fused(NamedTuple):
    """The weights of the one convolution, and the blobs that they were made from. The Convolution keeps it."""

    blobs: list[Tensor]  # kept alive, so that no other blob gets the same address
    state: list
    made_for: tuple
    function: Callable[[Tensor], Tensor]
    activates: bool  # does the function also compute the activation?


def is_fusible(module: nn.Module) -> bool:
    """Is this stock Caffe's Convolution, or a type of a fork that is the same?"""
    stock = isinstance(module, Convolution) and type(module).forward is Convolution.forward
    return stock and not module.transposed


def is_activation(module: nn.Module) -> bool:
    """Can a depthwise convolution also compute this layer?"""
    return type(module) in _ACTIVATIONS and not module.negative_slope


@functools.cache
def _operator(device_type: str) -> tuple[Callable, Callable] | None:
    """A faster depthwise convolution for such devices, and its activations' numbers by name. None: torch's is used."""
    if device_type == "cpu":
        return None
    for provider in providers("depthwise_convolution"):
        if (function := provider.function_for(device_type)) is not None:
            return function, provider.activation_number
    return None


def fused(
    conv: Convolution, norm: BatchNorm, scale: Scale | None, activation: nn.Module | None, x: Tensor
) -> tuple[Tensor, bool] | None:
    """(the top of Convolution, BatchNorm and Scale, is the activation computed, too?), where no gradient is recorded.

    None if they must be called one by one.
    """
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
    state, known, made_for = _state_of(blobs), conv._fused, (dtype, kind, type(activation))
    if state is None:
        return None
    if known is None or known.made_for != made_for or known.state != state:
        kept = [blob.detach() for blob in blobs if blob is not None]
        made = _function(conv, norm, blobs, *made_for)
        known = conv._fused = Fused(kept, state, made_for, *made)
    return known.function(x), known.activates


def _state_of(blobs: Iterable[Tensor | None]) -> list[tuple[int, int] | None] | None:
    """The blobs' versions and addresses: they change when a blob's values do, in place or by `blob.data = ...`.

    None for the tensors of a transform or of inference mode, which have no version.
    """
    try:
        return [None if blob is None else (blob._version, blob.data_ptr()) for blob in blobs]
    except RuntimeError:
        return None


def _function(conv: Convolution, norm: BatchNorm, blobs: tuple, dtype, kind: str, activation: type):
    """(the function that computes the top, does it also compute the activation?)."""
    weight, bias, _, _, _, factor, shift = blobs
    wide = torch.promote_types(weight.dtype, torch.float32)  # rounded once
    mean, variance = (part.to(wide) for part in norm.normalised())
    s = (variance + norm.eps).rsqrt()
    s = s if factor is None else s * factor
    bias = -mean * s if bias is None else (bias - mean) * s
    bias = (bias if shift is None else bias + shift).to(dtype)
    weight = (weight * s.reshape(-1, *(1,) * (weight.dim() - 1))).to(dtype)
    faster = _operator(kind)
    depthwise = weight.dim() == 4 and weight.shape[1] == 1 and conv.group == len(weight) > 1
    if faster is None or not depthwise:
        return lambda x: conv.convolved(x, weight, bias), False
    operator, number_of = faster
    sizes, number = (conv.stride, conv.pad, conv.dilation), number_of(_ACTIVATIONS[activation])
    return lambda x: operator(x, weight, bias, *sizes, number), activation is not type(None)
