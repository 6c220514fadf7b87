"""For pycaffe: the messages of a fork's caffe.proto (cuffi/base/providers.py)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..base import CaffeValueError
from ..caffe_files.parameters import DESCRIPTOR, Parameters
from ..loading import cache, toolkit
from ..loading.run_make import environment

# A program: it imports the toolkit's tools, which are not importable where the package is installed.
_PROGRAM = Path(__file__).with_name("make") / "proto.py"


def messages(file: Path) -> Parameters:
    """A file's messages. The output of make/proto.py is kept in load's cache.

    Raises:
        CaffeValueError: the file cannot be read. The text has protoc's messages.
    """
    key = hashlib.sha256(file.read_bytes() + _PROGRAM.read_bytes()).hexdigest()[:32]
    place = cache.subfolder(f"proto-{key}")
    if not (place / DESCRIPTOR).exists():
        with tempfile.TemporaryDirectory(dir=cache.folder()) as made:
            shutil.copyfile(file, Path(made, "caffe.proto"))
            command = [sys.executable, "-m", f"{__package__}.make.proto", "--layer-dir", made]
            command += ["--include-dir", f"{made}/include", "--descriptor", f"{made}/{DESCRIPTOR}"]
            done = subprocess.run(
                command, cwd=toolkit.root(), capture_output=True, text=True, env=environment()
            )
            if done.returncode:
                text = (done.stderr or done.stdout).replace(made, str(file.parent)).strip()
                raise CaffeValueError(f"{file}:\n{text}")
            os.replace(f"{made}/{DESCRIPTOR}", place / DESCRIPTOR)
    return Parameters(place)
