"""What all wings share: errors, the names that messages use, whole files. It imports torch and nothing of ours."""

from .errors import (
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
from .tracing import explain_onnx, fx_node, is_fake, refuse_script

__all__ = [
    "PLAIN",
    "CaffeError",
    "CaffeRuntimeError",
    "CaffeTypeError",
    "CaffeValueError",
    "describe",
    "dtype_name",
    "explain_onnx",
    "fx_node",
    "is_fake",
    "path_of",
    "refuse_script",
    "some",
]
