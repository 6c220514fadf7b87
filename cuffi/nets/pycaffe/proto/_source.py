"""Find the messages for caffe_pb2: a fork's, if its caffe.proto is found, otherwise stock Caffe's."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from ....base import CaffeValueError
from ....caffe_files.parameters import DESCRIPTOR, Parameters
from ....loading import cache, toolkit
from ...net.messages import STOCK


def fork_s_proto() -> Path | None:
    """The file that CAFFE_PROTO names, or that of the first Caffe tree whose folder `python` is on sys.path."""
    if named := os.environ.get("CAFFE_PROTO"):
        if not Path(named).is_file():
            raise CaffeValueError(f"CAFFE_PROTO: there is no file {Path(named).absolute()}")
        return Path(named)
    trees = (Path(place or ".").absolute().parent for place in sys.path if Path(place).name == "python")
    found = (tree / "src" / "caffe" / "proto" / "caffe.proto" for tree in trees)
    return next((file for file in found if file.is_file()), None)


def messages() -> Parameters:
    """The messages. A tree's caffe.proto that cannot be read is ignored with a warning.

    Raises:
        CaffeValueError: CAFFE_PROTO cannot be read. The text has protoc's messages.
    """
    file = fork_s_proto()
    try:
        return STOCK if file is None else _read(file)
    except CaffeValueError as error:
        if os.environ.get("CAFFE_PROTO"):
            raise
        warnings.warn(f"caffe_pb2 has stock Caffe's messages, not the fork's: {error}", stacklevel=2)
        return STOCK


def _read(file: Path) -> Parameters:
    """A file's messages. The output of cuffi/caffe_layers/make/proto.py is kept in load's cache."""
    tool = (toolkit.root() / "tools" / "caffe" / "proto.py").read_bytes()
    key = hashlib.sha256(file.read_bytes() + tool).hexdigest()[:32]
    place = cache.subfolder(f"proto-{key}")
    if not (place / DESCRIPTOR).exists():
        with tempfile.TemporaryDirectory(dir=cache.folder()) as made:
            shutil.copyfile(file, Path(made, "caffe.proto"))
            command = [
                sys.executable,
                "-m",
                "cuffi.caffe_layers.make.proto",
                "--layer-dir",
                made,
                "--include-dir",
                f"{made}/include",
            ]
            done = subprocess.run(
                [*command, "--descriptor", f"{made}/{DESCRIPTOR}"],
                cwd=toolkit.root(),
                capture_output=True,
                text=True,
            )
            if done.returncode:
                raise CaffeValueError(
                    f"{file}:\n{(done.stderr or done.stdout).replace(made, str(file.parent)).strip()}"
                )
            os.replace(f"{made}/{DESCRIPTOR}", place / DESCRIPTOR)
    return Parameters(place)
