"""What is installed: the distribution cuffi-nets (models and scripts), and perhaps cuffi (kernels, Caffe layers).

Both put their files into the package `cuffi`. It imports the standard library only.
"""

import sys
from pathlib import Path

from .version import VERSION

PACKAGE = Path(__file__).resolve().parent
# The version of the distribution cuffi, which setup.py writes into the wheel. A checkout has no such file.
STAMP = PACKAGE / "_toolkit" / "VERSION"
# The modules and wings of the distribution cuffi.
KERNELS = frozenset(("caffe_layers", "edge", "ffi", "judge", "loading", "old_torch", "run", "runtime"))


def has_kernels() -> bool:
    """Is the distribution cuffi here, or is this a checkout?"""
    return (PACKAGE / "edge.py").exists()


def both(version: str = VERSION) -> str:
    """The command that installs the two distributions in one version."""
    return f'pip install --upgrade "cuffi=={version}" "cuffi-nets=={version}"'


# Those of cuffi-nets, which are always here.
NETS = frozenset(("base", "caffe", "caffe_files", "commands", "dnn", "nets", "train"))


def lost(name: str) -> str:
    """A file of ours is gone, and what to do: one line. name: a module's, such as cuffi.nets.net."""
    again = both() if has_kernels() else f'pip install "cuffi-nets=={VERSION}"'
    return f"{name} is not there, so the installation is not whole: {again} --force-reinstall --no-deps"


def is_lost(name: str | None) -> bool:
    """Is the module of this name one that must be here?"""
    _, _, inner = (name or "").partition(f"{PACKAGE.name}.")
    part = inner.split(".")[0]
    return part in NETS or (part in KERNELS and (PACKAGE / part).exists())


def missing(name: str) -> str:
    """Why the kernels' part of this name is not here, and what to do: one line."""
    if (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists():
        return lost(f"a part of {name}")
    if has_kernels():
        return f"{name}: cuffi {VERSION} does not have it: pip install --upgrade cuffi cuffi-nets"
    return f"{name} is part of the kernels. {no_kernels()}"


def no_kernels() -> str:
    """Why there are no kernels here, and what to do: one line."""
    if sys.platform != "linux":
        return f"They run on Linux only, this is {sys.platform}. Nets, dnn and pycaffe need none of them"
    if place := elsewhere():
        return f"cuffi is in {place}, and cuffi-nets in {PACKAGE}: install both into one folder"
    return f"They are not installed: pip install cuffi=={VERSION}"


def elsewhere() -> Path | None:
    """The folder of a distribution cuffi that is not beside this one, as after `pip install --user` of one of them."""
    places = (Path(folder or ".", PACKAGE.name) for folder in sys.path)
    return next((f for f in places if (f / "edge.py").exists() and not (f / "__init__.py").exists()), None)


def check_versions() -> None:
    """Refuse kernels of another version.

    Raises:
        ImportError: the distributions have different versions.
    """
    if not STAMP.parent.exists():
        return
    try:
        found = STAMP.read_text(encoding="utf-8").strip()
    except OSError:
        found = "of an older version"
    if found != VERSION:
        raise ImportError(f"cuffi-nets {VERSION} is beside cuffi {found}: {both()}")


def check_threads() -> None:
    """Refuse the kernels in free-threaded Python, whose ABI has no stable part.

    Raises:
        ModuleNotFoundError: this Python is free-threaded. Parts that can do without the kernels do.
    """
    if "t" in getattr(sys, "abiflags", ""):
        major, minor = sys.version_info[:2]
        raise ModuleNotFoundError(
            "free-threaded Python cannot load libraries of the stable ABI, as the layers' are: "
            f"use python{major}.{minor} instead of its t variant. The nets run in both"
        )
