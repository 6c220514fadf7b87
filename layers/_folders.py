"""Folders of layers outside of the toolkit: LAYERS_DIR lists them, with `:` between, for make and here alike.

A layer foo in one of them is `layers.foo`, as a bundled one is. The first folder that has a name has it for all; the
toolkit's own comes last.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

VARIABLE = "LAYERS_DIR"


def listed() -> list[Path]:
    """The folders, as the environment says now."""
    return [
        Path(os.path.abspath(os.path.expanduser(f))) for f in os.environ.get(VARIABLE, "").split(":") if f
    ]


class _Finder:
    """Answers `layers.foo` with /my/layers/foo. The toolkit's own parts, whose names begin with _, stay its own."""

    @staticmethod
    def find_spec(fullname: str, path, target=None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __package__ or name.startswith("_") or not os.environ.get(VARIABLE):
            return None
        spec = PathFinder.find_spec(fullname, [str(folder) for folder in listed()])
        return spec if spec and spec.origin and spec.submodule_search_locations else None


def look_there() -> None:
    """From now on."""
    sys.meta_path.insert(0, _Finder)
