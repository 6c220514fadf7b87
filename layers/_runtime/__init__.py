"""What a layer's Python side is made of: its libraries, its C functions, its operators, its errors."""

from .errors import (
    PLAIN,
    CaffeError,
    CaffeRuntimeError,
    CaffeTypeError,
    CaffeValueError,
    describe,
    dtype_name,
)
from .launcher import is_fake, raw_stream
from .layer import Layer
from .library import FLOATING, served, serving
from .operator import explain_onnx, once, operator

__all__ = [
    "FLOATING",
    "PLAIN",
    "CaffeError",
    "CaffeRuntimeError",
    "CaffeTypeError",
    "CaffeValueError",
    "Layer",
    "describe",
    "dtype_name",
    "explain_onnx",
    "is_fake",
    "once",
    "operator",
    "raw_stream",
    "served",
    "serving",
]
