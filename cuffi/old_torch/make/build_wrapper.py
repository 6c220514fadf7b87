"""Compile the Python module of an extension's C functions: an object to link with the extension's archive.

    python -m cuffi.old_torch.make.build_wrapper build/job.json build/_round_host.o --cxx "g++ -O1" --flags "-O2"
    python -m cuffi.old_torch.make.build_wrapper aten_python.cpp build/aten_python.o --cxx "g++ -O2"

The JSON describes the extension (build_library.py). wrapper.py writes the source of a module of torch.utils.ffi, and
torch_library.py that of torch/extension.h. The second line is for the part that all of the latter share.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

import build_ffi
from tools.make.backends import edge
from tools.refused import Refused

from ..edge_files import FILES
from . import torch_library, wrapper


def build(job: Path, output: Path, target: str, cxx: list[str], flags: list[str], info: str) -> None:
    """Write the module and compile it into the object `output`. `target`: make's name of it."""
    module = output.name.split(".")[0]
    features = " ".join(f'X("{feature}")' for feature in build_ffi.cpu_features(cxx, flags))
    preamble = f'#define CAFFE_EDGE "{edge.digest(build_ffi.ROOT, FILES)}"\n'
    preamble += f"#define CAFFE_CPU_FEATURES(X) {features}\n"
    preamble += f"#define CAFFE_BUILD_INFO {json.dumps(info)}\n"
    generated = output.with_suffix(".cpp")
    described = json.loads(job.read_text())
    if "service" in described:  # of torch/extension.h
        source = torch_library.source_of(described, output.parent.name)
    else:
        source = wrapper.source_of(described, module)
    generated.write_text(preamble + source)
    own = edge.path_of(build_ffi.ROOT, "cuffi/old_torch/src")
    build_ffi.compile_into(output, target, [*cxx, "-std=c++17", "-w", f"-I{own}", str(generated)])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", type=Path, help="the extension, as JSON")
    parser.add_argument("output", type=Path, help="the object to write; the module is called as it is")
    parser.add_argument("--cxx", default="g++", help="the C++ compiler, with options for the module")
    parser.add_argument("--flags", default="", help="the options that the kernels were compiled with")
    parser.add_argument("--info", default="", help="the text of the module's build information")
    given = parser.parse_args()
    cxx, flags = shlex.split(given.cxx), shlex.split(given.flags)
    try:
        if given.job.suffix == ".cpp":
            build_ffi.compile_into(
                given.output.resolve(), str(given.output), [*cxx, str(given.job.resolve())]
            )
        else:
            build(given.job.resolve(), given.output.resolve(), str(given.output), cxx, flags, given.info)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    except subprocess.CalledProcessError:
        return 1  # the compiler has printed the reason
    return 0


if __name__ == "__main__":
    sys.exit(main())
