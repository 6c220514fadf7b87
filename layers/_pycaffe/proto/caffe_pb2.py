"""Stock Caffe's messages and enums, under the names that protoc gives them in caffe_pb2.

    net = caffe_pb2.NetParameter()
    text_format.Merge(open("deploy.prototxt").read(), net)

They are protobuf's own classes for `src/caffe/proto/caffe.proto`: `NetParameter`, `LayerParameter`, `SolverParameter`,
`Datum`, `BlobProto` and so on, each with its DESCRIPTOR; the enum `Phase` with its values `TRAIN` and `TEST`.
"""

from google.protobuf import message_factory, text_format  # noqa: F401 - scripts find it as google.protobuf.text_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from ..._net.messages import STOCK

DESCRIPTOR = STOCK.message("NetParameter").DESCRIPTOR.file

for _name, _descriptor in DESCRIPTOR.message_types_by_name.items():
    globals()[_name] = message_factory.GetMessageClass(_descriptor)
for _name, _descriptor in DESCRIPTOR.enum_types_by_name.items():
    globals()[_name] = EnumTypeWrapper(_descriptor)
    globals().update(globals()[_name].items())
