"""Depthwise 2-d and 1-d convolution: each channel has its own filter."""

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cuffi import Layer, operator
from cuffi.runtime import dtype_name, is_fake

# any_layout: the kernels know both layouts, contiguous and channels_last.
layer = Layer(__name__, any_layout=True)

Pair = int | tuple[int, int]
# The activations' numbers in C. causal-conv1d also calls SiLU "swish".
ACTIVATIONS = {None: 0, "relu": 1, "relu6": 2, "silu": 3, "swish": 3, "gelu": 4}
# torch's functions by number, for an activation after a batch norm that is not folded.
_FUNCTIONS = (
    lambda x: x,
    torch.relu_,
    partial(F.hardtanh, min_val=0.0, max_val=6.0, inplace=True),
    F.silu,
    F.gelu,
)
# The most elements of a top. With more, torch's own error would not name the layer.
_MOST = 2**59


class _Geometry(NamedTuple):
    """The checked shapes and parameters of a call."""

    layout: torch.memory_format
    top_shape: tuple[int, int, int, int]
    numbers: tuple[int, ...]  # the numbers of the C functions, from num to channels_last


def check_parameter(name: str, parameter: Tensor, bottom: Tensor) -> None:
    """Weights and biases have bottom's dtype. Beside a half type they may stay float32."""
    halves = bottom.dtype in (torch.float16, torch.bfloat16)
    is_valid = parameter.dtype == bottom.dtype or (halves and parameter.dtype == torch.float32)
    # If the bottom's dtype is wrong, the launcher refuses it.
    if not is_valid and bottom.dtype in layer.dtypes:
        raise layer.wrong(
            name, f"{dtype_name(bottom.dtype)} as 'bottom' has{', or float32' * halves}", parameter
        )


def activation_number(activation: str | None) -> int:
    """An activation's number in C. The error names the argument."""
    if activation is not None and not isinstance(activation, str):
        raise layer.wrong("activation", "a str or None", activation)
    known = activation in ACTIVATIONS
    layer.check(known, "activation", f"one of {', '.join(map(repr, ACTIVATIONS))}", repr(activation))
    return ACTIVATIONS[activation]


def before_activation(top_diff: Tensor, activation: int, forward, bottom, *arguments) -> Tensor:
    """The gradient by the sums before the activation. `forward`, a C function, computes these sums again."""
    sums = torch.empty_like(top_diff)
    forward(bottom, *arguments[:-1], sums, *arguments[-1], 0)
    layer.depthwise_conv_activation_backward(top_diff, sums, sums.numel(), activation)
    return sums


def checked_bias(bias: Tensor | None, bottom: Tensor) -> Tensor | None:
    """The bias for C: contiguous, with an element for each channel."""
    if bias is None:
        return None
    channels = bottom.shape[1]
    layer.check(bias.shape == (channels,), "bias", f"[{channels}]", bias)
    check_parameter("bias", bias, bottom)
    return bias.contiguous()


def gradients(
    top_diff: Tensor,
    bottom: Tensor,
    weight: Tensor,
    wanted: Sequence[bool],
    backward,
    workspace_size,
    numbers,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients by bottom, weight and bias. A gradient that is not needed is not computed, and has 0 elements.

    `backward` is the C function, and `workspace_size` the C function that returns the size of its workspace. Both take
    `numbers`.
    """
    bottom_wanted, weight_wanted, bias_wanted = wanted
    bottom_diff = torch.empty_like(bottom) if bottom_wanted else bottom.new_empty(0)
    weight_diff = torch.empty_like(weight) if weight_wanted else weight.new_empty(0)
    bias_diff = weight.new_empty(weight.shape[0] if bias_wanted else 0)
    if not is_fake(bottom):
        workspace = None
        if weight_wanted or bias_wanted:
            bytes_each = 8 if bottom.dtype == torch.float64 else 4
            size = workspace_size(bottom, *numbers) * bytes_each
            workspace = torch.empty(size, dtype=torch.uint8, device=bottom.device)
        outputs = (
            bottom_diff if bottom_wanted else None,
            weight_diff if weight_wanted else None,
            bias_diff if bias_wanted else None,
        )
        backward(bottom, top_diff, weight, *outputs, workspace, *numbers)
    return bottom_diff, weight_diff, bias_diff


def _geometry(bottom: Tensor, weight: Tensor, stride, padding, dilation) -> _Geometry:
    """Check shapes and parameters; the error names the wrong argument. Returns them for the C functions."""
    stride, padding = layer.pair("stride", stride, 1), layer.pair("padding", padding, 0)
    dilation = layer.pair("dilation", dilation, 1)
    layer.check(bottom.dim() == 4, "bottom", "4 axes [num, channels, height, width]", bottom)
    check_parameter("weight", weight, bottom)
    num, channels, *map_size = bottom.shape
    is_valid = weight.dim() == 4 and tuple(weight.shape[:2]) == (channels, 1)
    is_valid = is_valid and weight.shape[2] >= 1 and weight.shape[3] >= 1
    if not is_valid:
        wanted = f"[channels, 1, kernel_h, kernel_w] with {channels} channels as bottom has"
        layer.check(False, "weight", wanted, weight)
    size = []
    for axis, name in enumerate(("height", "width")):
        span = dilation[axis] * (weight.shape[2 + axis] - 1) + 1
        padded = map_size[axis] + 2 * padding[axis]
        if span > padded:
            layer.check(False, "weight", f"a kernel that spans at most the padded {name} {padded}", span)
        size.append((padded - span) // stride[axis] + 1)
    if num * channels * size[0] * size[1] > _MOST:
        layer.check(False, "padding", f"less: the top would be {size[0]} x {size[1]}", padding)
    # A tensor that is both counts as contiguous. One that is neither is made contiguous.
    last = not bottom.is_contiguous() and bottom.is_contiguous(memory_format=torch.channels_last)
    numbers = (*bottom.shape, *weight.shape[2:], *stride, *padding, *dilation, int(last))
    layout = torch.channels_last if last else torch.contiguous_format
    return _Geometry(layout, (num, channels, size[0], size[1]), numbers)


@operator(layer, autocast="lower", stays_float=("weight", "bias"))
def depthwise_conv(
    bottom: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    activation: int = 0,
) -> Tensor:
    """`depthwise_conv2d` with pairs and an activation's number: the operator.

    Its other arguments, result and errors are the same.
    """
    layout, top_shape, numbers = _geometry(bottom, weight, stride, padding, dilation)
    bias = checked_bias(bias, bottom)
    top = torch.empty(top_shape, dtype=bottom.dtype, device=bottom.device, memory_format=layout)
    bottom, weight = bottom.contiguous(memory_format=layout), weight.contiguous()
    layer.depthwise_conv_forward(bottom, weight, bias, top, *numbers, activation)
    return top


@operator(layer, autocast="none")
def depthwise_conv_backward(
    top_diff: Tensor,
    bottom: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    activation: int,
    bottom_wanted: bool,
    weight_wanted: bool,
    bias_wanted: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `depthwise_conv` by bottom, weight and bias. Every run gives the same bits.

    Args:
        top_diff: the gradient by the result, of its shape, dtype and device.
        bottom, weight, stride, padding, dilation: as given to `depthwise_conv`.
        bottom_wanted, weight_wanted, bias_wanted: which gradients to compute.

    Returns:
        Three tensors. A gradient that is not needed has 0 elements.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
        CaffeValueError: the shapes do not belong together.
    """
    layout, top_shape, numbers = _geometry(bottom, weight, stride, padding, dilation)
    layer.check(top_diff.shape == top_shape, "top_diff", f"the top's shape {list(top_shape)}", top_diff)
    top_diff, weight = top_diff.contiguous(memory_format=layout), weight.contiguous()
    bottom = bottom.contiguous(memory_format=layout)
    if activation:
        bias = checked_bias(bias, bottom)
        top_diff = before_activation(
            top_diff, activation, layer.depthwise_conv_forward, bottom, weight, bias, numbers
        )
    return gradients(
        top_diff, bottom, weight, (bottom_wanted, weight_wanted, bias_wanted),
        layer.depthwise_conv_backward, layer.depthwise_conv_backward_workspace, numbers,
    )  # fmt: skip


depthwise_conv.backward_by(depthwise_conv_backward, save=("bottom", "weight", "bias"))


@operator(layer, autocast="lower", stays_float=("weight", "bias", "mean", "variance", "scale", "shift"))
def depthwise_conv_norm(
    bottom: Tensor,
    weight: Tensor,
    mean: Tensor,
    variance: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    eps: float,
    activation: int,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    shift: Tensor | None = None,
) -> Tensor:
    """activation(scale * (conv - mean) / sqrt(variance + eps) + shift): a batch norm by running statistics, too.

    A small kernel folds the norm into the weights in each call, so that nothing is kept that could be out of date. It
    has no derivative.

    Args:
        bottom, weight, bias, stride, padding, dilation: as `depthwise_conv` has them.
        mean, variance, scale, shift: [channels], in the weight's dtype. scale and shift may be None.
        eps: added to the variance.
        activation: its number: 0 none, 1 ReLU, 2 ReLU6, 3 SiLU, 4 GELU.

    Returns:
        what `depthwise_conv` returns.

    Raises:
        CaffeTypeError, CaffeValueError: naming the argument.
    """
    layout, top_shape, numbers = _geometry(bottom, weight, stride, padding, dilation)
    channels, weight = bottom.shape[1], weight.contiguous()
    norm = {"bias": bias, "mean": mean, "variance": variance, "scale": scale, "shift": shift}
    for name, value in norm.items():
        if value is not None:
            layer.check(value.shape == (channels,), name, f"[{channels}]", value)
    given = [None if value is None else value.contiguous() for value in norm.values()]
    folded, start = torch.empty_like(weight), weight.new_empty(channels)
    layer.depthwise_conv_fold(weight, *given, folded, start, channels, weight.shape[2] * weight.shape[3], eps)
    top = torch.empty(top_shape, dtype=bottom.dtype, device=bottom.device, memory_format=layout)
    layer.depthwise_conv_forward(
        bottom.contiguous(memory_format=layout), folded, start, top, *numbers, activation
    )
    return top


def depthwise_conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair = 0,
    dilation: Pair = 1,
    activation: str | None = None,
) -> Tensor:
    """Per-channel 2-d correlation with zero padding: torch.nn.functional.conv2d with groups = channels.

    Args:
        x: [num, channels, height, width], contiguous or channels_last in memory (anything else is copied);
            float32, float64, float16 or bfloat16; the half types are accumulated in float32.
        weight: [channels, 1, kernel_h, kernel_w], on x's device; x's dtype, or float32 beside a half type, which is
            how torch.autocast leaves it.
        bias: [channels], with a dtype as weight's, or None.
        stride, padding, dilation: ints, or (height, width) pairs.
        activation: applied to the sums before they are stored: "relu", "relu6", "silu", "gelu" (by erf) or None. A
            backward computes the sums again.

    Returns:
        [num, channels, top_height, top_width] in x's layout, where
        top = floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1. Differentiable once, by x, weight
        and bias; gradients that are not needed are not computed. The weight's gradient is deterministic.

    Raises:
        CaffeTypeError, CaffeValueError: naming the argument.
    """
    stride, padding = layer.pair("stride", stride, 1), layer.pair("padding", padding, 0)
    dilation = layer.pair("dilation", dilation, 1)
    return depthwise_conv(x, weight, bias, stride, padding, dilation, activation_number(activation))


class DepthwiseConv2d(nn.Module):
    """`depthwise_conv2d` as a module. Initialised as torch.nn.Conv2d(groups=channels), U(±1/sqrt(kh kw)).

    Args:
        channels: of the input and of the output.
        kernel_size, stride, padding, dilation: ints, or (height, width) pairs.
        bias: whether it has a bias.
        activation: as for `depthwise_conv2d`.
        norm: a torch.nn.BatchNorm2d between convolution and activation; it becomes the submodule `norm`. In eval, where
            no gradient is recorded (torch.no_grad, torch.inference_mode), one kernel computes all three, and hooks of
            the norm are not called. The norm is folded in each call: at batch 1 the three modules may be faster.

    Its input is [num, channels, height, width], in the parameters' dtype, or under autocast in any floating one. The
    error for a wrong argument is a CaffeTypeError or a CaffeValueError, and names it.

    Attributes:
        weight: [channels, 1, kernel_h, kernel_w].
        bias: [channels], or None.
        norm: the batch norm, or None.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        dilation: Pair = 1,
        bias: bool = False,
        activation: str | None = None,
        norm: nn.BatchNorm2d | None = None,
    ):
        super().__init__()
        channels, kernel = layer.integer("channels", channels, 0), layer.pair("kernel_size", kernel_size, 1)
        self.stride, self.padding = layer.pair("stride", stride, 1), layer.pair("padding", padding, 0)
        self.dilation = layer.pair("dilation", dilation, 1)
        bound = 1 / math.sqrt(kernel[0] * kernel[1])
        self.weight = nn.Parameter(torch.empty(channels, 1, *kernel).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-bound, bound)) if bias else None
        self.activation, self._activation = activation, activation_number(activation)
        if norm is not None:
            is_norm = isinstance(norm, nn.BatchNorm2d) and norm.num_features == channels
            layer.check(is_norm, "norm", f"a BatchNorm2d of {channels} channels, or None", norm)
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        """See `depthwise_conv2d` for shapes, dtypes and errors."""
        norm, sizes = self.norm, (self.stride, self.padding, self.dilation)
        if norm is None:
            return depthwise_conv(x, self.weight, self.bias, *sizes, self._activation)
        mean = None if norm.training or torch.is_grad_enabled() else norm.running_mean
        if mean is not None and mean.dtype == self.weight.dtype:
            sums = mean, cast(Tensor, norm.running_var), *sizes, norm.eps, self._activation
            return depthwise_conv_norm(x, self.weight, *sums, self.bias, norm.weight, norm.bias)
        return _FUNCTIONS[self._activation](norm(depthwise_conv(x, self.weight, self.bias, *sizes)))

    def extra_repr(self) -> str:
        channels, _, *kernel = self.weight.shape
        return (
            f"{channels}, kernel_size={tuple(kernel)}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, bias={self.bias is not None}, activation={self.activation!r}"
        )


from .conv1d import DepthwiseConv1d, depthwise_conv1d  # noqa: E402, F401  (it uses `layer`)
