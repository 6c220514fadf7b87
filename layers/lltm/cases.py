"""What lltm computes: the cell of the C++ extension tutorial, in plain torch."""

import torch

from cuffi import CaffeValueError
from cuffi.runtime.cases import Bad, Case

from . import LLTM, lltm, lltm_pointwise, lltm_pointwise_backward


def plain_pointwise(gates, bias, old_cell):
    i, o, candidate = (gates + bias).chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(candidate) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


def plain_lltm(input, weights, bias, old_h, old_cell):
    """As one writes it in Python."""
    gates = torch.nn.functional.linear(torch.cat([old_h, input], dim=1), weights, bias)
    i, o, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(candidate) * torch.sigmoid(i)
    return torch.tanh(new_cell) * torch.sigmoid(o), new_cell


def plain_pointwise_backward(gates, new_cell, bias=None, new_h_diff=None, new_cell_diff=None, *wanted):
    """By autograd, from the old_cell that gives this new_cell."""
    bias = gates.new_zeros(gates.shape[1]) if bias is None else bias
    g, b = gates.detach().requires_grad_(), bias.detach().requires_grad_()
    old_cell = (
        (new_cell - plain_pointwise(gates, bias, torch.zeros_like(new_cell))[1]).detach().requires_grad_()
    )
    with torch.enable_grad():
        tops = plain_pointwise(g, b, old_cell)
    given = [torch.zeros_like(new_cell) if d is None else d.detach() for d in (new_h_diff, new_cell_diff)]
    diffs = torch.autograd.grad(tops, (g, b, old_cell), given)
    return tuple(d if want else d.new_empty(0) for d, want in zip(diffs, wanted or (True,) * 3, strict=True))


def pointwise(draw, batch, state):
    return draw.normal(batch, 3 * state, scale=2), draw.normal(3 * state), draw.normal(batch, state)


def cell(draw, batch, features, state):
    weights = draw.normal(3 * state, state + features, scale=(state + features) ** -0.5)
    return (
        draw.normal(batch, features),
        weights,
        draw.normal(3 * state),
        draw.normal(batch, state),
        draw.normal(batch, state),
    )


def saved_for_backward(draw, batch, state):
    """What lltm_pointwise keeps for its backward."""
    gates, bias, new_cell = pointwise(draw, batch, state)
    return gates, new_cell, bias


def top_diffs(draw, batch, state):
    return draw.normal(batch, state), draw.normal(batch, state)


class Apart(LLTM):
    """Called with its state as two arguments, as the suite calls modules."""

    def forward(self, input, *state, **named):
        return super().forward(input, state, **named) if state else super().forward(input, **named)


_compiled = {}


def compiled_lltm(*arguments):
    """torch.compile of plain_lltm, for each shape by itself: no dynamic shapes, no fall back to eager."""
    key = tuple((a.shape, a.dtype, a.device, a.requires_grad) for a in arguments)
    if key not in _compiled:
        # A function object of its own for each shape: dynamo counts recompilations by code object.
        code = plain_lltm.__code__.replace(co_name=f"plain_lltm_{len(_compiled)}")
        _compiled[key] = torch.compile(type(plain_lltm)(code, plain_lltm.__globals__), dynamic=False)
    return _compiled[key](*arguments)


# A wide case: 16 bytes a thread from 2^17 elements on, and blocks that share the rows.
WIDE = 1031, 128

CASES = [
    Case(
        function=lltm_pointwise,
        reference=plain_pointwise,
        inputs={
            "33x7": lambda draw: pointwise(draw, 33, 7),
            "1x128": lambda draw: pointwise(draw, 1, 128),
            "300x20": lambda draw: pointwise(draw, 300, 20),
            "wide": lambda draw: pointwise(draw, *WIDE),
            "large": lambda draw: (
                draw.normal(4, 15, scale=200),
                draw.normal(15),
                draw.normal(4, 5, scale=50),
            ),
        },
        # bias_diff is a sum over the batch; backward knows new_cell only as it was rounded.
        tolerance={
            torch.float64: (1e-12, 1e-11),
            torch.float32: (1e-5, 1e-5),
            torch.float16: (2e-3, 2e-3),
            torch.bfloat16: (2e-2, 2e-2),
        },
        autocast="lower",
        empty=lambda draw: pointwise(draw, 0, 7),
        bad={
            "gates": Bad(
                lambda draw: (draw.normal(4, 14), draw.normal(15), draw.normal(4, 5)),
                CaffeValueError,
                "lltm: gates: expected [4, 15]",
            ),
            "bias": Bad(
                lambda draw: (draw.normal(4, 15), draw.normal(1, 15), draw.normal(4, 5)),
                CaffeValueError,
                "lltm: bias: expected [15]",
            ),
            "old_cell": Bad(
                lambda draw: (draw.normal(4, 15), draw.normal(15), draw.normal(5)),
                CaffeValueError,
                "lltm: old_cell: expected [batch, state]",
            ),
        },
    ),
    Case(
        function=lltm_pointwise_backward,
        reference=plain_pointwise_backward,
        inputs={
            "both": lambda draw: (*saved_for_backward(draw, 33, 7), *top_diffs(draw, 33, 7)),
            "h alone": lambda draw: (*saved_for_backward(draw, 5, 16), draw.normal(5, 16)),
            "cell alone": lambda draw: (*saved_for_backward(draw, 5, 16), None, draw.normal(5, 16)),
            "no bias": lambda draw: (*pointwise(draw, 5, 16)[::2], None, *top_diffs(draw, 5, 16)),
            "neither": lambda draw: saved_for_backward(draw, 5, 16),
            "gates alone": lambda draw: (
                *saved_for_backward(draw, 200, 9),
                *top_diffs(draw, 200, 9),
                True,
                False,
                False,
            ),
            "bias alone": lambda draw: (
                *saved_for_backward(draw, 200, 9),
                *top_diffs(draw, 200, 9),
                False,
                True,
                False,
            ),
            "old_cell alone": lambda draw: (
                *saved_for_backward(draw, *WIDE),
                *top_diffs(draw, *WIDE),
                False,
                False,
                True,
            ),
        },
        gradient="none",
        tolerance={
            torch.float64: (1e-12, 1e-11),
            torch.float32: (1e-5, 1e-5),
            torch.float16: (2e-3, 2e-3),
            torch.bfloat16: (2e-2, 2e-2),
        },
        autocast="lower",
        empty=lambda draw: (*saved_for_backward(draw, 0, 7), *top_diffs(draw, 0, 7)),
        bad={
            "new_h_diff": Bad(
                lambda draw: (*saved_for_backward(draw, 4, 5), draw.normal(4, 1)),
                CaffeValueError,
                "lltm: new_h_diff: expected the shape of new_cell, [4, 5]",
            ),
        },
    ),
    Case(
        function=lltm,
        module=lambda: Apart(32, 32),
        reference=plain_lltm,
        inputs={
            "16x32x32": lambda draw: cell(draw, 16, 32, 32),
            "100x32x16": lambda draw: cell(draw, 100, 32, 16),
            "33x32x7": lambda draw: cell(draw, 33, 32, 7),
            "1x32x128": lambda draw: cell(draw, 1, 32, 128),
            "2x3x7": lambda draw: cell(draw, 2, 3, 7),
            "no features": lambda draw: cell(draw, 2, 0, 7),
        },
        # Sums over state + features products, and for weights over the batch; half types round gates between.
        tolerance={
            torch.float64: (1e-12, 1e-11),
            torch.float32: (2e-5, 2e-5),
            torch.float16: (1e-2, 1e-2),
            torch.bfloat16: (6e-2, 6e-2),
        },
        autocast="lower",
        empty=lambda draw: cell(draw, 0, 3, 7),
        bad={
            "input": Bad(
                lambda draw: (draw.normal(3), *cell(draw, 2, 3, 7)[1:]),
                CaffeValueError,
                "lltm: input: expected [batch, features]",
            ),
            "weights": Bad(
                lambda draw: (draw.normal(2, 4), *cell(draw, 2, 3, 7)[1:]),
                CaffeValueError,
                "lltm: weights: expected [21, 11]",
            ),
            "bias": Bad(
                lambda draw: (*cell(draw, 2, 3, 7)[:2], draw.normal(7), *cell(draw, 2, 3, 7)[3:]),
                CaffeValueError,
                "lltm: bias: expected [21]",
            ),
            "old_h": Bad(
                lambda draw: (*cell(draw, 2, 3, 7)[:3], draw.normal(2, 8), draw.normal(2, 7)),
                CaffeValueError,
                "lltm: old_h: expected [2, 7]",
            ),
            "old_cell": Bad(
                lambda draw: (*cell(draw, 2, 3, 7)[:4], draw.normal(3, 7)),
                CaffeValueError,
                "lltm: old_cell: expected [2, state]",
            ),
        },
        bench={
            f"{batch}x32x{state}": lambda draw, batch=batch, state=state: cell(draw, batch, 32, state)
            for batch in (16, 256, 4096)
            for state in (128, 512, 1024)
        },
        # On a CPU, compiling takes the benchmark minutes.
        peers={"torch": plain_lltm} | ({"torch.compile": compiled_lltm} if torch.cuda.is_available() else {}),
    ),
]
