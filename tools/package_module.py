"""Load the parts of the package `cuffi` that make needs, as single files.

Importing the package would take longer than a second make. In an installed toolkit it would import torch.
"""

import functools
import importlib
import os
import sys
from types import ModuleType

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# In the checkout; in an installed package, which contains the toolkit.
_PLACES = (os.path.join(_ROOT, "cuffi"), os.path.join(_ROOT, ".."))


@functools.cache
def package_module(name: str) -> ModuleType:
    """The module cuffi/<name>.py. It may import the standard library, rich, and the parts beside it."""
    place = next(place for place in _PLACES if os.path.exists(os.path.join(place, f"{name}.py")))
    words = name.split("/")
    for count in range(len(words)):  # packages of these folders whose __init__.py does not run
        package = ModuleType(".".join(["_cuffi", *words[:count]]))
        package.__path__ = [os.path.join(place, *words[:count])]
        sys.modules.setdefault(package.__name__, package)
    return importlib.import_module(".".join(["_cuffi", *words]))
