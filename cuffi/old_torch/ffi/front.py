"""Run a script or a program of 2017, with torch.utils.ffi, old-style Functions and a stand-in for nvcc.

python -m cuffi.ffi build.py | test.py ...    runs the script, in this process
python -m cuffi.ffi make ...                  runs the program. Its `python x.py` run here, too. Its `nvcc` records the
                                               kernels (kernels.py), and create_extension compiles them
python -m cuffi.ffi nvcc ...                  is the stand-in itself

Without a GPU the processor replaces it, only in these processes: torch.cuda.is_available() is true, .cuda() returns
the tensor itself, and each tensor's is_cuda is true. The kernels then run on the host backend.
"""

import hashlib
import json
import os
import runpy
import stat
import sys
import warnings
from pathlib import Path

import torch

from ...loading import cache, toolkit
from ...runtime import CaffeError
from . import kernels, processor
from .function import old_functions

PROGRAM = Path(__file__).resolve().with_name("program.py")
# A line of nvcc's output for --version, which some Makefiles read.
VERSION = "Cuda compilation tools, release 12.0, V12.0.0 (stand-in of torch.utils.ffi)"


def main(words: list[str] | None = None) -> int:
    """The exit status of the script or program."""
    words = sys.argv[1:] if words is None else words
    if not words or words[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if words else 2
    if words[0] == "nvcc":
        return stand_in(words[1:])
    try:
        if words[0].endswith(".py"):
            return run_script(words)
        return run_program(words)
    except CaffeError as error:
        print(error, file=sys.stderr)
        return 1


def run_script(words: list[str]) -> int:
    """Run a Python script in this process, as `python script.py` does."""
    from . import torch_utils_ffi  # noqa: F401 (it becomes torch.utils.ffi)

    old_functions()
    if not torch.cuda.is_available():
        processor.stand_in()
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.realpath(words[0]))
    put_programs_first()
    # torch.autograd.Variable(x, volatile=True), .data and the like still work, and warn in each call.
    warnings.filterwarnings("once", category=UserWarning, module="torch")
    runpy.run_path(words[0], run_name="__main__")
    return 0


def run_program(words: list[str]) -> int:
    put_programs_first()
    try:
        os.execvp(words[0], words)
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)
        return 127


def put_programs_first() -> None:
    """Make the stand-ins the first in PATH. NVCC names the real one, if there is one."""
    os.environ["NVCC"] = toolkit.find_nvcc()
    os.environ["PATH"] = f"{programs()}{os.pathsep}{os.environ.get('PATH', '')}"


def programs() -> Path:
    """A folder with `nvcc` and `python`, to be the first in PATH."""
    key = hashlib.sha256(f"{sys.executable} {PROGRAM}".encode()).hexdigest()[:12]
    folder = cache.subfolder(f"programs-{key}")
    front = f'exec "{sys.executable}" "{PROGRAM}"'
    texts = {"nvcc": f'#!/bin/sh\n{front} nvcc "$@"\n'}
    python = f'#!/bin/sh\ncase "$1" in *.py) {front} "$@";; esac\nexec "{sys.executable}" "$@"\n'
    texts |= dict.fromkeys(("python", "python2", "python3"), python)
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            partial = folder / f"{name}.{os.getpid()}.partial"
            partial.write_text(text)
            partial.chmod(partial.stat().st_mode | stat.S_IXUSR)
            os.replace(partial, path)
    return folder


def stand_in(words: list[str]) -> int:
    """Write nvcc's command into the object's file. create_extension compiles it later."""
    if "--version" in words or "-V" in words:
        print(VERSION)
        return 0
    output, inputs, flags = kernels.parsed(words)
    notes = []
    for name in inputs:
        if not os.path.isfile(name):
            print(f"nvcc: {name}: there is no such file", file=sys.stderr)
            return 1
        with open(name, "rb") as file:
            start = file.read(1 << 16)
        if start.startswith(kernels.NOTE.encode()):  # objects that are linked
            notes += json.loads(start)["cuffi nvcc"]
        elif name.endswith((".cu", ".cc", ".cpp", ".c")):
            notes.append({"source": os.path.abspath(name), "flags": flags, "folder": os.getcwd()})
    if not notes:
        print(
            f"nvcc: the stand-in of torch.utils.ffi compiles .cu files, got: {' '.join(words)}",
            file=sys.stderr,
        )
        return 1
    output = output or f"{Path(inputs[0]).stem}.o"
    Path(output).write_text(kernels.NOTE + json.dumps(notes) + "}\n")
    return 0
