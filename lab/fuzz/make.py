"""`make fuzz`: build the layers, and make random calls of them.

python -m lab.fuzz.make         the arguments are make's: MINUTES, SEED, LAYER and the settings, in the environment
"""

from __future__ import annotations

import subprocess
import sys

from tools.make import build, folders, requirements
from tools.make.backends import HOST
from tools.make.job import Job
from tools.make.settings import Settings

from .options import parser


def fuzz(settings: Settings) -> int:
    """The arguments are read before anything is built."""
    given = settings.arguments
    options = [f"--{name.lower()}={given[name]}" for name in ("MINUTES", "SEED") if name in given]
    if layer := given.get("LAYER", "").strip():
        options += ["--layers", folders.check_layer(layer, "LAYER")]
    options.append(f"--layers-dir={settings.layers_dir}")
    parser("make fuzz").parse_args(options)
    requirements.need(["build", "run", "test"], f"{settings.build}/packages.test")
    if status := build.build(Job(Settings(settings.environment() | {"BACKENDS": HOST.name}))):
        return status
    command = [sys.executable, "-m", "lab.fuzz", *options]
    return 0 if build.is_dry(build.make_flags()) else subprocess.call(command)


if __name__ == "__main__":
    sys.exit(build.main({"fuzz": fuzz}, ["fuzz", *sys.argv[1:]]))
