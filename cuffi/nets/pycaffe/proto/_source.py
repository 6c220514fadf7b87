"""Find the messages for caffe_pb2: a fork's, if its caffe.proto is found, otherwise stock Caffe's."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from ....base import CaffeValueError
from ....base.providers import providers, why_none
from ....caffe_files.parameters import Parameters
from ...net.messages import STOCK

_WHAT = "fork_messages"


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
    """A file's messages, by what provides `fork_messages`: `messages(file)`."""
    readers = providers(_WHAT)
    if not readers:
        raise CaffeValueError(f"{file}: a fork's messages cannot be read here: {why_none(_WHAT)}")
    return readers[0].messages(file)
