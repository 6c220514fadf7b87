"""Run every case of every layer once, forward and backward, for the checkers of `make sanitize`.

In an installed toolkit, which has no tests, it is `make test`.

    python -m tools.cases.run_cases --layers-dir layers --device cpu

The exit status is 1 if a result is wrong, a layer fails or a race was found; 3 if there is no verdict on a layer,
because it has no cases and no guess fits; otherwise the checker's own.
"""

import argparse
import importlib
import importlib.util
import itertools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch

from cuffi.backends import CPU, DEVICES, GPU
from cuffi.folders import split, toolkit_folders
from cuffi.runtime.cases import Draw, layer_of, load_package

from ..make.kinds import kinds
from .races import watched

ROOT = Path(__file__).resolve().parents[2]


def points_of(package: str, layer, device: str, dtypes: list[torch.dtype]):
    """The runs of a layer's cases. On the host, functions with modes run a second time, by their kernels."""
    for case in importlib.import_module(f"{package}.{layer.name}.cases").CASES:
        for label, kernels, dtype in itertools.product(case.inputs, (False, True), dtypes):
            if case.supports(layer, device, dtype, kernels):
                yield case, label, kernels, dtype


@dataclass
class Tally:
    """The result of running all cases: the number of calls, what is wrong, and the layers that could not run."""

    runs: int = 0
    wrong: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


def run_all(layers_dir: Path, device: str, dtype_names: list[str], tally: Tally) -> None:
    """Run every case of every built layer of the folder. A layer that fails does not stop the others."""
    package = load_package(layers_dir, f"layers_of_{re.sub('[^a-zA-Z0-9]', '_', str(layers_dir.resolve()))}")
    for name in sorted({library.parent.name for library in layers_dir.glob("[!_]*/_*.abi3.so")}):
        try:
            run_layer(package, name, device, [getattr(torch, dtype) for dtype in dtype_names], tally)
        except (Exception, SystemExit) as error:
            tally.wrong.append(f"{name}: {type(error).__name__}: {error}")
    if device == GPU:
        torch.cuda.synchronize()


def run_layer(package: str, name: str, device: str, wanted: list[torch.dtype], tally: Tally) -> None:
    """Run every case of one layer, once for each of its dtypes, and record the results."""
    layer = layer_of(importlib.import_module(f"{package}.{name}"))
    dtypes = [dtype for dtype in wanted if layer and dtype in layer.dtypes]
    before = tally.runs
    if importlib.util.find_spec(f"{package}.{name}.cases") is None:
        points = ((kind, dtype) for kind in kinds() for dtype in dtypes)
        tally.runs += sum(kind.run_without_cases(package, name, dtype, device) for kind, dtype in points)
    else:
        for case, label, kernels, dtype in points_of(package, layer, device, dtypes):
            tally.runs += 1
            verdict = case.run(case.inputs[label](Draw()), dtype, device, kernels)
            if not verdict.right:
                where = f"{name}-{case.name}-{label}-{dtype}" + "-kernels" * kernels
                tally.wrong.append(f"{where}: {verdict.words}")
    tally.untested += [name] * (tally.runs == before)


def folders_of(name: str) -> list[Path]:
    """The folder of that name. `layers` is all of the toolkit's own."""
    return toolkit_folders() if Path(name) in (Path("layers"), ROOT / "layers") else [Path(name)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers-dir", default=str(ROOT / "layers"), help="one or several, separated by :")
    parser.add_argument("--device", choices=DEVICES, default=CPU)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "float16"])
    options = parser.parse_args()
    tally = Tally()
    with watched() as watch:
        for folder in split(options.layers_dir):
            for place in folders_of(folder):
                run_all(place, options.device, options.dtypes, tally)
    if not (tally.runs or tally.untested or tally.wrong):
        print(f"Nothing is built in {options.layers_dir}: type `make` first")
        return 1
    print(f"{tally.runs} runs on {options.device}, wrong: {'; '.join(tally.wrong) or 'none'}")
    print(*watch.races, sep="\n", end="\n" if watch.races else "")
    for name in tally.untested:
        print(
            f"No verdict: {name}: it has no cases.py, and none of the guessed inputs fits. Write {name}/cases.py."
        )
    return 1 if tally.wrong or watch.races else 3 * bool(tally.untested)


if __name__ == "__main__":
    sys.exit(main())
