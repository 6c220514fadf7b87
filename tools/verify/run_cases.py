"""Run every case of every layer once, forward and backward, for the checkers of `make sanitize`.

In an installed toolkit, which has no suite, it is `make test`.

    python -m tools.verify.run_cases --layers-dir layers --device cpu

Prints one line. The exit status is 1 if a result is wrong or a race was found, or the checker's own.
"""

import argparse
import contextlib
import importlib
import importlib.util
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch

from layers._backends import CPU, DEVICES, GPU
from layers._runtime.cases import Draw, cast, differentiable, largest_error, layer_of, load_package, results

from .inputs import modules_of
from .probe import NoCode
from .races import watched
from .verification import Verification

ROOT = Path(__file__).resolve().parents[2]


def run(case, arguments: tuple, dtype: torch.dtype, device: str) -> bool:
    """Run forward, and backward if there is one. Is the result that of the reference?"""
    inputs = cast(arguments, dtype, device, grad=case.gradient != "none")
    top = case.function(*inputs)
    if case.gradient != "none":
        tops = differentiable(results(top))
        torch.autograd.backward(tops, [torch.ones_like(t) for t in tops])
    wanted = case.reference(*cast(cast(inputs, dtype), torch.float64))
    relative, absolute = case.tolerance_for(dtype)
    largest = max((w.abs().max().item() for w in results(wanted) if w.numel()), default=0.0)
    return largest_error(top, wanted) <= absolute + relative * largest


def run_without_cases(package: str, name: str, dtype: torch.dtype, device: str) -> int:
    """Run a Caffe layer without cases on inputs that `make verify` guesses. Returns the number of runs."""
    options = argparse.Namespace(param="", shapes="", type="")
    verification, runs = Verification(package, name, options, lambda *_: None, {}), 0
    if not modules_of(package, name):
        return runs
    for setting in verification.settings():
        verification.choose_blobs(setting)
        for code in (c for c in verification.codes if c.device == device):
            with contextlib.suppress(NoCode):
                verification.run_once(setting, code, dtype)
                runs += 1
    return runs


def points_of(package: str, name: str, device: str, dtypes: list[torch.dtype]):
    """The runs of a layer's cases. On the host, Caffe layers run a second time, by their kernels."""
    for case in importlib.import_module(f"{package}.{name}.cases").CASES:
        for mode in (None, "gpu") if case.is_caffe and device == CPU else (None,):
            if case.is_caffe:
                case.function.mode = mode
            yield from ((case, mode, label, dtype) for label in case.inputs for dtype in dtypes)


@dataclass
class Tally:
    """The result of running all cases: the number of calls, the wrong ones, and the layers that could not run."""

    runs: int = 0
    wrong: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


def run_all(layers_dir: Path, device: str, dtype_names: list[str], tally: Tally) -> None:
    """Run every case of every built layer of the folder, once for each of its dtypes, and note how it went."""
    package = load_package(layers_dir, f"layers_of_{re.sub('[^a-zA-Z0-9]', '_', str(layers_dir.resolve()))}")
    for name in sorted({library.parent.name for library in layers_dir.glob("*/_*.abi3.so")}):
        layer = layer_of(importlib.import_module(f"{package}.{name}"))
        dtypes = [d for d in (getattr(torch, d) for d in dtype_names) if d in layer.dtypes]
        if importlib.util.find_spec(f"{package}.{name}.cases") is None:
            before = tally.runs
            tally.runs += sum(run_without_cases(package, name, dtype, device) for dtype in dtypes)
            tally.untested += [name] * (tally.runs == before)
            continue
        for case, mode, label, dtype in points_of(package, name, device, dtypes):
            tally.runs += 1
            if not run(case, case.inputs[label](Draw()), dtype, device):
                tally.wrong.append(f"{name}-{case.name}-{label}-{dtype}" + "-kernels" * bool(mode))
    if device == GPU:
        torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers-dir", default=str(ROOT / "layers"), help="one or several, with : between")
    parser.add_argument("--device", choices=DEVICES, default=CPU)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "float16"])
    options = parser.parse_args()
    tally = Tally()
    with watched() as watch:
        for folder in filter(None, options.layers_dir.split(":")):
            run_all(Path(folder), options.device, options.dtypes, tally)
    if not tally.runs and not tally.untested:
        print(f"Nothing is built in {options.layers_dir}: type `make` first")
        return 1
    print(f"{tally.runs} runs on {options.device}, wrong: {', '.join(tally.wrong) or 'none'}")
    if tally.untested:
        names = ", ".join(tally.untested)
        print(f"Not run, for no cases.py says on what, and no shapes that were guessed fit: {names}")
    print(*watch.races, sep="\n", end="\n" if watch.races else "")
    return bool(tally.wrong or tally.untested or watch.races)


if __name__ == "__main__":
    sys.exit(main())
