"""A caffe_pb2.py that protoc 2 or 3 wrote, as in repositories."""

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from cuffi.nets.python2 import Tree

# The form of the generated code; protobuf refuses to run its FieldDescriptor.
GENERATED = """
import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
from google.protobuf import descriptor as _descriptor

DESCRIPTOR = _descriptor.FileDescriptor(name='{name}', package='own', serialized_pb={text})
_WAY = _descriptor.EnumDescriptor(name='Way', full_name='own.Way')
_A = _descriptor.Descriptor(name='A', fields=[_descriptor.FieldDescriptor(name='b', full_name='own.A.b')])
"""


def file_with(default: str) -> bytes:
    file = FileDescriptorProto(name="caffe.proto", package="own")
    message = file.message_type.add(name="A")
    message.field.add(name="b", number=200, label=1, type=9, default_value=default)
    file.enum_type.add(name="Way").value.add(name="ROWS", number=3)
    return file.SerializeToString()


@pytest.mark.parametrize("form", ["'{}'", "_b('{}')"])
def test_its_messages_are_made_of_its_descriptor(form, tmp_path):
    for folder, default in (("one", "\xe9"), ("two", "z")):
        escaped = "".join(f"\\x{byte:02x}" for byte in file_with(default))
        (tmp_path / folder).mkdir()
        text = GENERATED.format(name="caffe.proto", text=form.format(escaped))
        (tmp_path / folder / "caffe_pb2.py").write_text(text)
        module = Tree([tmp_path / folder], {}).module("caffe_pb2")
        assert (module.A().b, module.ROWS, module.Way.Name(3)) == (default, 3, "ROWS")
        assert module.A(b="x").SerializeToString() == b"\xc2\x0c\x01x"
        assert module.DESCRIPTOR.package == "own"


def test_another_module_of_such_a_name_runs_as_it_is(tmp_path):
    (tmp_path / "my_pb2.py").write_text(
        "def FieldDescriptor(**given): return given\nx = FieldDescriptor(a=6 / 2)\n"
    )
    assert Tree([tmp_path], {}).module("my_pb2").x == {"a": 3}
