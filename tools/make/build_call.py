"""Build the extension that makes calls, one for all layers: src/edge/call.cpp, and the wings' files.

    python -m tools.make.build_call cuffi/runtime/_call.abi3.so --cxx "g++ -O2"

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
    digest = f'-DCAFFE_EDGE="{edge.digest(Path(ROOT), edge.call_files())}"'
    # One unit, because they share most of their headers.
    sources = [edge.path_of(Path(ROOT), source) for source in (edge.CALL[0], *edge.wings_sources())]
    unit = "".join(f'#include "{source}"\n' for source in sources)
    folders = f"{ROOT}/src/edge", f"{ROOT}/include", *sorted(edge.PACKAGE.glob("*/include"))
    includes = [f"-I{folder}" for folder in folders]
    done = subprocess.run(
        [*shlex.split(arguments.cxx), "-std=c++17", PYTHON_ABI, digest, "-shared", "-fPIC", "-fvisibility=hidden",
         *python_includes(), *includes, "-x", "c++", "-", "-o", str(partial)],
        input=unit, text=True)  # fmt: skip
    if done.returncode:
        return 1  # the compiler has printed its error
    # Renamed at the end, so that a killed build leaves no broken extension.
    os.replace(partial, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
