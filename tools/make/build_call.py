"""Build the extension that makes calls, one for all layers: src/edge/call.cpp.

    python -m tools.make.build_call layers/_runtime/_call.abi3.so --cxx "g++ -O2"

Like a layer's library it uses only CPython's stable ABI, and no symbol of torch.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from .backends import edge
from .python_abi import PYTHON_ABI, python_includes
from .settings import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="the extension to write")
    parser.add_argument("--cxx", default="g++ -O2", help="the C++ compiler, with options")
    arguments = parser.parse_args()
    partial = arguments.output.with_name(arguments.output.name + ".partial")
    digest = f'-DCAFFE_EDGE="{edge.digest(Path(ROOT), edge.CALL)}"'
    done = subprocess.run(
        [*shlex.split(arguments.cxx), "-std=c++17", PYTHON_ABI, digest, "-shared", "-fPIC", "-fvisibility=hidden",
         *python_includes(), f"-I{ROOT}/include", f"{ROOT}/src/edge/call.cpp", "-o", str(partial)])  # fmt: skip
    if done.returncode:
        return 1  # the compiler has printed its error
    # Renamed at the end, so that a killed build leaves no broken extension.
    os.replace(partial, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
