"""Find and run build scripts of torch.utils.ffi, several at once, and print a table."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from ..files import read
from ..make.build import make_flags
from ..make.settings import Settings, is_called_elsewhere
from ..refused import Refused

CALL = re.compile(r"^[^#\n]*\bcreate_extension\s*\(", re.M)
LEFT_OUT = frozenset({".git", "build", "__pycache__", "node_modules"})


class Result(NamedTuple):
    script: str
    status: int
    said: str
    seconds: float


def scripts_in(path: str) -> list[str]:
    """The build scripts of a folder: each file of Python that calls create_extension. Of a script itself, that."""
    if path.endswith(".py"):
        return [path]
    found = []
    for folder, below, files in os.walk(path):
        below[:] = sorted(set(below) - LEFT_OUT)
        for name in sorted(files):
            script = os.path.join(folder, name)
            if name.endswith(".py") and "torch.utils.ffi" in (text := read(script)) and CALL.search(text):
                found.append(script)
    return found


def run(script: str, settings: Settings) -> Result:
    """Run one script in its folder, in a process of its own."""
    began = time.monotonic()
    own = {
        k: v
        for k, v in settings.environment().items()
        if k in ("CXX", "NVCC", "ARCH", "HOST_ARCH", "BACKENDS")
    }
    environment = {**os.environ, **{k: v for k, v in own.items() if v}}
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "EXT", "BUILD", "CORE", "LAYERS_DIR", "LAYERS"):
        environment.pop(name, None)
    environment["PYTHONPATH"] = os.pathsep.join(
        [settings.root, *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, "-m", "layers.ffi", os.path.basename(script)], cwd=os.path.dirname(script), env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    return Result(script, done.returncode, done.stdout.strip(), time.monotonic() - began)


def build_all(settings: Settings, ext: str) -> int:
    """Build what EXT lists. The exit status is 1 if one failed."""
    where = os.environ.get("CALLED_IN") if is_called_elsewhere() else None
    paths = [
        os.path.abspath(os.path.join(where or ".", os.path.expanduser(word))) for word in shlex.split(ext)
    ]
    if not paths:
        raise Refused('which extension? make ffi EXT="/path/to/extension ..."')
    scripts = []
    for path in paths:
        if not os.path.exists(path):
            raise Refused(f"EXT: there is no {path}")
        found = scripts_in(path)
        if not found:
            raise Refused(f"EXT: {path}: no script there calls torch.utils.ffi's create_extension")
        scripts += found
    scripts = list(dict.fromkeys(scripts))
    keep = [flag for flag in make_flags() if flag.startswith("-j")]
    print(f"{len(scripts)} build scripts{' with ' + ' '.join(keep) if keep else ''}", flush=True)
    with ThreadPoolExecutor(min(4, len(os.sched_getaffinity(0)))) as pool:
        results = []
        for result in pool.map(lambda script: run(script, settings), scripts):
            results.append(result)
            if result.status:
                print(f"\n{result.script} failed:\n{result.said}", flush=True)
    return report(results)


def report(results: list[Result]) -> int:
    shared = os.path.commonpath([os.path.dirname(r.script) for r in results])
    table = Table("build script", "built", "time")
    for result in results:
        said = re.findall(r"^\S+: built for (.*?) in ", result.said, re.M)
        table.add_row(
            os.path.relpath(result.script, shared), "no" if result.status else ", ".join(dict.fromkeys(said)) or "nothing",
            f"{result.seconds:.1f} s",
        )  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 110).print(table)
    failed = sum(result.status != 0 for result in results)
    print(f"{len(results) - failed} of {len(results)} build scripts ran.")
    return bool(failed)
