"""The Python of a checkout: make installs packages into .venv, and python3 on PATH may be one that has none of them.

It imports the standard library only.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The toolkit's own environment, and the file in it that is written last: without that it was not finished.
OWN = ROOT / ".venv"
MADE = OWN / "made-by-make"
# What commands import first, and what some of them need.
_NEEDED = ("torch", "tree_sitter", "cffi")
_WANTED = (*_NEEDED, "rich", "numpy")
# Modules that are commands, and need no compiler's tools.
_OF_NETS = ("caffe", "dnn", "train")


def is_virtual() -> bool:
    """Is this Python in a virtual environment, or in one of conda's that is not its base?"""
    conda = os.path.join("envs", "") in sys.prefix and os.path.isdir(os.path.join(sys.prefix, "conda-meta"))
    return sys.prefix != sys.base_prefix or conda


def is_checkout() -> bool:
    return (ROOT / "test.py").exists()


def start_again() -> None:
    """Called first in `python3 -m cuffi ...` of a checkout: go on in the environment that make made.

    If this Python has what commands need, or is an environment of its own, it stays. A Python that lacks torch where
    make has made none is told in one line.

    Raises:
        SystemExit: the packages are missing.
    """
    module = _asked_for()
    if module is None or not is_checkout():
        return
    from importlib.util import find_spec

    lacking = [name for name in _WANTED if find_spec(name) is None]
    if lacking and not is_virtual() and MADE.exists():
        python = str(OWN / "bin" / "python")
        os.execv(python, [python, *sys.orig_argv[1:]])
    # `cuffi` itself has commands that need no package, and words for each other one.
    needed = ["torch"] if module in _OF_NETS else _NEEDED
    if module and module != "commands" and (absent := [name for name in needed if name in lacking]):
        sys.exit(f"cuffi.{module}: {what_to_do(absent[0])}")


def _asked_for() -> str | None:
    """The module below cuffi that `python -m` runs, "" for cuffi itself; None if this is another program."""
    if getattr(sys, "argv", [])[:1] != ["-m"]:  # as long as -m looks for its module
        return None
    words = sys.orig_argv
    after = words[words.index("-m") + 1] if "-m" in words[:-1] else ""
    package, _, module = after.partition(".")
    return module.partition(".")[0] if package == __package__ else None


def what_to_do(name: str) -> str:
    """A package is missing in a checkout, and what to do: one line."""
    said = f"{name} is not installed for {sys.executable}. "
    if is_virtual():
        return said + f"Type `make` in {ROOT}, which installs it"
    if MADE.exists():
        return said + f"`make` has installed it for {OWN}: . {OWN}/bin/activate"
    return said + f"Type `make` in {ROOT}, which installs it into .venv there"
