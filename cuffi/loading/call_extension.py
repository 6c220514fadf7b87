"""The extension that makes calls, where make has not built it: a checkout without `make`, or with newer sources.

It is built once into the cache. What pip installs has it beside cuffi/runtime.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shlex
import subprocess
import sys
from pathlib import PurePosixPath

from .. import edge as _edge
from ..runtime import extension
from . import toolkit
from .cache import Entry
from .run_make import CaffeBuildError, Progress, check_can_build, environment

NAME = "_call.abi3.so"


def ensure(settings: dict[str, str]) -> None:
    """Make calls possible in this process.

    Args:
        settings: make's settings, of which the C++ compiler is used.

    Raises:
        CaffeBuildError: it does not compile.
    """
    if extension.usable() is not None:
        return
    own = {"CXX": settings.get("CXX") or "g++"}
    made_by = [_edge.digest(toolkit.root(), _edge.call_files()), own["CXX"], platform.machine()]
    made_by += map(str, toolkit.identity(own["CXX"].split()[0]))
    entry = Entry("call", hashlib.sha256("\n".join(made_by).encode()).hexdigest()[:32], PurePosixPath("made"))
    if not entry.is_complete():
        with Progress("the extension that makes calls") as progress:
            entry.make(
                lambda lock: _build(entry, own, lock),
                waiting=lambda who: progress.wait(f"for {who}, which builds it"),
            )
    path = entry.folder / NAME
    loader = importlib.machinery.ExtensionFileLoader("cuffi.runtime._call", str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None  # there is a loader
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    extension.use(module)


def _build(entry: Entry, settings: dict[str, str], lock: int) -> None:
    check_can_build(settings)
    command = [sys.executable, "-m", "tools.make.build_call", str(entry.folder / NAME)]
    command += ["--cxx", shlex.join([*shlex.split(settings["CXX"]), "-O2"])]
    done = subprocess.run(
        command, cwd=toolkit.root(), capture_output=True, text=True, errors="replace",
        env=environment() | {"TMPDIR": os.fspath(entry.place)}, pass_fds=(lock,), umask=0o077,
    )  # fmt: skip
    if done.returncode:
        text = (done.stdout + done.stderr).strip()
        raise CaffeBuildError(f"the extension that makes calls does not build:\n{text}")
