"""The Python packages that a command needs. Missing ones are installed by pip, or named in an error.

python -m tools.make.requirements build run        what `make` needs: requirements/build.txt and requirements/run.txt
"""

from __future__ import annotations

import functools
import os
import re
import sys

from ..files import content, read, write
from ..refused import Refused
from .settings import ROOT

# A line of a requirements file: the package, and its required version.
_LINE = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)", re.M)


def file_of(group: str) -> str:
    return os.path.join(ROOT, "requirements", f"{group}.txt")


def missing(groups: list[str]) -> list[str]:
    from importlib.metadata import PackageNotFoundError, version

    lacking = []
    for group in groups:
        for name in _LINE.findall(read(file_of(group))):
            try:
                version(name)
            except PackageNotFoundError:
                lacking.append(name)
    return list(dict.fromkeys(lacking))


def need(groups: list[str], stamp: str) -> None:
    """Install missing packages.

    Args:
        stamp: a file that records that nothing was missing for this Python.
    """
    asked = "".join(read(file_of(group)) for group in groups)
    remembered = f"{sys.executable} {sys.version}\n{asked}".encode()
    if content(stamp) == remembered:
        return
    if lacking := missing(groups):
        _install(groups, lacking)
    write(stamp, remembered)


@functools.cache
def writers() -> list[str]:
    """The files that show the versions of the packages that write code (requirements/build.txt)."""
    wanted = {_plain(name) for name in _LINE.findall(read(file_of("build")))}
    found = []
    for folder in filter(os.path.isdir, sys.path):
        infos = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
        found += [f"{folder}/{name}/RECORD" for name in infos if _plain(name.partition("-")[0]) in wanted]
    return sorted(found)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _install(groups: list[str], lacking: list[str]) -> None:
    import importlib
    import subprocess
    import sysconfig

    files = " ".join(f"-r requirements/{group}.txt" for group in groups)
    managed = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and os.path.exists(managed):
        raise Refused(
            f"Missing Python packages: {', '.join(lacking)}\n"
            "This Python belongs to the operating system. Make a virtual environment, and run make again:\n"
            "    python3 -m venv .venv && . .venv/bin/activate && make"
        )
    print(f"  PIP   {' '.join(lacking)}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "-q"]
    command += [word for group in groups for word in ("-r", file_of(group))]
    failed = subprocess.run(command).returncode
    importlib.invalidate_caches()  # so that this process can import the new packages
    if failed or missing(groups):
        raise Refused(
            f"Missing Python packages: {', '.join(lacking)}\n"
            "pip could not install them (its output is above). With a network or a folder of wheels:\n"
            f"    {sys.executable} -m pip install {files}"
        )


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("group", nargs="+", help="a file in requirements/, without its .txt")
    groups = parser.parse_args().group
    try:
        if lacking := missing(groups):
            _install(groups, lacking)
    except Refused as error:
        sys.exit(str(error))
