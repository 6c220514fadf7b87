"""A plugin of pytest: what the wing of nets must do without is not there, as in a pure wheel.

python -m pytest -p support.without_toolkit --confcutdir=tests/nets tests/nets
"""

import sys

ABSENT = ("cffi", "_cffi_backend", "tree_sitter", "tree_sitter_cuda", "pycparser", "grpc_tools")
ABSENT += ("cuffi.runtime", "cuffi.loading", "cuffi.caffe_layers", "cuffi.old_torch", "tools", "build_ffi")


class Absent:
    """Comes first of sys.meta_path."""

    @staticmethod
    def find_spec(name, path, target=None):
        if name in ABSENT or name.startswith(tuple(f"{absent}." for absent in ABSENT)):
            raise ModuleNotFoundError(
                f"No module named {name!r}, because this is a pure environment", name=name
            )


sys.meta_path.insert(0, Absent)
