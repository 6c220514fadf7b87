"""Folders of layers outside of the toolkit. LAYERS_DIR lists them, separated by `:`, for make and for Python.

A layer foo in one of them is `layers.foo`, like one of the toolkit's. If two folders have a foo, the first one wins.
The toolkit's own folder comes last.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

VARIABLE = "LAYERS_DIR"


def split(text: str) -> list[str]:
    """The folders in the text of LAYERS_DIR."""
    return [name for name in text.split(":") if name]


def candidates(folder: str | os.PathLike) -> list[str]:
    """The names of the subfolders that may be layers, sorted. Make and Python look at no others."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.is_dir()]
    return sorted(name for name in names if not name.startswith((".", "_")) and name != "build")


def with_file(folder: str | os.PathLike, *files: str) -> list[str]:
    """The candidates that have one of these files."""
    return [n for n in candidates(folder) if any(os.path.exists(os.path.join(folder, n, f)) for f in files)]


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
    """Finds `layers.foo` in /my/layers/foo. Names that begin with _ are the toolkit's own parts."""

    @staticmethod
    def find_spec(fullname: str, path, target=None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __package__ or name.startswith("_") or not os.environ.get(VARIABLE):
            return None
        spec = PathFinder.find_spec(fullname, [str(folder) for folder in listed()])
        return spec if spec and spec.origin and spec.submodule_search_locations else None


class _Nearest:
    """Comes last: names the layers whose names are like that of one that does not exist."""

    @staticmethod
    def find_spec(fullname: str, path, target=None) -> None:
        package, _, name = fullname.rpartition(".")
        if package == __package__ and not name.startswith("_"):
            import difflib

            folders = [*listed(), Path(__file__).parent]
            known = sorted({n for folder in folders for n in with_file(folder, "__init__.py")})
            if near := difflib.get_close_matches(name, known, n=3, cutoff=0.7):
                raise ModuleNotFoundError(
                    f"No module named {fullname!r}. Did you mean {' or '.join(f'{package}.{n}' for n in near)}?",
                    name=fullname,
                )


def install_finder() -> None:
    sys.meta_path.insert(0, _Finder)
    sys.meta_path.append(_Nearest)
