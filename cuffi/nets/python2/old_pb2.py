"""Modules by protoc 3 or older, such as a repository's own caffe_pb2.py, which today's protobuf refuses."""

from __future__ import annotations

import ast
from types import CodeType

# As protoc 4 writes it, with its own pool, because two files may have messages of one name.
_CODE = """
from google.protobuf import descriptor_pool as _pools
from google.protobuf.internal import builder as _builder

DESCRIPTOR = _pools.DescriptorPool().AddSerializedFile({file!r})
_builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
_builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())
"""


def code_of(tree: ast.Module, path: str) -> CodeType | None:
    """Code that makes the same messages. None if the file is not such a module."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "FieldDescriptor" for call in calls
    ):
        return None
    given = (keyword.value for call in calls for keyword in call.keywords if keyword.arg == "serialized_pb")
    for value in given:
        value = value.args[0] if isinstance(value, ast.Call) else value  # _b('...')
        if isinstance(value, ast.Constant) and isinstance(value.value, str | bytes):
            file = (
                value.value.encode("latin-1", "surrogateescape")
                if isinstance(value.value, str)
                else value.value
            )
            return compile(_CODE.format(file=file), path, "exec", dont_inherit=True)
    return None
