"""Folders of layers. LAYERS_DIR lists those of the user, separated by `:` (on Windows by `;`), for make and for Python.

A layer foo in one of them is `cuffi.foo`, like one of the toolkit's. If two folders have a foo, the first one wins.
The toolkit's own folders come last: layers/, and those of the wings.
"""

import functools
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from . import installed

VARIABLE = "LAYERS_DIR"
PACKAGE = Path(__file__).resolve().parent


def split(text: str) -> list[str]:
    """The folders in the text of LAYERS_DIR."""
    return [name for name in text.split(os.pathsep) if name]


def candidates(folder: str | os.PathLike) -> list[str]:
    """The names of the subfolders that may be layers, sorted. Make and Python look at no others."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    return sorted(name for name in names if not name.startswith((".", "_")) and name != "build")


def with_file(folder: str | os.PathLike, *files: str) -> list[str]:
    """The candidates that have one of these files."""
    return [n for n in candidates(folder) if any(os.path.exists(os.path.join(folder, n, f)) for f in files)]


def toolkit_folders() -> list[Path]:
    """The toolkit's own folders of layers: layers/, beside the package or in it, and cuffi/<wing>/layers."""
    first = next(
        (f for f in (PACKAGE.parent / "layers", PACKAGE / "layers") if (f / "sigmoid").is_dir()), None
    )
    return [*([first] if first else []), *sorted(f for f in PACKAGE.glob("*/layers") if f.is_dir())]


def providing(what: str) -> list[str]:
    """The modules that provide it (cuffi/base/providers.py): of wings, then of layers."""
    file = f"provides_{what}.py"
    wings = sorted(f.parent.name for f in PACKAGE.glob(f"*/{file}"))
    layers = [name for folder in (*listed(), *toolkit_folders()) for name in with_file(folder, file)]
    # A name is one module, as it is for `import`, however many folders have it.
    return [f"{__package__}.{name}.{file.removesuffix('.py')}" for name in dict.fromkeys((*wings, *layers))]


def listed() -> list[Path]:
    """The folders that the environment lists now.

    Raises:
        ImportError: one of them does not exist. Without an error the toolkit's layer would run instead of the user's
            layer of the same name.
    """
    named = split(os.environ.get(VARIABLE, ""))
    folders = [Path(os.path.abspath(os.path.expanduser(name))) for name in named]
    for folder in folders:
        if not folder.is_dir():
            raise ImportError(f"{VARIABLE}: there is no folder {folder}")
    return folders


class _Finder:
    """Finds `cuffi.foo` in /my/layers/foo and in the toolkit's own folders.

    Names that begin with _, and names in the package itself, are the toolkit's own parts.
    """

    @staticmethod
    def find_spec(fullname: str, path, target=None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __package__ or name.startswith("_") or is_part(name):
            return None
        spec = PathFinder.find_spec(fullname, [str(folder) for folder in (*listed(), *toolkit_folders())])
        return spec if spec and spec.origin and spec.submodule_search_locations else None


@functools.cache
def is_part(name: str) -> bool:
    """Is it a module or a wing of the package itself?"""
    return (PACKAGE / f"{name}.py").exists() or (PACKAGE / name / "__init__.py").exists()


class _Nearest:
    """Comes last: names the layers whose names are like that of one that does not exist."""

    @staticmethod
    def find_spec(fullname: str, path, target=None) -> None:
        package, _, name = fullname.rpartition(".")
        if package == __package__ and not name.startswith("_"):
            import difflib

            if name in installed.NETS:
                raise ModuleNotFoundError(installed.lost(fullname), name=fullname)
            if name in installed.KERNELS:
                raise ModuleNotFoundError(
                    f"No module named {fullname!r}: {installed.missing(name)}", name=fullname
                )
            folders = [*listed(), *toolkit_folders()]
            known = sorted({n for folder in folders for n in with_file(folder, "__init__.py")})
            if near := difflib.get_close_matches(name, known, n=3, cutoff=0.7):
                raise ModuleNotFoundError(
                    f"No module named {fullname!r}. Did you mean {' or '.join(f'{package}.{n}' for n in near)}?",
                    name=fullname,
                )
            if not installed.has_kernels():
                raise ModuleNotFoundError(
                    f"No module named {fullname!r}. Layers are part of the kernels. {installed.no_kernels()}",
                    name=fullname,
                )


def install_finder() -> None:
    sys.meta_path.insert(0, _Finder)
    sys.meta_path.append(_Nearest)
