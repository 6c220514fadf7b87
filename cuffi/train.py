"""Train a Caffe net by its solver file: `python -m cuffi.train solver.prototxt`, as `caffe train` did.

    python -m cuffi.train solver.prototxt                      # starts at iteration 0
    python -m cuffi.train solver.prototxt --resume             # continues from the newest snapshot
    python -m cuffi.train solver.prototxt --weights vgg.caffemodel
    torchrun --nproc_per_node 4 -m cuffi.train solver.prototxt # on four GPUs

In Python: `Training("solver.prototxt", net).run()`, or `caffe_solver` for a loop of your own.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .base import CaffeError
from .command_line import Parser
from .folders import VARIABLE, split
from .nets.solver import CaffeOptimizer, CaffeSchedule, caffe_solver
from .nets.solver.solverstate import load_solverstate, save_solverstate
from .nets.solver.training import Training

__all__ = [
    "CaffeOptimizer",
    "CaffeSchedule",
    "Training",
    "caffe_solver",
    "load_solverstate",
    "save_solverstate",
]


# The options that take a file: --resume takes none.
ENDINGS = {".caffemodel": "--weights", ".h5": "--weights", ".solverstate": "--snapshot"}


def _given(arguments: list[str] | None, name: str) -> argparse.Namespace:
    """The arguments. SystemExit if one is wrong."""
    parser = Parser(prog=name, description="Train a Caffe net by its solver file.", endings=ENDINGS)
    parser.add_argument("solver", nargs="?", help="solver.prototxt")
    parser.add_argument("--solver", "-solver", dest="named", help="the same, as `caffe train` takes it")
    parser.add_argument("--weights", "-weights", help=".caffemodel files to start from, separated by ,")
    parser.add_argument("--snapshot", "-snapshot", help="continue from this .solverstate")
    parser.add_argument("--resume", action="store_true", help="continue from the newest snapshot")
    parser.add_argument("--device", help="cpu, cuda:0; default: solver_mode's, if there is a GPU")
    parser.add_argument("--amp", choices=("bfloat16", "float16"), help="autocast")
    parser.add_argument("--workers", type=int, default=0, help="processes that read data")
    parser.add_argument(
        "--python-layers",
        action="store_true",
        default=os.environ.get("PYTHON_LAYERS", "") not in ("", "0"),
        help="run the net's Python layers, which can do anything; or PYTHON_LAYERS=1 in the environment",
    )
    parser.add_argument(
        "--python-path",
        default=os.environ.get("PYTHON_PATH", ""),
        help=f"their folders, separated by {os.pathsep}",
    )
    parser.add_argument("--directory", help="relative paths begin here; default: the working directory")
    parser.add_argument("-gpu", "--gpu", help="the number of a GPU, as `caffe train` takes it")
    given = parser.parse_args(arguments)
    given.solver = given.solver or given.named
    if given.gpu is not None and not given.gpu.isdigit():
        several = "torchrun --nproc_per_node N -m cuffi.train solver.prototxt trains on several"
        parser.exit(2, f"{name}: -gpu: expected the number of one GPU, got {given.gpu!r}. {several}\n")
    if given.gpu is not None:
        given.device = given.device or f"cuda:{given.gpu}"
    return given


def main(arguments: list[str] | None = None, name: str = f"python -m {__package__}.train") -> int:
    """The command. Returns its exit status: 0, or 1 for an error that is printed."""
    import torch

    given = _given(arguments, name)
    if not given.solver:
        print("train: which solver file? make train SOLVER=solver.prototxt", file=sys.stderr)
        return 2
    amp = getattr(torch, given.amp) if given.amp else None
    options: dict = {"python_layers": given.python_layers}
    if given.python_layers and given.python_path:
        options["python_path"] = given.python_path.split(os.pathsep)
    if given.weights:
        options["weights"] = given.weights.split(",")
    try:
        if given.directory:
            given.solver = _from(given.directory, given.solver)
            if VARIABLE in os.environ:  # these folders are relative to where make runs
                os.environ[VARIABLE] = os.pathsep.join(map(os.path.abspath, split(os.environ[VARIABLE])))
            os.chdir(given.directory)
        training = Training(given.solver, device=given.device, amp=amp, workers=given.workers, **options)
        if given.snapshot or given.resume:
            training.resume(given.snapshot)
        try:
            training.run()
        except KeyboardInterrupt:
            training.snapshot()
            training.log("Optimization stopped early.")
        if training.rank == 0 and training.losses:
            print(f"Loss curve: {training.write_curve()}")
    except (CaffeError, OSError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return 0


def _from(directory: str, name: str) -> str:
    """A path relative to the directory, or else to the working directory."""
    return name if Path(directory, name).exists() else os.path.abspath(name)


if __name__ == "__main__":
    sys.exit(main())
