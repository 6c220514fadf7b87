"""Write an __init__.py into a folder of layers outside of the toolkit, so that its layers find the toolkit.

Layers there may write `from .._runtime import Layer`, as the bundled ones do, and get the toolkit's `_runtime`. If they
import the installed toolkit (`from cuffi import Layer`), the folder needs no such file.
"""

from __future__ import annotations

import os
import re

from ..files import content, write
from .backends import edge
from .settings import ROOT

# What make verify and make sanitize may copy to a folder outside.
_TOOLKITS = edge.PACKAGE / "__init__.py"
_RELATIVE = re.compile(rb"^\s*from \.\._", re.M)
_MADE = "# Made by the toolkit's make, and made anew by it. Delete this line to keep what you change.\n"
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
    is_installed = os.path.basename(ROOT) == "_toolkit"
    return _MADE + (_INSTALLED if is_installed else _CHECKOUT.format(path=str(_TOOLKITS))).lstrip("\n")


def give_toolkit(layers_dir: str, folders: list[str]) -> None:
    """Write the __init__.py if these layers need it, but never over the user's own."""
    if not any(_is_relative(folder) for folder in folders):
        return
    path = os.path.join(layers_dir, "__init__.py")
    present = content(path)
    if present.startswith(_MADE.encode()) or not os.path.exists(path):
        write(path, os.fsencode(init_text()), if_changed=True)
    elif b"adopt(" not in present and present != content(_TOOLKITS):
        add = "add `import cuffi; cuffi.adopt(__name__)` to it"
        print(f"{path} is your own: {add}, or the layers will not find the toolkit's _runtime.", flush=True)


def _is_relative(folder: str) -> bool:
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".py")]
        return any(_RELATIVE.search(content(os.path.join(folder, name))) for name in names)
    except OSError:
        return False
