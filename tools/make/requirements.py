"""The Python packages that a command needs. Missing ones are installed by pip, or named in an error.

pip changes only virtual environments. Outside of one, the command goes on in the toolkit's own, .venv, which is made if
it does not exist. A Python that the user names (`make PYTHON=`) is not left for another, and is changed only with
`INSTALL=1`.

python -m tools.make.requirements build run        what `make` needs: requirements/build.txt and requirements/run.txt
"""

from __future__ import annotations

import functools
import os
import re
import sys

from ..files import content, read, write
from ..package_module import package_module
from ..refused import Refused
from .settings import ROOT

_command = package_module("base/shown").command
_own = package_module("own_python")
is_virtual = _own.is_virtual
# A line of a requirements file: the package, and its required version.
_LINE = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)", re.M)


def file_of(group: str) -> str:
    return os.path.join(ROOT, "requirements", f"{group}.txt")


def lines_of(file: str) -> list[str]:
    """The requirements in a file, without comments."""
    return [
        line.strip() for line in read(file).splitlines() if line.strip() and not line.startswith(("#", "-"))
    ]


def _text(group: str) -> str:
    """A requirements file, and the files that it names by -r."""
    text = read(file_of(group))
    return text + "".join(_text(other) for other in re.findall(r"^-r (\w+)\.txt$", text, re.M))


def missing(groups: list[str]) -> list[str]:
    asked = dict.fromkeys(name for group in groups for name in _LINE.findall(_text(group)))
    there = _with_metadata()
    if not (doubtful := [name for name in asked if _plain(name) not in there]):
        return []  # importlib.metadata takes a third of this program's time to import
    from importlib.metadata import PackageNotFoundError, version

    lacking = []
    for name in doubtful:
        try:
            version(name)
        except PackageNotFoundError:
            lacking.append(name)
    return lacking


def _with_metadata() -> set[str]:
    """The packages that a wheel was installed for."""
    return {
        _plain(name.partition("-")[0])
        for folder in filter(os.path.isdir, sys.path)
        for name in os.listdir(folder)
        if name.endswith(".dist-info") and os.path.exists(f"{folder}/{name}/METADATA")
    }


def need(groups: list[str], stamp: str) -> None:
    """Install missing packages. Outside of a virtual environment, this process starts again in the toolkit's own.

    Args:
        stamp: a file that records that nothing was missing for this Python.

    Raises:
        Refused: packages are missing, and cannot or must not be installed.
    """
    asked = "".join(map(_text, groups))
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


# ------------------------------------------------------------------------------------- environments

# The toolkit's own environment.
OWN = str(_own.OWN)
# Only an installed toolkit lacks it; there, no environment is made.
_OF_CHECKOUT = os.path.join(ROOT, "test.py")


def go_on_in_own(lacking: list[str]) -> None:
    """Start this process again in the toolkit's own environment, which is made if it does not exist."""
    python = os.path.join(OWN, "bin", "python")
    if not os.path.exists(os.path.join(OWN, _MADE)):
        _make_own(lacking)
    sys.stdout.flush()
    try:
        os.execv(python, [python, *sys.orig_argv[1:]])
    except OSError as error:
        raise Refused(f"{python}: {error.strerror}. Remove {OWN}, and run make again") from None


# Written last, so that an environment that was not finished is made again.
_MADE = _own.MADE.name


def _make_own(lacking: list[str]) -> None:
    import subprocess
    from importlib.util import find_spec

    torch = " with its torch" if find_spec("torch") else ""
    print(
        f"  VENV  .venv, because {sys.executable} is in no virtual environment, and lacks {len(lacking)} packages. It "
        f"is made of this Python{torch}; python3 test.py runs in it, too",
        flush=True,
    )
    options = ["--system-site-packages"] * bool(torch)
    # Debian's Python comes without ensurepip; its own pip can install into another environment.
    options += ["--without-pip"] * (find_spec("ensurepip") is None)
    if not os.path.exists(os.path.join(OWN, "bin", "python")) or os.path.exists(f"{OWN}.partial"):
        write(f"{OWN}.partial", b"")
        done = subprocess.run([sys.executable, "-m", "venv", *options, OWN], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise Refused(
                f"{OWN} could not be made (the reason is above). On Debian and Ubuntu: apt install python3-venv"
            )
        os.unlink(f"{OWN}.partial")
    write(os.path.join(OWN, _MADE), sys.version.encode())


def _install(groups: list[str], lacking: list[str]) -> None:
    import importlib

    if not is_virtual() and not os.environ.get("INSTALL"):
        if os.path.exists(_OF_CHECKOUT) and not os.environ.get("PYTHON_NAMED"):
            go_on_in_own(lacking)
        raise Refused(
            f"Missing Python packages: {', '.join(lacking)}\n"
            f"{sys.executable} is in no virtual environment, and nothing is installed into it unasked. Leave PYTHON "
            "out, and make uses .venv; or let make install the packages: INSTALL=1"
        )
    if "torch" in lacking:
        lacking = [name for name in lacking if name != "torch" or not _torch_for_the_processor()]
    failed = 0
    if lacking:
        print(f"  PIP   {' '.join(lacking)}", flush=True)
        failed = _pip(*(word for group in groups for word in ("-r", file_of(group))))
    importlib.invalidate_caches()  # so that this process can import the new packages
    if failed or missing(groups):
        files = [word for group in groups for word in ("-r", f"requirements/{group}.txt")]
        raise Refused(
            f"Missing Python packages: {', '.join(lacking)}\n"
            "pip could not install them (its output is above). With a network or a folder of wheels:\n"
            f"    {_command(sys.executable, '-m', 'pip', 'install', *files)}"
        )


# torch's wheels for the processor. Those of PyPI need 2 to 4 GB of NVIDIA's libraries.
_FOR_THE_PROCESSOR = "https://download.pytorch.org/whl/cpu"
_GPU = ("/proc/driver/nvidia/version", "/dev/kfd", "/dev/nvidiactl")


def _torch_for_the_processor() -> bool:
    """Install torch without NVIDIA's libraries where there is no GPU. False if torch must come from pip's own index."""
    import subprocess

    settings = subprocess.run([*_pip_command(), "config", "list"], capture_output=True, text=True).stdout
    # An index in the place of PyPI is used as it is: others may be out of reach. What is set up beside PyPI is not.
    own_index = re.search(r"(?<!extra-)index-url|no-index", settings) is not None
    if not own_index and not any(map(os.path.exists, _GPU)):
        (line,) = re.findall(r"^torch\b.*", read(file_of("run")), re.M)
        if "find-links" in settings and not _pip("-qqq", "--no-index", "--no-deps", line):
            print("  PIP   torch from the folder of wheels that pip is set up for", flush=True)
            return False  # what torch needs is still missing
        print(f"  PIP   torch for the processor, from {_FOR_THE_PROCESSOR}: there is no GPU here", flush=True)
        if not _pip("--index-url", _FOR_THE_PROCESSOR, line, alone=True):
            return True
    said = "that pip is set up for" if own_index else "of PyPI, with 2 to 4 GB of NVIDIA's libraries"
    print(f"  PIP   torch from the index {said}. Ctrl-C stops it", flush=True)
    return False


def _pip_command() -> list[str]:
    """pip's command for this Python: its own pip, or that of the Python of which this environment was made."""
    from importlib.util import find_spec

    if find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    return [getattr(sys, "_base_executable", sys.executable), "-m", "pip", "--python", sys.executable]


def _pip(*arguments: str, alone: bool = False) -> int:
    """Run pip install. Prints what it downloads, if that is large, and its errors. Returns pip's exit status.

    Args:
        alone: from the index of the arguments alone. The indexes and folders that pip is set up for beside it may have
            a newer torch, with NVIDIA's libraries. pip takes no empty value for "none".
    """
    import subprocess

    command = [*_pip_command(), "install", "--progress-bar", "off", *arguments]
    nothing_else = dict.fromkeys(("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"), _FOR_THE_PROCESSOR)
    environment = os.environ | (nothing_else if alone else {})
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, errors="replace", env=environment
    ) as pip:
        for line in pip.stdout or ():
            if found := re.match(r"\s*Downloading (\S+) \((\d{2,}(?:\.\d+)? MB|[\d.]+ GB)\)", line):
                print(f"  PIP   {found[1].rpartition('/')[2]}: {found[2]}", flush=True)
    return pip.returncode


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
