"""caffe.NetSpec writes the prototxt that Caffe's writes."""

import pytest
from google.protobuf import text_format

from cuffi import CaffeTypeError, CaffeValueError
from cuffi.caffe import NetSpec, proto, to_proto
from cuffi.caffe import layers as L
from cuffi.caffe import params as P


def lenet():
    n = NetSpec()
    n.data, n.label = L.Data(
        batch_size=64, backend=P.Data.LMDB, source="db", transform_param=dict(scale=0.5), ntop=2
    )
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"),
                            param=[dict(lr_mult=1), dict(lr_mult=2)])  # fmt: skip
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.relu1 = L.ReLU(n.pool1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=10, name="ip")
    n.mine = L.Python(n.score, module="m", layer="A", param_str="'a': 1", include=dict(phase=0))
    n.loss = L.SoftmaxWithLoss(n.score, n.label, loss_weight=2, loss_param=dict(ignore_label=255))
    return n


EXPECTED = """
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.5 }
  data_param { source: "db" batch_size: 64 backend: LMDB } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 20 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "pool1" top: "pool1" }
layer { name: "ip" type: "InnerProduct" bottom: "pool1" top: "score" inner_product_param { num_output: 10 } }
layer { name: "mine" type: "Python" bottom: "score" top: "mine" include { phase: TRAIN }
  python_param { module: "m" layer: "A" param_str: "'a': 1" } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" loss_weight: 2
  loss_param { ignore_label: 255 } }
"""


def test_a_net_of_tops_by_name():
    expected = text_format.Parse(EXPECTED, proto.caffe_pb2.NetParameter())
    assert lenet().to_proto() == expected


def test_tops_without_names_are_numbered_by_type():
    data = L.Input(shape=[dict(dim=[1, 2])])
    made = to_proto(L.Eltwise(L.ReLU(data), L.ReLU(data)))
    assert [layer.name for layer in made.layer] == ["Input1", "ReLU1", "ReLU2", "Eltwise1"]
    assert list(made.layer[3].bottom) == ["ReLU1", "ReLU2"]


def test_a_layer_without_tops_and_names_by_brackets():
    n = NetSpec()
    n["a/b"] = L.Input(shape=dict(dim=[2]))
    assert n["a/b"].to_proto().layer[0].input_param.shape[0].dim == [2]
    n.silence = L.Silence(n["a/b"], ntop=0)
    last = n.to_proto().layer[-1]
    assert (last.name, last.type, list(last.bottom), list(last.top)) == ("silence", "Silence", ["a/b"], [])


def test_mistakes_are_named():
    n = lenet()
    with pytest.raises(CaffeValueError, match=r"'x' \(ReLU\): slope: LayerParameter has no field 'slope'"):
        n.x = L.ReLU(n.data, slope=1)
        n.to_proto()
    with pytest.raises(CaffeTypeError, match=r"ReLU input 0 is not a Top \(type is <class 'str'>\)"):
        L.ReLU("data")
    with pytest.raises(AttributeError, match="NetSpec has no top 'conv9'"):
        n.conv9  # noqa: B018
    with pytest.raises(AttributeError, match="no ConvParameter"):
        P.Conv  # noqa: B018
