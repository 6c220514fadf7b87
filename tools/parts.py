"""Load the parts of the package `cuffi` that make needs, as single files.

Importing the package would take longer than a second make. In an installed toolkit it would import torch.
"""

import functools
import importlib.util
import os
from types import ModuleType

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# In the checkout; in an installed package, which contains the toolkit.
_PLACES = (os.path.join(_ROOT, "cuffi"), os.path.join(_ROOT, ".."))


@functools.cache
def part(name: str) -> ModuleType:
    """The module cuffi/<name>.py. It may import the standard library only."""
    path = next(filter(os.path.exists, (os.path.join(place, f"{name}.py") for place in _PLACES)))
    spec = importlib.util.spec_from_file_location(f"_{name.replace('/', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
