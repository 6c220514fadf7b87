"""LLTM, the recurrent cell of PyTorch's extension tutorial: an LSTM without a forget gate, and with ELU.

The matrix products are torch's; everything between them is one kernel forward and one backward.
"""

import math

import torch
from torch import Tensor, nn

from cuffi import CaffeTypeError, Layer, operator
from cuffi.runtime import dtype_name, is_fake

# any_layout: backward's top_diffs are read with their strides. Other tensors are made contiguous here.
layer = Layer(__name__, any_layout=True)


@operator(layer, autocast="lower")
def lltm_pointwise(gates: Tensor, bias: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The part of an LLTM cell after its matrix product, in one kernel.

        i, o, candidate = sigmoid(g0), sigmoid(g1), elu(g2)     where g0, g1, g2 = (gates + bias).chunk(3, 1)
        new_cell = old_cell + candidate * i
        new_h = tanh(new_cell) * o

    Args:
        gates: [batch, 3 * state]; float32, float64, float16 or bfloat16. Half types are computed in float32.
        bias: [3 * state].
        old_cell: [batch, state].

    Returns:
        (new_h, new_cell), [batch, state] each. Differentiable once, by a kernel that writes the
        needed gradients, with bias's (the same bits in every run).

    Raises:
        CaffeValueError: shapes that do not fit; the message names the argument.
        CaffeTypeError: dtypes or devices that differ.
    """
    _check_pointwise(gates, bias, old_cell, "old_cell")
    return _forward(gates.contiguous(), bias, old_cell)


def _forward(gates: Tensor, bias: Tensor | None, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    old_cell, bias = old_cell.contiguous(), None if bias is None else bias.contiguous()
    new_h, new_cell = torch.empty_like(old_cell), torch.empty_like(old_cell)
    layer.lltm_forward(gates, bias, old_cell, new_h, new_cell, *old_cell.shape)
    return new_h, new_cell


@operator(layer, autocast="lower")
def lltm_pointwise_backward(
    gates: Tensor,
    new_cell: Tensor,
    bias: Tensor | None = None,
    new_h_diff: Tensor | None = None,
    new_cell_diff: Tensor | None = None,
    gates_wanted: bool = True,
    bias_wanted: bool = True,
    cell_wanted: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `lltm_pointwise` by its three arguments, from two of them and new_cell.

    Args:
        gates, bias: as given to `lltm_pointwise`; bias is None if gates hold it.
        new_cell: what it returned.
        new_h_diff, new_cell_diff: [batch, state], of any strides: the gradients by its results; None is 0.

    Returns:
        (gates_diff, bias_diff, old_cell_diff); a gradient that is not needed has 0 elements.

    Raises:
        CaffeTypeError: not a tensor, or another dtype or device.
        CaffeValueError: the shapes do not belong together.
    """
    _check_pointwise(gates, bias, new_cell, "new_cell")
    gates, new_cell = gates.contiguous(), new_cell.contiguous()
    if bias is not None:
        bias = bias.contiguous()
    batch, state = new_cell.shape
    new_h_diff, h_row, h_column = _as_it_lies(new_h_diff, new_cell, "new_h_diff")
    new_cell_diff, cell_row, cell_column = _as_it_lies(new_cell_diff, new_cell, "new_cell_diff")
    gates_diff = torch.empty_like(gates) if gates_wanted else None
    bias_diff = gates.new_empty(3 * state) if bias_wanted else None
    old_cell_diff = torch.empty_like(new_cell) if cell_wanted else None
    partial_sums = None
    if (
        bias_wanted
        and not is_fake(gates)
        and (elements := layer.lltm_backward_workspace(gates, batch, state))
    ):
        room = elements * (8 if gates.dtype == torch.float64 else 4)
        partial_sums = torch.empty(room, dtype=torch.uint8, device=gates.device)
    layer.lltm_backward(
        gates, bias, new_cell, new_h_diff, new_cell_diff, gates_diff, bias_diff, old_cell_diff, partial_sums,
        batch, state, h_row, h_column, cell_row, cell_column,
    )  # fmt: skip
    return _or_empty(gates_diff, gates), _or_empty(bias_diff, gates), _or_empty(old_cell_diff, gates)


def _or_empty(diff: Tensor | None, like: Tensor) -> Tensor:
    return like.new_empty(0) if diff is None else diff


def _keep(ctx, arguments, result):
    gates, bias, _ = arguments
    ctx.set_materialize_grads(False)  # a missing top_diff is None, which costs no kernel
    ctx.save_for_backward(gates, result[1], bias)


@lltm_pointwise.backward(save=_keep)
def _(ctx, new_h_diff, new_cell_diff):
    wanted = ctx.needs_input_grad
    if new_h_diff is None and new_cell_diff is None:
        return None, None, None
    diffs = lltm_pointwise_backward(*ctx.saved_tensors, new_h_diff, new_cell_diff, *wanted)
    return tuple(diff if want else None for diff, want in zip(diffs, wanted, strict=True))


def _check_pointwise(gates: Tensor, bias: Tensor | None, cell: Tensor, name: str) -> None:
    """Check the shapes. The error names the wrong argument."""
    if cell.dim() == 2:
        batch, state = cell.shape
        if gates.shape == (batch, 3 * state) and (bias is None or bias.shape == (3 * state,)):
            return
    layer.check(cell.dim() == 2, name, "[batch, state]", cell)
    size = f"for {name} {[batch, state]}"
    layer.check(gates.shape == (batch, 3 * state), "gates", f"[{batch}, {3 * state}] {size}", gates)
    layer.check(False, "bias", f"[{3 * state}] {size}", bias)


def _as_it_lies(diff: Tensor | None, cell: Tensor, name: str) -> tuple[Tensor | None, int, int]:
    """A top_diff and its strides. They may be 0 after `y.sum()`, or of a larger matrix after torch.cat."""
    if diff is None:
        return None, 0, 0
    if diff.shape != cell.shape:
        layer.check(False, name, f"the shape of new_cell, {list(cell.shape)}", diff)
    if diff.is_neg():
        diff = diff.resolve_neg()
    row, column = diff.stride()
    return diff, row, column


def lltm(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LLTM cell.

        g0, g1, g2 = ([old_h, input] @ weights.T + bias).chunk(3, 1)
        new_cell = old_cell + elu(g2) * sigmoid(g0)
        new_h = tanh(new_cell) * sigmoid(g1)

    Args:
        input: [batch, features]; float32, float64, float16 or bfloat16.
        weights: [3 * state, state + features].
        bias: [3 * state].
        old_h, old_cell: [batch, state].

    Returns:
        (new_h, new_cell), [batch, state] each. Differentiable once. Under torch.autocast all
        tensors get autocast's dtype, including the state, as in torch's LSTMCell.

    Raises:
        CaffeValueError: shapes that do not fit; the message names the argument.
        CaffeTypeError: not tensors, or dtypes or devices that differ.

    Source: PyTorch's tutorial "Custom C++ and CUDA extensions" (the formula and the arguments' order).
    """
    return lltm_step(input, weights, bias, old_h, old_cell)[:2]


@operator(layer, autocast="lower")
def lltm_step(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`lltm` with the tensors that its backward needs: (new_h, new_cell, gates, x), where x is [old_h, input].

    Its arguments, first two results and errors are `lltm`'s.
    The products are part of this operator, because autograd nodes of their own would take a tenth more processor time.
    """
    if not _are_valid(input, weights, bias, old_h, old_cell):
        _refuse(input, weights, bias, old_h, old_cell)
    x = torch.cat((old_h, input), 1)
    weights, bias = weights.contiguous(), bias.contiguous()
    if _bias_in_gates(x):
        gates, apart = torch.addmm(bias, x, weights.t()), None
    else:
        gates, apart = torch.mm(x, weights.t()), bias
    return *_forward(gates, apart, old_cell), gates, x


def _bias_in_gates(x: Tensor) -> bool:
    """Does the product add the bias? Else the pointwise kernels add it.

    With a bias cuBLAS chooses another kernel. For a few rows in float32 it is up to 18 times as fast; for more rows, or
    in other types, up to 3 times as slow (H200, 128 columns of state: 3.2 us instead of 31 for 16 rows, 16 us instead
    of 5 for 32).
    """
    return x.shape[0] <= 16 and x.dtype == torch.float32


def _keep_step(ctx, arguments, result):
    _, weights, bias, _, _ = arguments
    _, new_cell, gates, x = result
    ctx.mark_non_differentiable(gates, x)
    ctx.set_materialize_grads(False)
    kept_bias = None if _bias_in_gates(x) else bias
    ctx.save_for_backward(gates, kept_bias, new_cell, weights, x if ctx.needs_input_grad[1] else None)


@lltm_step.backward(save=_keep_step)
def _(ctx, new_h_diff, new_cell_diff, *_):
    if new_h_diff is None and new_cell_diff is None:
        return None, None, None, None, None
    gates, bias, new_cell, weights, x = ctx.saved_tensors
    of_input, of_weights, of_bias, of_h, of_cell = ctx.needs_input_grad[:5]
    of_gates = of_input or of_weights or of_h
    gates_diff, bias_diff, cell_diff = lltm_pointwise_backward(
        gates, new_cell, bias, new_h_diff, new_cell_diff, of_gates, of_bias, of_cell
    )
    state, weights = new_cell.shape[1], weights.contiguous()
    input_diff = weights_diff = h_diff = None
    if not _apart(new_cell):
        if of_input or of_h:
            h_diff, input_diff = gates_diff.mm(weights).split_with_sizes((state, weights.shape[1] - state), 1)
        if of_weights:
            weights_diff = gates_diff.t().mm(x)
    else:
        if of_h:
            h_diff = gates_diff.mm(weights[:, :state])
        if of_input:
            input_diff = gates_diff.mm(weights[:, state:])
        if of_weights:
            weights_diff = torch.empty_like(weights)
            for part in (slice(0, state), slice(state, None)):
                torch.mm(gates_diff.t(), x[:, part], out=weights_diff[:, part])
    return (
        input_diff if of_input else None,
        weights_diff,
        bias_diff if of_bias else None,
        h_diff if of_h else None,
        cell_diff if of_cell else None,
    )


# The least number of elements of a state for separate products.
_APART_FROM = 1 << 20


def _apart(new_cell: Tensor) -> bool:
    """Does backward compute separate products for h and for input? One product needs fewer launches.

    Large products in float32 without TF32 are bound by arithmetic, in tiles. `state` is often a multiple of a tile,
    `state + features` seldom: 4096 x (1024 + 32) takes 619 us for x and 592 for weights as one product, and 547 and 555
    as two (H200).
    """
    return (
        new_cell.numel() >= _APART_FROM
        and new_cell.dtype == torch.float32
        and torch.get_float32_matmul_precision() == "highest"
    )


def _are_valid(input, weights, bias, old_h, old_cell) -> bool:
    """Are all arguments right? torch's own operators would accept some wrong ones, or not name the argument."""
    if input.dim() != 2 or old_cell.dim() != 2:
        return False
    (batch, features), (cells, state), dtype, device = input.shape, old_cell.shape, input.dtype, input.device
    return (
        batch == cells
        and old_h.shape == old_cell.shape
        and weights.shape == (3 * state, state + features)
        and bias.shape == (3 * state,)
        and dtype in layer.dtypes
        and dtype is old_h.dtype is weights.dtype is bias.dtype
        and device == old_h.device == weights.device == bias.device
        and not (_odd(input) or _odd(old_h) or _odd(weights) or _odd(bias))
    )  # the kernel's launcher checks gates and old_cell


def _odd(tensor: Tensor) -> bool:
    """Is it something else than a dense tensor with memory?"""
    if tensor.layout is not torch.strided or tensor._is_zerotensor():
        return True
    # With freed memory torch's own operators would crash the process.
    return tensor.numel() > 0 and not tensor.untyped_storage().nbytes()


def _refuse(input, weights, bias, old_h, old_cell) -> None:
    """Raise the error for the wrong argument."""
    given = {"input": input, "weights": weights, "bias": bias, "old_h": old_h, "old_cell": old_cell}
    for name, tensor in given.items():
        if _odd(tensor):
            raise layer.wrong(name, "a dense tensor that has memory", tensor)
    layer.check(input.dim() == 2, "input", "[batch, features]", input)
    layer.check(old_cell.dim() == 2, "old_cell", "[batch, state]", old_cell)
    (batch, features), state = input.shape, old_cell.shape[1]
    layer.check(
        old_cell.shape[0] == batch, "old_cell", f"[{batch}, state] for input {[batch, features]}", old_cell
    )
    sizes = f"for input {[batch, features]} and old_cell {[batch, state]}"
    shapes = {"old_h": [batch, state], "weights": [3 * state, state + features], "bias": [3 * state]}
    for name, shape in shapes.items():
        layer.check(list(given[name].shape) == shape, name, f"{shape} {sizes}", given[name])
    for name, tensor in given.items():
        if tensor.device != input.device:
            raise layer.wrong(name, f"a tensor on {input.device} as 'input' is", tensor)
        if tensor.dtype not in layer.dtypes:
            raise layer.wrong(name, "a tensor of " + ", ".join(map(dtype_name, layer.dtypes)), tensor)
        if tensor.dtype != input.dtype:
            raise layer.wrong(name, f"{dtype_name(input.dtype)} as 'input' has", tensor)


class LLTM(nn.Module):
    """`lltm` as a module.

    Args:
        input_features: the size of an input's row.
        state_size: the size of a row of h and of c.

    Parameters `weights` [3 * state_size, state_size + input_features] and `bias` [3 * state_size], drawn from
    U(-1/sqrt(state_size), 1/sqrt(state_size)).
    """

    def __init__(self, input_features: int, state_size: int, device=None, dtype=None):
        super().__init__()
        self.input_features = input_features = layer.integer("input_features", input_features, 0)
        self.state_size = state_size = layer.integer("state_size", state_size, 1)
        like = {"device": device, "dtype": dtype}
        self.weights = nn.Parameter(torch.empty(3 * state_size, state_size + input_features, **like))
        self.bias = nn.Parameter(torch.empty(3 * state_size, **like))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.state_size)
        for parameter in (self.weights, self.bias):
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor, state: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """One step: input [batch, input_features] and (h, c), each [batch, state_size], give the next (h, c).

        Without a state both start as zeros.
        """
        if not isinstance(input, Tensor):
            raise layer.wrong("input", "a tensor", input)
        if input.dim() != 2 or input.shape[1] != self.input_features:
            layer.check(False, "input", f"[batch, {self.input_features}]", input)
        if state is None:
            zeros = input.new_zeros(input.shape[0], self.state_size)
            state = zeros, zeros
        elif not isinstance(state, (tuple, list)) or len(state) != 2:
            raise CaffeTypeError(
                f"{layer.name}: state: expected a pair (h, c) or None, got {type(state).__name__}"
            )
        return lltm(input, self.weights, self.bias, *state)

    def extra_repr(self) -> str:
        return f"input_features={self.input_features}, state_size={self.state_size}"
