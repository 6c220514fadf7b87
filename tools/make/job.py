"""A run of make: its layers, its rules, and the folders that the rules write to."""

from __future__ import annotations

import os
import re
import shutil

from ..files import content, write
from ..refused import Refused
from .backends import edge
from .failures import Failure
from .folders import Folder, folders, shown
from .makefile import Rules
from .package import IS_INSTALLED
from .settings import Settings, full

# A file that marks a folder which make may empty. A layer's objects have FROM, which holds the folder of layers.
MARK, FROM = ".made_by_make", "from"


class Job:
    """A run of make."""

    def __init__(self, settings: Settings, only: list[str] | None = None):
        self.settings = settings
        settings.check_gpu()
        settings.check_processor()
        known, unfit = folders(settings.layers_dir)
        self.unfit = {shown(name): why for name, why in unfit.items()}
        self.failures: list[Failure] = []
        wanted = settings.layers or only or list(known)
        if strange := [name for name in wanted if name not in known]:
            setting = "LAYERS" if settings.layers else "LAYER"
            raise Refused(
                f"{setting}: no layer {' '.join(strange)} in {settings.layers_dir}. "
                f"There are: {' '.join(known) or 'none'}"
            )
        self.folders: list[Folder] = [known[name] for name in dict.fromkeys(wanted)]
        self.rules = Rules(settings)
        self.text = self.rules.text(self.folders)
        self.started = self.rules.started

    def folder(self, name: str) -> Folder:
        return next(folder for folder in self.folders if folder.name == name)

    @property
    def names(self) -> list[str]:
        return [folder.name for folder in self.folders]

    def write(self, dry: bool) -> None:
        """Write the rules and their files. With `dry` (make -n), write nothing that a later make would use."""
        settings = self.settings
        self.makefile = f"{settings.build}/layers{'.dry' if dry else ''}.mk"
        if not dry:
            empty(settings.temporary)
        for folder in self.folders:
            self._claim(folder.name, dry)
        for backend in settings.backends:
            os.makedirs(settings.core_of(backend), exist_ok=True)
        for place in sorted(self.rules.places()):
            os.makedirs(place, exist_ok=True)
        for path, text in self.rules.files.items():
            if not dry or not os.path.exists(path):
                write(path, os.fsencode(text), if_changed=True)
        write(self.makefile, os.fsencode(self.text), if_changed=True)
        if settings.outside and not dry:
            give_toolkit(settings.layers_dir, [folder.path for folder in self.folders])

    def _claim(self, name: str, dry: bool) -> None:
        """Empty the objects of another folder's layer of the same name. They would look up to date."""
        place = os.path.join(self.settings.build, name)
        # Relative if both are in the toolkit, so that a copy of a built tree is built, too.
        named = (
            full(self.settings.layers_dir) if os.path.isabs(self.settings.build) else self.settings.layers_dir
        )
        where = os.fsencode(f"{named}\n")
        if dry and not os.path.lexists(place):
            empty(place, FROM)  # an empty mark, so that the next make empties the folder
        elif not dry and (os.path.islink(place) or content(f"{place}/{FROM}") != where):
            empty(place, FROM)
            write(f"{place}/{FROM}", where)


def empty(folder: str, mark: str = MARK) -> None:
    """Make a folder, or remove its contents except the mark, by which the next make recognises it.

    A folder without the mark belongs to the user.
    """
    left = os.listdir(folder) if os.path.isdir(folder) else []
    if os.path.islink(folder) or (left and mark not in left):
        raise Refused(f"{folder}: make would empty this folder, but did not create it; set another BUILD")
    os.makedirs(folder, exist_ok=True)
    # The mark stays, so that the next make recognises the folder if this one is killed here.
    open(os.path.join(folder, mark), "a").close()
    for name in left:
        if name != mark:
            remove(os.path.join(folder, name))


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


# ------------------------------------------------------------------------------- folders outside of the toolkit

# Layers there may write `from .._runtime import Layer`, as the toolkit's do. For this, make writes an __init__.py into
# their folder. If they import the installed toolkit (`from cuffi import Layer`), the folder needs no such file.

_RELATIVE = re.compile(rb"^\s*from \.\._", re.M)
_MADE = "# Written by the toolkit's make, which overwrites it. Delete this line to keep your changes.\n"
_INSTALLED = """
import cuffi

cuffi.adopt(__name__)
"""
# This checkout built the libraries, so it comes before an installed toolkit, which may be another version.
_CHECKOUT = """
import importlib.util
import os
import sys

_TOOLKIT = {path!r}
if "cuffi" not in sys.modules and os.path.exists(_TOOLKIT):
    _spec = importlib.util.spec_from_file_location("cuffi", _TOOLKIT)
    sys.modules["cuffi"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["cuffi"])
import cuffi  # noqa: E402

cuffi.adopt(__name__)
"""


def init_text() -> str:
    package = str(edge.PACKAGE / "__init__.py")
    return _MADE + (_INSTALLED if IS_INSTALLED else _CHECKOUT.format(path=package)).lstrip("\n")


def give_toolkit(layers_dir: str, folders: list[str]) -> None:
    """Write the __init__.py if these layers need it, but never over the user's own."""
    if not any(_is_relative(folder) for folder in folders):
        return
    path = os.path.join(layers_dir, "__init__.py")
    present = content(path)
    if present.startswith(_MADE.encode()) or not os.path.exists(path):
        write(path, os.fsencode(init_text()), if_changed=True)
    elif b"adopt(" not in present:
        add = "add `import cuffi; cuffi.adopt(__name__)` to it"
        print(f"{path} is your own: {add}, or the layers will not find the toolkit's _runtime.", flush=True)


def _is_relative(folder: str) -> bool:
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".py")]
        return any(_RELATIVE.search(content(os.path.join(folder, name))) for name in names)
    except OSError:
        return False
