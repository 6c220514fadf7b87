"""The table of backends and the files of the edge, from the package `cuffi` (tools/package_module.py)."""

from typing import TYPE_CHECKING

from ..package_module import package_module

if TYPE_CHECKING:
    from cuffi import edge
    from cuffi.backends import BACKENDS, CPU, GPU, HOST, Backend
else:
    edge, _table = package_module("edge"), package_module("backends")
    Backend, BACKENDS, HOST, CPU, GPU = _table.Backend, _table.BACKENDS, _table.HOST, _table.CPU, _table.GPU
