"""Saved weights: equal bits, and readable by protobuf."""

import numpy as np
import pytest
import torch
from google.protobuf import text_encoding
from support.weights import TEXT, message_of, net_with, same

from cuffi import caffe_net
from cuffi.caffe_files.caffemodel import stored_layers
from cuffi.nets.net import save
from cuffi.nets.net.messages import STOCK


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_round_trip_is_equal_to_the_bit(tmp_path, dtype):
    first, path = net_with(dtype=dtype), tmp_path / "a.caffemodel"
    with torch.no_grad():
        first.conv.weight.view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-40], dtype=dtype)
    first.save_caffemodel(path)
    second = caffe_net(TEXT).to(dtype)
    second.load_caffemodel(path)
    bits = torch.int32 if dtype == torch.float32 else torch.int64
    for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(a.view(bits), b.view(bits))


def test_protobuf_reads_what_is_saved(tmp_path):
    net, path = net_with(), tmp_path / "a.caffemodel"
    net.save_caffemodel(path)
    message = STOCK.message("NetParameter")
    message.ParseFromString(path.read_bytes())
    assert [(layer.name, layer.type, len(layer.blobs)) for layer in message.layer] == [
        ("conv", "Convolution", 2),
        ("bn", "BatchNorm", 3),
        ("ip", "InnerProduct", 2),
    ]
    assert list(message.layer[0].bottom) == ["data"] and list(message.layer[0].blobs[0].shape.dim) == [
        4,
        3,
        3,
        3,
    ]
    assert np.array_equal(message.layer[2].blobs[1].data, net.ip.bias.detach().numpy())


def test_names_with_escapes(tmp_path):
    """protobuf prints non-ASCII names with escapes, but stores them unescaped in a caffemodel."""
    names = {"conv": "卷积", "bn": 'a"b', "ip": "c\\n"}
    message = message_of(first := net_with())
    for layer in message.layer:
        layer.name = names[layer.name]
        layer.bottom.append("x")
    path, text = tmp_path / "a.caffemodel", TEXT
    path.write_bytes(message.SerializeToString())
    for name, new in names.items():
        text = text.replace(f'"{name}"', '"' + text_encoding.CEscape(new.encode(), as_utf8=False) + '"')
    text = text.replace('"data"', r"""'\x64\141t' "a" """)
    assert r"\345\215\267\347\247\257" in text
    net = caffe_net(text, path)
    assert same(net, first) and net.inputs == ["data"] and set(net.layers) == set(names.values())
    x = torch.rand(2, 3, 6, 6)
    assert torch.equal(net.train()(data=x), first.train()(x))
    net.save_caffemodel(path)
    assert [layer.name for layer in stored_layers(path)] == list(names.values())


def test_more_than_protobuf_reads_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(save, "LIMIT", 100)
    with pytest.warns(UserWarning, match=r"a\.caffemodel: over 2 GB, which Caffe"):
        net_with().save_caffemodel(tmp_path / "a.caffemodel")
