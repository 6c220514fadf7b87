"""The table of backends, read as a file: the package that it is in may not be importable here, and takes torch."""

import importlib.util
import os

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# In the tree; in an installed package, whose toolkit lies inside of it.
_PLACES = (os.path.join(_ROOT, "layers", "_backends.py"), os.path.join(_ROOT, "..", "_backends.py"))
_spec = importlib.util.spec_from_file_location("backends", next(filter(os.path.exists, _PLACES)))
_table = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_table)
Backend, BACKENDS, HOST, CPU, GPU = _table.Backend, _table.BACKENDS, _table.HOST, _table.CPU, _table.GPU
