"""Time kernels of warps, blocks, strides and atomics on the processor, beside plain C++, torch and fibres, in one run.

    python -m lab.launches.speed [--only norm] [--fibres]

CPU time of one thread, the least of several calls. The kernels are those of speed.cu, the loops those of speed.cpp. The
numbers of both are compared. With --fibres each kernel is timed with a goto that nobody reaches, too.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from cuffi import load_inline

HERE = Path(__file__).parent
ROWS, WIDTH, MILLION = 4096, 1024, 1 << 20
FIBRES = " if (d == -12345) goto out; out:; }"


class Case(NamedTuple):
    """A row of the table.

    Attributes:
        kernel: what is timed; it gets `d` and the launch.
        reach: at most so many times as long as the reference.
        reference: a function of speed.cpp, with its elements; another kernel; or "torch", for `of_torch`.
        given: what the kernel reads.
    """

    kernel: str
    d: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    reach: float
    reference: str
    elements: int = MILLION
    given: str = "reals"
    of_torch: Callable | None = None


def norm(x):
    return torch.nn.functional.layer_norm(x, (WIDTH,))


def rms_norm(x):
    return torch.nn.functional.rms_norm(x, (WIDTH,), eps=1e-5)


TORCH = ROWS * WIDTH
CASES = {
    "warp sum": Case("warp_sums", MILLION, (4096,), (256,), 10, "warp_sums"),
    "block sum by warps": Case("block_sums", MILLION, (4096,), (256,), 8, "block_sums"),
    "layer norm, a block a row": Case(
        "norm_of_blocks", WIDTH, (ROWS,), (256,), 4, "torch", TORCH, of_torch=norm
    ),
    "layer norm, a warp a row": Case(
        "norm_of_warps", WIDTH, (ROWS // 8,), (256,), 3, "torch", TORCH, of_torch=norm
    ),
    "online softmax": Case(
        "online_softmax",
        WIDTH,
        (ROWS // 8,),
        (256,),
        6,
        "torch",
        TORCH,
        of_torch=lambda x: torch.softmax(x, 1),
    ),
    "RMS norm of half2": Case(
        "rms_norm_of_halves", WIDTH, (ROWS,), (256,), 6, "torch", TORCH, "halves", of_torch=rms_norm
    ),
    "flash attention": Case("flash_attention", 512, (512,), (256,), 20, "attention", 8 * 512 * 64),
    "tiled product with float4": Case("product_of_float4", 256, (8, 8), (8, 32), 3, "product", 256**3),
    **{
        f"grid stride, {blocks} blocks": Case("strides", MILLION, (blocks,), (256,), 1.3, "strides")
        for blocks in (32, 108, 256)
    },
    "histogram by atomics": Case("histogram", MILLION, (4096,), (256,), 6, "histogram", given="integers"),
    "a name with atomic": Case("beside_atomic", MILLION, (4096,), (256,), 1.1, "without_atomic"),
    "const auto t": Case("sums_of_auto", MILLION, (4096,), (256,), 1.1, "sums_of_int"),
}


def least(call: Callable, most: int = 12, seconds: float = 2) -> float:
    """The least CPU time of a call, in ms."""
    call()
    best, start = float("inf"), time.monotonic()
    for k in range(most):
        at = time.process_time_ns()
        call()
        best = min(best, (time.process_time_ns() - at) / 1e6)
        if k >= 2 and time.monotonic() - start > seconds:
            break
    return best


def plain_library(folder: str) -> ctypes.CDLL:
    library = Path(folder, "plain.so")
    flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, HERE / "speed.cpp", "-o", library], check=True)
    return ctypes.CDLL(str(library))


def with_fibres(text: str) -> str:
    """The kernels, and each once more with a goto."""
    end = text.index("__global__")
    again = re.sub(r"(__global__ void \w+)\(", r"\1_fibres(", text[end:])
    return text + re.sub(r"^}$", lambda _: FIBRES, again, flags=re.MULTILINE)


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1e-9))


def measure(title: str, case: Case, module, plain: ctypes.CDLL, fibres: bool) -> str:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    x = {"reals": x, "halves": x.half(), "integers": (x * 1000).int()}[case.given]
    y, other = torch.zeros_like(x), torch.zeros_like(x)

    def kernel(name: str, to: torch.Tensor) -> Callable:
        grid, block = ((*shape, 1, 1)[:3] for shape in (case.grid, case.block))
        call = getattr(module, f"speed_of_loops_{name}")
        return lambda: call(x, to, case.d, *grid, *block)

    def reference() -> Callable:
        if case.of_torch is not None:
            function = case.of_torch
            return lambda: other.copy_(function(x)) if other.sum() == 0 else function(x)
        if not hasattr(plain, case.reference):
            return kernel(case.reference, other)
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, other)]
        return lambda: getattr(plain, case.reference)(*pointers, case.elements)

    ours, theirs = kernel(case.kernel, y), reference()
    ours(), theirs()
    away = difference(y, other)
    if case.of_torch is not None:
        function = case.of_torch
        theirs = lambda: function(x)  # noqa: E731
    a, b = least(ours), least(theirs)
    met = "ok" if a / b <= case.reach else "MISSED"
    line = f"{title:26} {a:9.3f} ms, {case.reference:15} {b:8.3f} ms: {a / b:6.2f} times, asked {case.reach:4} {met:6}"
    line += f" apart {away:.0e}"
    if fibres:
        line += f", fibres {least(kernel(f'{case.kernel}_fibres', y), 2):9.3f} ms"
    return line


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.launches.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--fibres", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    text = (HERE / "speed.cu").read_text()
    module = load_inline("speed_of_loops", with_fibres(text) if given.fibres else text, backends="host")
    with tempfile.TemporaryDirectory() as folder:
        plain = plain_library(folder)
    for title, case in CASES.items():
        if given.only in title:
            print(measure(title, case, module, plain, given.fibres), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
