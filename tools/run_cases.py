"""Run every case of every layer once, forward and backward: what `make sanitize` puts under its checkers.

    python tools/run_cases.py --layers-dir layers --device cpu

Prints one closing line; exits with 1 if a result is wrong, or with the checker's own status.
"""

import argparse
import importlib
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from layers._cases import Draw, cast, largest_error, load_package, results  # noqa: E402


def run(case, arguments: tuple, dtype: torch.dtype, device: str) -> bool:
    """Forward, and backward if there is one; is the result what the reference says?"""
    given = cast(arguments, dtype, device, grad=case.gradient != "none")
    top = case.function(*given)
    if case.gradient != "none":
        torch.autograd.backward(results(top), [torch.ones_like(t) for t in results(top)])
    wanted = case.reference(*cast(cast(given, dtype), torch.float64))
    relative, absolute = case.tolerance_for(dtype)
    largest = max((w.abs().max().item() for w in results(wanted) if w.numel()), default=0.0)
    return largest_error(top, wanted) <= absolute + relative * largest


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers-dir", type=Path, default=ROOT / "layers")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "float16"])
    options = parser.parse_args()
    package, runs, wrong = load_package(options.layers_dir), 0, []
    for name in sorted(found.parent.name for found in options.layers_dir.glob("*/cases.py")):
        for case in importlib.import_module(f"{package}.{name}.cases").CASES:
            for label, inputs in case.inputs.items():
                for dtype in (getattr(torch, d) for d in options.dtypes):
                    runs += 1
                    if not run(case, inputs(Draw()), dtype, options.device):
                        wrong.append(f"{name}-{case.name}-{label}-{dtype}")
    if options.device == "cuda":
        torch.cuda.synchronize()
    print(f"{runs} runs on {options.device}, wrong: {', '.join(wrong) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
