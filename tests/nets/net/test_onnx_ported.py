"""ONNX files with ported layers: what is written, what runs it, and what is said where nothing does."""

import json
import sys
import warnings

import numpy as np
import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeValueError, OnnxSession, caffe_net

onnx, _, _ = (pytest.importorskip(name) for name in ("onnx", "onnxscript", "onnxruntime"))
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's exporter, about itself

INPUT = 'input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }\n'
NET = (
    INPUT
    + """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "msra" } } }
layer { name: "affine" type: "Affine" bottom: "conv" top: "affine" zoo_param { filler { type: "gaussian" std: 1 } } }
layer { name: "pair" type: "Pair" bottom: "affine" bottom: "conv" top: "sum" top: "product" }
layer { name: "ramp" type: "Ramp" bottom: "sum" top: "sum" zoo_param { slope: 0.5 } }
layer { name: "pool" type: "Pooling" bottom: "sum" top: "pool" pooling_param { kernel_size: 2 stride: 2 } }
layer { name: "positive" type: "Positive" bottom: "pool" top: "positive" }
layer { name: "more" type: "Power" bottom: "positive" top: "more" power_param { shift: 1 } }
layer { name: "priors" type: "PriorBox" bottom: "pool" bottom: "data" top: "priors" prior_box_param { min_size: 4 } }
layer { name: "all" type: "Eltwise" bottom: "product" bottom: "sum" top: "all" }
"""
)
TYPES = ("Affine", "Pair", "Ramp", "Positive", "Running")


@pytest.fixture
def folder(zoo, tmp_path):
    """A folder with the ported layers of these types."""
    for type_name in TYPES:
        (tmp_path / "layers" / type_name.lower()).mkdir(parents=True)
        code = f'from {zoo.__name__} import {type_name}  # caffe_layer(__name__, "{type_name}")'
        (tmp_path / "layers" / type_name.lower() / "__init__.py").write_text(code)
    return tmp_path / "layers"


@pytest.fixture
def net(folder):
    torch.manual_seed(1)
    return caffe_net(NET, layers=[folder])


def test_ported_layers_are_nodes_of_our_domain(net, folder, tmp_path):
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and not certificate.dynamic_batch and certificate.domains == ["cuffi"]
    blobs = "conv affine sum product pool positive more priors all"
    assert " ".join(b["name"] for b in certificate.blobs) == blobs
    assert list(certificate.ported) == ["Affine", "Pair", "Ramp", "Positive"]
    assert "Affine (caffe_zoo), " in str(certificate) and "cuffi.OnnxSession(file, layers=" in str(
        certificate
    )
    model = onnx.load(tmp_path / "net.onnx")
    onnx.checker.check_model(model)
    ours = [node for node in model.graph.node if node.domain == "cuffi"]
    assert [node.op_type for node in ours] == ["Affine", "Pair", "Ramp", "Positive"]
    assert "cuffi.OnnxSession" in model.doc_string and str(tmp_path.parent) not in str(model)
    said = json.loads((tmp_path / "net.onnx.json").read_text())
    assert said["runs"] == certificate.runs and said["ported"]["Ramp"] == "caffe_zoo"


def test_a_session_runs_them(net, folder, tmp_path, capfd):
    """Other values than the certificate's, so another number of positive ones."""
    net.to_onnx(tmp_path / "net.onnx")
    assert capfd.readouterr() == ("", "")
    session = OnnxSession(tmp_path / "net.onnx", layers=[folder])
    counts = set()
    for seed in range(3):
        data = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(seed)) * 3
        wanted = {name: value.detach().numpy() for name, value in net(data).items()}
        found = session.run(None, {"data": data.numpy()})
        for name, value in zip(net.outputs, found, strict=True):
            np.testing.assert_allclose(value, wanted[name], rtol=1e-5, atol=1e-5)
        (more,) = session.run(["more"], {"data": data.numpy()})
        assert np.array_equal(more, found[net.outputs.index("more")])
        counts.add(len(more))
    assert len(counts) > 1


def test_a_difference_of_a_ported_layer_is_reported(net, tmp_path, monkeypatch):
    """The layers' own code runs: with another blob, the blobs behind it differ."""
    from cuffi.nets.net import onnx as module

    compare = module._compare

    def spoiled(net, *rest):
        with torch.no_grad():
            net.affine.blob0.add_(1)
        compare(net, *rest)

    monkeypatch.setattr(module, "_compare", spoiled)
    certificate = net.to_onnx(tmp_path / "net.onnx")
    differ = {b["name"] for b in certificate.blobs if b["difference"] > 1e-5}
    assert not certificate.agrees and "conv" not in differ and {"affine", "sum", "product", "all"} <= differ


def test_a_file_without_ported_layers_runs_in_one_part(tmp_path):
    net = caffe_net(NET[: NET.index('layer { name: "affine"')])
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.ported == {} and certificate.runs == "" and "cuffi" not in str(certificate)
    session, data = OnnxSession(tmp_path / "net.onnx"), torch.randn(2, 3, 8, 8)
    (found,) = session.run(None, {"data": data.numpy()})
    np.testing.assert_allclose(found, net(data).detach().numpy(), rtol=1e-5, atol=1e-5)
    assert len(session._steps) == 1


def test_what_a_session_refuses(net, folder, tmp_path, monkeypatch):
    net.to_onnx(tmp_path / "net.onnx")
    with pytest.raises(CaffeValueError, match=r"no layer of type '\w+' is here; its folder was 'caffe_zoo'"):
        OnnxSession(tmp_path / "net.onnx")
    with (
        monkeypatch.context() as without,
        pytest.raises(CaffeRuntimeError, match="OnnxSession needs the package onnxr"),
    ):
        without.setitem(sys.modules, "onnxruntime", None)
        OnnxSession(tmp_path / "net.onnx", layers=[folder])
    session = OnnxSession(tmp_path / "net.onnx", layers=[folder])
    with pytest.raises(CaffeValueError, match="inputs are missing: data"):
        session.run(None, {"image": np.zeros((1, 3, 8, 8), np.float32)})
    with pytest.raises(CaffeValueError, match=r"no outputs: conv5\. There are: all, more, priors"):
        session.run(["conv5"], {"data": np.zeros((1, 3, 8, 8), np.float32)})


def test_a_layer_whose_values_change_is_refused(folder, tmp_path):
    net = caffe_net(INPUT + 'layer { name: "r" type: "Running" bottom: "data" top: "r" }', layers=[folder])
    with pytest.raises(
        CaffeRuntimeError, match="Running cannot be part of a graph: its Forward writes to blob0"
    ):
        net.to_onnx(tmp_path / "net.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["layers"]


def test_a_ported_layer_of_the_other_phase_does_not_matter(folder, tmp_path):
    trained = 'layer { name: "r" type: "Ramp" bottom: "conv" top: "r" include { phase: TRAIN } }'
    net = caffe_net(NET[: NET.index('layer { name: "affine"')] + trained, layers=[folder])
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and certificate.dynamic_batch and certificate.ported == {}


def test_traced_for_onnx(folder, tmp_path):
    """torch.onnx.export(dynamo=False) says what to use instead, for a net as a whole and for its ported layers."""
    net = caffe_net(NET[: NET.index('layer { name: "pair"')], layers=[folder])
    with (
        warnings.catch_warnings(record=True) as said,
        pytest.raises(torch.onnx.errors.UnsupportedOperatorError),
    ):
        warnings.simplefilter("always")
        torch.onnx.export(net.eval(), (torch.rand(1, 3, 8, 8),), tmp_path / "net.onnx", dynamo=False)
    texts = [str(one.message) for one in said]
    assert any(
        "prototxt: torch.onnx.export(dynamo=False) fixes" in t and "net.to_onnx(path)" in t for t in texts
    )
    assert any("ONNX has no operator like" in t and "Affine" in t for t in texts)
