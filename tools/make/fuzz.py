"""make fuzz: what tools.fuzz needs (its arguments, packages, the layers' host libraries), and then tools.fuzz."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from . import names, packages
from .backends import HOST
from .build import BuildRefused, Plan, build, is_dry, make_flags
from .settings import ROOT, Settings, of_each_folder


def fuzz(several: list[Settings], options: argparse.Namespace) -> int:
    command = [sys.executable, "-m", "tools.fuzz", f"--minutes={options.minutes}", f"--seed={options.seed}"]
    command.append(f"--layers-dir={':'.join(settings.layers_dir for settings in several)}")
    if layer := several[0].arguments.get("LAYER", "").strip():
        names.check_layer(layer, "LAYER")
        command += ["--layers", layer]
    for settings in several:
        os.makedirs(settings.build, exist_ok=True)
        packages.need(["build", "run", "test"], f"{settings.build}/packages.test")
        if status := build(Plan(Settings(settings.environment() | {"BACKENDS": HOST.name}))):
            return status
    return 0 if is_dry(make_flags()) else subprocess.call(command)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1, metavar="MINUTES")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED")
    options = parser.parse_args()
    os.chdir(ROOT)
    try:
        return fuzz(of_each_folder([])[0], options)
    except (names.NameRefused, packages.Missing, BuildRefused) as error:
        print(f"make fuzz: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
