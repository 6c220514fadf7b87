"""Depthwise 1-d convolution, plain and causal: each channel with a filter of its own."""

import math

import torch
from torch import Tensor, nn

from cuffi import operator

from . import activation_number, before_activation, check_parameter, checked_bias, gradients, layer


def _geometry(bottom: Tensor, weight: Tensor, stride, padding, dilation, causal: bool) -> tuple[int, ...]:
    """The C functions' numbers, from num to dilation. The error names the argument that does not fit."""
    stride, dilation = layer.integer("stride", stride, 1), layer.integer("dilation", dilation, 1)
    left = right = layer.integer("padding", padding, 0)
    layer.check(bottom.dim() == 3, "bottom", "3 axes [num, channels, length]", bottom)
    check_parameter("weight", weight, bottom)
    num, channels, length = bottom.shape
    if not (weight.dim() == 3 and tuple(weight.shape[:2]) == (channels, 1) and weight.shape[2] >= 1):
        layer.check(False, "weight", f"[channels, 1, kernel] with {channels} channels as bottom has", weight)
    kernel = weight.shape[2]
    if causal:
        layer.check(padding == 0, "padding", "0, because causal determines the padding", padding)
        left = dilation * (kernel - 1)
        layer.check(
            left < 2**31, "dilation", f"less: {kernel} taps would begin {left} columns ahead", dilation
        )
    span, padded = dilation * (kernel - 1) + 1, length + left + right
    if span > padded:
        layer.check(False, "weight", f"a kernel that spans at most the padded length {padded}", span)
    return num, channels, length, (padded - span) // stride + 1, kernel, stride, left, dilation


def _start_words(length: int) -> int:
    """The 32-bit words of a row of `starts`: see depthwise_conv.h."""
    return (length + 31) // 32 + 2


@operator(layer, autocast="none")
def sequence_starts(sequences: Tensor, num: int, length: int, by_index: bool) -> Tensor:
    """Where packed sequences start: a bit for each position, for `conv1d`.

    Args:
        sequences: their first positions, [n] int32, or, if by_index, the number of each position's sequence, [num,
            length] int32.
    """
    starts = torch.empty((num, _start_words(length)), dtype=torch.int32, device=sequences.device)
    layer.depthwise_conv1d_starts(
        sequences.contiguous(), starts, sequences.numel(), num, length, int(by_index)
    )
    return starts


@operator(layer, autocast="lower", stays_float=("weight", "bias"))
def conv1d(
    bottom: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    starts: Tensor | None,
    stride: int,
    padding: int,
    dilation: int,
    causal: bool,
    activation: int,
) -> Tensor:
    """`depthwise_conv1d` with all arguments. starts: of packed sequences, from `sequence_starts`."""
    numbers = _geometry(bottom, weight, stride, padding, dilation, causal)
    num, channels, length, top_length, *_ = numbers
    if starts is not None:
        layer.check(
            causal and stride == dilation == 1,
            "causal",
            "True, and stride and dilation 1, for sequences",
            causal,
        )
        layer.check(
            starts.shape == (num, _start_words(length)), "starts", "what sequence_starts makes", starts
        )
    bias = checked_bias(bias, bottom)
    top = torch.empty((num, channels, top_length), dtype=bottom.dtype, device=bottom.device)
    layer.depthwise_conv1d_forward(
        bottom.contiguous(), weight.contiguous(), bias, starts, top, *numbers, activation
    )
    return top


@operator(layer, autocast="none")
def conv1d_backward(
    top_diff: Tensor,
    bottom: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    starts: Tensor | None,
    stride: int,
    padding: int,
    dilation: int,
    causal: bool,
    activation: int,
    bottom_wanted: bool,
    weight_wanted: bool,
    bias_wanted: bool,
    starts_wanted: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of `conv1d` by bottom, weight and bias; the same bits in every run. The last result is empty.

    A gradient that is not needed is not computed, and has 0 elements.
    """
    numbers = _geometry(bottom, weight, stride, padding, dilation, causal)
    shape = (numbers[0], numbers[1], numbers[3])
    layer.check(top_diff.shape == shape, "top_diff", f"the top's shape {list(shape)}", top_diff)
    top_diff, bottom, weight = top_diff.contiguous(), bottom.contiguous(), weight.contiguous()
    if activation:
        bias = checked_bias(bias, bottom)
        top_diff = before_activation(
            top_diff, activation, layer.depthwise_conv1d_forward, bottom, weight, bias, starts, numbers
        )

    def backward(x, diff, taps, *others):
        layer.depthwise_conv1d_backward(x, diff, taps, starts, *others)

    found = gradients(
        top_diff, bottom, weight, (bottom_wanted, weight_wanted, bias_wanted), backward,
        layer.depthwise_conv1d_backward_workspace, numbers,
    )  # fmt: skip
    return *found, bottom.new_empty(0)


conv1d.backward_by(conv1d_backward, save=("bottom", "weight", "bias", "starts"))


def _starts(x: Tensor, seq_idx: Tensor | None, cu_seqlens: Tensor | None) -> Tensor | None:
    """Where packed sequences start, of checked arguments."""
    if seq_idx is not None:
        name, given = "seq_idx", seq_idx
    elif cu_seqlens is not None:
        name, given = "cu_seqlens", cu_seqlens
    else:
        return None
    layer.check_tensor("bottom", x, meta=True)
    layer.check(seq_idx is None or cu_seqlens is None, "cu_seqlens", "None beside seq_idx", cu_seqlens)
    layer.check(x.dim() == 3, "bottom", "3 axes [num, channels, length]", x)
    num, _, length = x.shape
    layer.check_tensor(name, given, meta=True)
    if given.dtype not in (torch.int32, torch.int64):
        raise layer.wrong(name, "int32 or int64", given)
    if seq_idx is None:
        layer.check(given.dim() == 1, name, "1 axis, the sequences' first positions and the length", given)
        layer.check(num == 1, "bottom", "one row of packed sequences for cu_seqlens", x)
    else:
        layer.check(given.shape == (num, length), name, f"[{num}, {length}] as bottom has", given)
    return sequence_starts(given.to(torch.int32), num, length, seq_idx is not None)


def depthwise_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    causal: bool = False,
    activation: str | None = None,
    seq_idx: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor:
    """Per-channel 1-d correlation with zero padding: torch.nn.functional.conv1d with groups = channels.

    Args:
        x: [num, channels, length], contiguous (anything else is copied); float32, float64, float16 or bfloat16; the
            half types are accumulated in float32.
        weight: [channels, 1, kernel], on x's device; x's dtype, or float32 beside a half type, which is how
            torch.autocast leaves it.
        bias: [channels], as weight, or None.
        stride, padding, dilation: ints; the padding is on both sides.
        causal: pad only on the left, by dilation * (kernel - 1), so that no output depends on later inputs; padding
            must be 0.
        activation: as for `depthwise_conv2d`; "swish" is "silu".
        seq_idx: [num, length] int32 or int64: the sequence of each position. Neighbours in another sequence count as 0,
            like those outside of x. For causal convolutions of stride and dilation 1.
        cu_seqlens: [sequences + 1] int32 or int64: the same for one row (num is 1): the sequences' first positions, in
            ascending order, and the length. Values are not checked.

    Returns:
        [num, channels, top_length], where top_length = floor((length + all padding - dilation (kernel - 1) - 1) /
        stride) + 1. Differentiable once, by x, weight and bias; gradients that are not needed are not computed. The
        weight's gradient is deterministic.

    Raises:
        CaffeTypeError, CaffeValueError: naming the argument.
    """
    starts = None if seq_idx is None and cu_seqlens is None else _starts(x, seq_idx, cu_seqlens)
    number = activation_number(activation)
    return conv1d(x, weight, bias, starts, stride, padding, dilation, causal, number)


class DepthwiseConv1d(nn.Module):
    """`depthwise_conv1d` as a module; initialised as torch.nn.Conv1d(groups=channels) is, U(±1/sqrt(kernel)).

    Args:
        channels: of the input and of the output.
        kernel_size, stride, padding, dilation: ints.
        causal, activation: as for `depthwise_conv1d`.
        bias: whether it has a bias.

    A call takes x, and seq_idx or cu_seqlens if sequences are packed. x is [num, channels, length], in the parameters'
    dtype, or under autocast in any floating one. The error for a wrong argument is a CaffeTypeError or a
    CaffeValueError, and names it.

    Attributes:
        weight: [channels, 1, kernel].
        bias: [channels], or None.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: int,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        bias: bool = False,
        causal: bool = False,
        activation: str | None = None,
    ):
        super().__init__()
        channels, kernel = (
            layer.integer("channels", channels, 0),
            layer.integer("kernel_size", kernel_size, 1),
        )
        self.stride, self.padding = layer.integer("stride", stride, 1), layer.integer("padding", padding, 0)
        self.dilation, self.causal = layer.integer("dilation", dilation, 1), causal
        self.activation = activation
        activation_number(activation)
        bound = 1 / math.sqrt(kernel)
        self.weight = nn.Parameter(torch.empty(channels, 1, kernel).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(channels).uniform_(-bound, bound)) if bias else None

    def forward(self, x: Tensor, seq_idx: Tensor | None = None, cu_seqlens: Tensor | None = None) -> Tensor:
        """See `depthwise_conv1d` for shapes, dtypes and errors."""
        return depthwise_conv1d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.causal,
            self.activation, seq_idx, cu_seqlens,
        )  # fmt: skip

    def extra_repr(self) -> str:
        channels, _, kernel = self.weight.shape
        return (
            f"{channels}, kernel_size={kernel}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, bias={self.bias is not None}, causal={self.causal}, "
            f"activation={self.activation!r}"
        )
