"""Find and run build scripts of torch.utils.ffi and of torch/extension.h, several at once, and print a table."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.table import Table

from tools.console import console
from tools.files import read
from tools.make.backends import edge
from tools.make.folders import shown
from tools.make.settings import Settings, is_called_elsewhere
from tools.refused import Refused

CALL = re.compile(r"^[^#\n]*\bcreate_extension\s*\(", re.M)
# A setup.py of torch/extension.h.
SETUP = re.compile(r"^[^#\n]*\b(CUDAExtension|CppExtension)\b", re.M)
# What runs it. `python -m cuffi.ext` needs the package on the path, and the script's folder has its own.
FRONT = (
    "import sys; sys.path.append({parent!r}); from cuffi.old_torch.ext_front import main; sys.exit(main())"
)
LEFT_OUT = frozenset({".git", "build", "__pycache__", "node_modules"})


class Result(NamedTuple):
    script: str
    status: int
    output: str
    seconds: float


def scripts_in(path: str) -> list[str]:
    """The build scripts of a folder: each Python file that calls create_extension, and each setup.py of an extension of
    torch/extension.h. A script's own path is itself.
    """
    if path.endswith(".py"):
        return [path]
    found = []
    for folder, below, files in os.walk(path):
        below[:] = sorted(set(below) - LEFT_OUT)
        for name in sorted(files):
            script = os.path.join(folder, name)
            if not name.endswith(".py"):
                continue
            text = read(script)
            if ("torch.utils.ffi" in text and CALL.search(text)) or (name == "setup.py" and is_setup(text)):
                found.append(script)
    return found


def is_setup(text: str) -> bool:
    return "cpp_extension" in text and SETUP.search(text) is not None


def command(words: list[str]) -> list[str]:
    """The command that runs a script with its arguments, in the script's folder."""
    script, *arguments = words
    own = [os.path.basename(script), *arguments]
    if is_setup(read(script)):
        front = FRONT.format(parent=str(edge.PACKAGE.parent))
        return [sys.executable, "-c", front, *own, *([] if arguments else ["build_ext", "--inplace"])]
    return [sys.executable, str(edge.PACKAGE / "old_torch" / "ffi" / "program.py"), *own]


def run(words: list[str], settings: Settings) -> Result:
    """Run one script with its arguments in its folder, in a new process."""
    script = words[0]
    began = time.monotonic()
    passed = ("CXX", "NVCC", "ARCH", "HOST_ARCH", "SANITIZE")
    own = {name: text for name, text in settings.environment().items() if text or name == "NVCC"}
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    environment |= {name: own[name] for name in passed if name in own and name in os.environ}
    for name in ("EXT", "BUILD", "CORE", "LAYERS_DIR", "LAYERS"):
        environment.pop(name, None)
    done = subprocess.run(
        command(words), cwd=os.path.dirname(script), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    return Result(script, done.returncode, done.stdout.strip(), time.monotonic() - began)


def listed(ext: str, where: str) -> list[list[str]]:
    """The scripts of EXT, each with its arguments: words that begin with - belong to the script before them."""
    found = []
    for word in shlex.split(ext):
        path = os.path.abspath(os.path.join(where, os.path.expanduser(word)))
        if word.startswith("-") and found:
            found[-1].append(word)
        elif not os.path.exists(path):
            raise Refused(f"there is no {path}")
        elif scripts := scripts_in(path):
            found += [[script] for script in scripts if [script] not in found]
        else:
            raise Refused(
                f"{path}: no script there calls create_extension or CUDAExtension: "
                "name the folder whose build.py or setup.py does"
            )
    if not found:
        raise Refused('which extension? make ffi EXT="/path/to/extension ..."')
    return found


def build_all(settings: Settings, ext: str) -> int:
    """Build what EXT lists. The exit status is 1 if one failed."""
    scripts = listed(ext, os.environ["CALLED_IN"] if is_called_elsewhere() else ".")
    results = []
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for result in pool.map(lambda words: run(words, settings), scripts):
            results.append(result)
            if result.status:
                print(f"{shown(result.script)} failed:\n{result.output}\n", flush=True)
    return report(results)


def report(results: list[Result]) -> int:
    shared = os.path.commonpath([os.path.dirname(r.script) for r in results])
    table = Table("build script", "built", "time")
    for result in results:
        said = re.findall(r"^\S+: built for (.*?) in ", result.output, re.M)
        built = "no" if result.status else ", ".join(dict.fromkeys(said)) or "nothing"
        table.add_row(os.path.relpath(result.script, shared), built, f"{result.seconds:.1f} s")
    console(width=None if sys.stdout.isatty() else 110).print(table)
    failed = sum(result.status != 0 for result in results)
    print(f"{len(results) - failed} of {len(results)} build scripts ran.")
    return bool(failed)
