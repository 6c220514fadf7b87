"""caffe.draw: the graph for Graphviz, and its absence."""

import pytest
from google.protobuf import text_format

from cuffi import CaffeRuntimeError, caffe

NET = """
name: 'a "net"'
layer { name: "data" type: "Data" top: "data" include { phase: TRAIN } }
layer { name: "data" type: "Input" top: "data" include { phase: TEST } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" param { lr_mult: 2 }
  convolution_param { kernel_size: 3 pad: 1 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
"""


def drawn(tmp_path, **options) -> str:
    caffe.draw.draw_net_to_file(
        text_format.Parse(NET, caffe.proto.caffe_pb2.NetParameter()), str(tmp_path / "a.dot"), **options
    )
    return (tmp_path / "a.dot").read_text()


def test_a_net_becomes_layers_and_blobs_with_edges(tmp_path):
    text = drawn(tmp_path)
    assert text.startswith('digraph "a \\"net\\"" {\nrankdir="LR";\n') and text.endswith("}\n")
    assert text.count("shape=box") == 4 and text.count("shape=octagon") == 2
    for line in ('"data" -> "layer 2"', '"layer 2" -> "conv"', '"conv" -> "layer 3"', '"layer 3" -> "conv"'):
        assert f"{line};\n" in text
    assert '[label="conv (Convolution) kernel: [3] pad: [1]"' in text


def test_a_phase_leaves_layers_out_and_the_rest_is_as_asked(tmp_path):
    text = drawn(tmp_path, phase=caffe.TEST, rankdir="TB", display_lrm=True)
    assert "(Input)" in text and "(Data)" not in text
    assert 'conv\\n(Convolution)\\nkernel: [3]\\npad: [1]\\nlr_mult: 2.0"' in text


def test_a_picture_needs_graphviz(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        CaffeRuntimeError, match=r"draw_net: \.png needs Graphviz's program dot; \.dot does not"
    ):
        caffe.draw.draw_net(caffe.proto.caffe_pb2.NetParameter(), "LR")
    (tmp_path / "dot").write_text("#!/bin/sh\necho unknown format >&2; exit 1\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(CaffeRuntimeError, match="draw_net: dot: unknown format"):
        caffe.draw.draw_net(caffe.proto.caffe_pb2.NetParameter(), "LR", ext="odd")
