"""Run the benchmarks: a table each, then one of all figures with their targets; JSON and plots: build/bench/.

    python benchmarks/run.py                     all of them
    python benchmarks/run.py round               those of one layer
    python benchmarks/run.py --only call build   by group
    python benchmarks/run.py --keep              keep the figures: later runs on this card say what became worse
    python benchmarks/run.py --quick             fewer repetitions and sizes: minutes become seconds
    LAYERS_DIR=/my/layers python benchmarks/run.py [foo]    the layers of other folders

Each file in this folder that has a `GROUP` and a function `measure(settings) -> Report` is a benchmark. A benchmark of
one layer also has `LAYER`. Every figure is a ratio within one run, in which ours and the peer run in turns.
"""

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # instead of this folder: `benchmarks` and `layers` are both packages of the root

import tools  # noqa: E402, F401 (it refuses an old Python)
from benchmarks import _cases, _kept, _machine, _plot, _report  # noqa: E402


def benchmarks() -> dict[str, ModuleType]:
    """Every benchmark by its file's name."""
    names = sorted(f.stem for f in Path(__file__).parent.glob("*.py") if f.stem != "run" and f.stem[0] != "_")
    return {name: importlib.import_module(f"benchmarks.{name}") for name in names}


def chosen(available: dict[str, ModuleType], only: list[str], layer: str | None) -> dict[str, ModuleType]:
    """The benchmarks whose group or name is in `only`.

    With a layer, only those that measure layers, and those of this layer. For other folders of layers, only those that
    measure layers.
    """
    elsewhere = _cases.BUNDLED != _cases.FOLDERS

    def wanted(name, module) -> bool:
        if only and module.GROUP not in only and name not in only:
            return False
        own = getattr(module, "LAYER", None)
        return module.GROUP == "layers" and own in (None, layer) if layer or elsewhere else True

    return {name: module for name, module in available.items() if wanted(name, module)}


def compare(reports: dict, machine: dict, arguments) -> None:
    """Say which figures are worse than those that were kept for this card; keep the new ones if asked."""
    key = _kept.key_of(machine, arguments.quick)
    for line in _kept.fallen(_kept.FILE, key, reports):
        print(f"WORSE by {_kept.FALLS:.0%} or more: {line}")
    if arguments.keep:
        _kept.keep(_kept.FILE, key, reports, machine)
        print(f"Kept for {key}: {_kept.FILE}")


def main() -> int:
    available = benchmarks()
    groups = sorted({module.GROUP for module in available.values()})
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layer", nargs="?", help="measure only this layer")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        choices=sorted({*groups, *available}),
        metavar="WHAT",
        help=f"groups ({', '.join(groups)}) or files ({', '.join(available)})",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and sizes")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="where JSON and plots go")
    parser.add_argument(
        "--keep", action="store_true", help=f"keep the figures for this card, in {_kept.FILE.name}"
    )
    arguments = parser.parse_args()
    if arguments.layer and not any((folder / arguments.layer).is_dir() for folder in _cases.FOLDERS):
        parser.error(f"no layer {arguments.layer!r} in {', '.join(map(str, _cases.FOLDERS))}")
    settings = _report.Settings(arguments.quick, arguments.layer, arguments.out)
    arguments.out.mkdir(parents=True, exist_ok=True)
    machine = _machine.describe()
    console = _report.console()
    console.print(_machine.line(machine))
    reports, failed = {}, []
    for name, module in chosen(available, arguments.only, arguments.layer).items():
        start = time.perf_counter()
        try:
            report = module.measure(settings)
        except Exception:  # one benchmark that breaks must not take the others' numbers with it
            traceback.print_exc()
            failed.append(name)
            continue
        report.seconds = time.perf_counter() - start
        reports[name] = report
        console.print(report.table())
        _report.write_json(arguments.out / f"{name}.json", name, report, machine)
        try:
            for plot, draw in report.plots.items():
                _plot.save(arguments.out / f"{plot}.svg", draw, machine)
        except Exception:  # the numbers are written already
            traceback.print_exc()
            failed.append(f"{name}'s plot")
    console.print(_report.closing_table(reports, machine))
    compare(reports, machine, arguments)
    console.print(f"JSON and plots: {arguments.out}")
    if failed:
        console.print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
