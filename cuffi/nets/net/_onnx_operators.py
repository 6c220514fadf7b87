"""How ONNX's own operators compute what torch says as a loop: suppression of overlapping boxes.

`to_onnx` imports this file. While it exports a net, `suppressed` calls the operator that is defined here.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor

from ..forks import _boxes


@torch.library.custom_op("cuffi::suppressed", mutates_args=())
def suppressed(boxes: Tensor, valid: Tensor, threshold: float) -> Tensor:
    """`_boxes.suppressed` with eta 1, as one operator that an exporter can name."""
    return _boxes.suppressed(boxes, valid, threshold)


@suppressed.register_fake
def _(boxes: Tensor, valid: Tensor, threshold: float) -> Tensor:
    return torch.empty_like(valid)


@functools.cache
def translations() -> dict:
    """By torch operator: the function in ONNX's operators that computes it."""
    from onnxscript import opset18

    op: Any = opset18  # its annotations do not let an operator take what another one returns

    def boxes_kept(boxes, valid, threshold: float):
        # Lists of boxes, the best first: [lists, n, 4]. Scores are n, n - 1, ... 1, and 0 where a box is not valid.
        shape = op.Shape(valid)
        count = op.Gather(shape, op.Constant(value_ints=[-1]), axis=0)
        last = op.Constant(value_ints=[-1])
        flat = op.Cast(op.Reshape(valid, op.Concat(last, count, axis=0)), to=1)
        lists = op.Reshape(boxes, op.Concat(last, count, op.Constant(value_ints=[4]), axis=0))
        rank = op.Range(op.Constant(value_int=0), op.Squeeze(count), op.Constant(value_int=1))
        scores = op.Mul(op.Cast(op.Sub(count, rank), to=1), flat)
        limits = (op.Constant(value_floats=[threshold]), op.Constant(value_floats=[0.5]))
        chosen = op.NonMaxSuppression(
            lists, op.Unsqueeze(scores, op.Constant(value_ints=[1])), count, *limits
        )
        places = op.Gather(
            chosen, op.Constant(value_ints=[0, 2]), axis=1
        )  # list and box of each that is kept
        one = op.Expand(
            op.Constant(value_floats=[1.0]), op.Gather(op.Shape(chosen), op.Constant(value_ints=[0]), axis=0)
        )
        kept = op.ScatterND(op.Sub(flat, flat), places, one)
        return op.Reshape(op.Cast(kept, to=9), shape)

    def sorted_stably(x, stable: bool = True, dim: int = -1, descending: bool = False):
        # TopK takes the first of equal values first.
        count = op.Gather(op.Shape(x), op.Constant(value_ints=[dim]), axis=0)
        return op.TopK(x, count, axis=dim, largest=int(descending), sorted=1)

    return {
        torch.ops.cuffi.suppressed.default: boxes_kept,
        torch.ops.aten.sort.stable: sorted_stably,
    }
