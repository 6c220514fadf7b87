"""How C++ is compiled for any Python: its headers, and the stable ABI."""

import sysconfig

# Python 3.10's stable ABI is the first that calls builtins without a tuple for their arguments.
PYTHON_ABI = "-DPy_LIMITED_API=0x030A0000"


def python_includes() -> list[str]:
    return [f"-I{sysconfig.get_path(kind)}" for kind in ("include", "platinclude")]
