"""make fuzz: build the layers for the host, then run tools.fuzz with the same arguments."""

from __future__ import annotations

import os
import subprocess
import sys

from ..fuzz.options import parser
from ..refused import Refused
from . import folders, requirements
from .backends import HOST
from .build import build, is_dry, make_flags
from .job import Job
from .settings import ROOT, Settings, of_each_folder


def fuzz(several: list[Settings], layers: list[str]) -> int:
    for layer in layers:
        folders.check_layer(layer, "LAYER")
    for settings in several:
        os.makedirs(settings.build, exist_ok=True)
        requirements.need(["build", "run", "test"], f"{settings.build}/packages.test")
        if status := build(Job(Settings(settings.environment() | {"BACKENDS": HOST.name}))):
            return status
    command = [sys.executable, "-m", "tools.fuzz", *sys.argv[1:]]
    return 0 if is_dry(make_flags()) else subprocess.call(command)


def main() -> int:
    options = parser(__doc__).parse_args()
    os.chdir(ROOT)
    try:
        several, _ = of_each_folder([f"LAYERS_DIR={options.layers_dir}"])
        return fuzz(several, options.layers or [])
    except Refused as error:
        print(f"make fuzz: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
