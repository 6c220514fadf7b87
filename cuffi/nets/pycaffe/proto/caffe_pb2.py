"""Caffe's messages and enums, under the names that protoc gives them in caffe_pb2.

    net = caffe_pb2.NetParameter()
    text_format.Merge(open("deploy.prototxt").read(), net)

They are protobuf's own classes: `NetParameter`, `LayerParameter`, `SolverParameter`, `Datum`, `BlobProto` and so on,
each with its DESCRIPTOR; the enum `Phase` with its values `TRAIN` and `TEST`. They are those of a fork's caffe.proto,
if the variable CAFFE_PROTO names one, or the fork's folder `python` is on sys.path. Else they are stock Caffe's, with
the fields of the types in cuffi/nets/forks.
"""

from typing import TYPE_CHECKING, Any

from google.protobuf import message_factory, text_format  # noqa: F401 - scripts find it as google.protobuf.text_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from ._source import messages

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # the messages and the enums, which are made below


DESCRIPTOR = messages().message("NetParameter").DESCRIPTOR.file

for _name, _descriptor in DESCRIPTOR.message_types_by_name.items():
    globals()[_name] = message_factory.GetMessageClass(_descriptor)
for _name, _descriptor in DESCRIPTOR.enum_types_by_name.items():
    globals()[_name] = EnumTypeWrapper(_descriptor)
    globals().update(globals()[_name].items())
