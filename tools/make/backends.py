"""The table of backends and the files of the edge, from the package `cuffi` (tools/parts.py)."""

from ..parts import part

edge, _table = part("edge"), part("backends")
Backend, BACKENDS, HOST, CPU, GPU = _table.Backend, _table.BACKENDS, _table.HOST, _table.CPU, _table.GPU
