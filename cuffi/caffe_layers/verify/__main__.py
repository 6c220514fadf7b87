"""Is a Caffe layer's gradient right? Run its code in every way that it has, and compare.

    python -m cuffi.caffe_layers.verify --layers-dir layers normalize           (make verify LAYER=normalize)
    python -m cuffi.caffe_layers.verify --param 'norm_param { eps: 0.1 }' --shapes '2,3,6,5' normalize

The ways are the layer's CPU code, its kernels on the host and its kernels on the GPU, each in float and in double. They
are compared with each other, and each Backward with central differences of its Forward (gradient.py), as in Caffe's
GradientChecker. So no reference is needed. Inputs come from the layer's cases.py, from SHAPES, or from a guess.
Parameters come from PARAM.

Exit status: 0 if everything that ran is right; 1 if a gradient is wrong, two ways differ, the layer crashes, or threads
of a kernel race; 3 if there is no verdict: the layer could not be run, or was wrong on several guessed bottoms, which
may not fit the layer.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from cuffi.caffe_layers.verify.processes import find_races, verify

from .gradient import SECONDS
from .table import STATUS_NO_SENSE, STATUS_NOT_RUN, STATUS_RIGHT, STATUS_WRONG, closing, show
from .verify_inputs import given_shapes

LAYERS = Path(__file__).resolve().parents[1] / "layers"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers-dir", type=Path, default=LAYERS)
    parser.add_argument("--param", default="", help="the layer's parameters as prototxt")
    parser.add_argument("--shapes", default="", help="one for each bottom: '2,3,6,5 2,1,1,1:label'")
    parser.add_argument("--type", default="", help="if the folder has several types")
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="about how long one gradient check may take; this limits the number of checked elements",
    )
    parser.add_argument(
        "--races",
        type=Path,
        help="a copy of --layers-dir that was built with SANITIZE=races: to report races, too",
    )
    parser.add_argument("layers", nargs="+")
    options = parser.parse_args(argv)
    try:
        given_shapes(options.shapes)
    except ValueError as error:
        print(error)
        return STATUS_NO_SENSE
    console = Console(width=None if sys.stdout.isatty() else 160)
    statuses = set()
    for layer in options.layers:
        rows, crashed = verify(options.layers_dir.resolve(), layer, options)
        show(console, layer, rows)
        races, idle = [], False
        if options.races:
            watch, idle = find_races(options.races.resolve(), layer, options, crashed)
            races = watch.races
        print(*races, sep="\n", end="\n" * bool(races))
        statuses.add(closing(layer, rows, races, idle))
    return next(s for s in (STATUS_WRONG, STATUS_NOT_RUN, STATUS_RIGHT) if s in statuses)


if __name__ == "__main__":
    sys.exit(main())
