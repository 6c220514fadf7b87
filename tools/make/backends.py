"""Parts of the package that make needs. They are loaded as files, because importing the package needs torch."""

import importlib.util
import os

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the checkout; in an installed package, which contains the toolkit.
_PLACES = (os.path.join(_ROOT, "layers"), os.path.join(_ROOT, ".."))


def _read(name: str):
    path = next(filter(os.path.exists, (os.path.join(place, f"_{name}.py") for place in _PLACES)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


edge, _table = _read("edge"), _read("backends")
Backend, BACKENDS, HOST, CPU, GPU = _table.Backend, _table.BACKENDS, _table.HOST, _table.CPU, _table.GPU
