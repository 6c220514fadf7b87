"""Kernels that are made to fool the prover (fooled.txt): none may be proved."""

from __future__ import annotations

from pathlib import Path

FILE = Path(__file__).with_name("fooled.txt")
KERNEL = """{head}
// requires: blockDim.x == 256, n > 0
// size: x n, y n
__global__ void k(const float* x, float* y, int n) {{
  {body}
}}
"""


def fooling_kernels() -> list[str]:
    """Their texts."""
    parts = FILE.read_text().split("----\n")[1:]
    split = (part.partition("=> ") for part in parts)
    return [KERNEL.format(head=head.strip(), body=body.strip()) for head, _, body in split]
