"""Kernels that compare what a conversion without a cast gives with what an explicit one gives."""

import torch

from cuffi import load_inline

from .hard_numbers import HARD, REALS

KERNEL = """
__global__ void {name}(int n, const {real}* in, double* o) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const {real} x = in[i];
  (void)lane;
{lines}}}
"""
GRID = {"grid_x": 2, "grid_y": 1, "grid_z": 1, "block_x": 32, "block_y": 1, "block_z": 1}


def wrong_of(pairs: list[tuple[str, str]], name: str, before: str = "") -> list[str]:
    """The calls whose result is not that of the second text; of hard numbers of both types, in lane after lane."""
    made, count = [before], len(pairs)
    for real in REALS:
        lines = "".join(
            f"  o[{2 * k + j}ll * n + i] = (double)({text});\n"
            for k, pair in enumerate(pairs)
            for j, text in enumerate(pair)
        )
        made.append(KERNEL.format(name=f"{name}_{real}", real=real, lines=lines))
    m = load_inline(name, "".join(made), backends="host")
    wrong = []
    for real in REALS:
        x = torch.tensor((HARD * 2)[:64], dtype=getattr(torch, f"float{REALS[real]}"))
        out = torch.full((count, 2, 64), -77.0, dtype=torch.float64)
        getattr(m, f"{name}_{real}")(64, x, out, **GRID)
        same = (out[:, 0] == out[:, 1]) | (out[:, 0].isnan() & out[:, 1].isnan())
        for k, lane in (~same).nonzero().tolist():
            wrong.append(
                f"{pairs[k][0]} of {real} {x[lane].item()}: {out[k, 0, lane]}, cast {out[k, 1, lane]}"
            )
    return wrong
