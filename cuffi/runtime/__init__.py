"""The Python side of a layer: its libraries, C functions, operators and errors."""

from .. import installed

installed.check_threads()

# ruff: noqa: E402
from ..base.errors import (
    PLAIN,
    CaffeError,
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    describe,
    dtype_name,
    path_of,
    some,
)
from ..base.tracing import explain_onnx, fx_node, is_fake, refuse_script
from .derivative import apply_of, once
from .extension import raw_stream
from .layer import Layer
from .library import FLOATING, backend_of, backends_here
from .named import name_and_library
from .operator import operator

__all__ = [
    "FLOATING",
    "PLAIN",
    "CaffeError",
    "CaffeRuntimeError",
    "CaffeTypeError",
    "CaffeValueError",
    "Layer",
    "apply_of",
    "backend_of",
    "backends_here",
    "describe",
    "dtype_name",
    "explain_onnx",
    "fx_node",
    "is_fake",
    "name_and_library",
    "once",
    "operator",
    "path_of",
    "raw_stream",
    "refuse_script",
    "some",
]
