"""ONNX: the written file, run by onnxruntime, compared with the net."""

import copy
import itertools
import json
import sys
from typing import Any

import numpy as np
import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeTypeError, CaffeValueError, caffe_net

for name in ("onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name)
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's exporter, about itself

NET = """
input: "data" input_shape { dim: 1 dim: 3 dim: 12 dim: 12 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 group: 3 weight_filler { type: "msra" } } }
layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }
layer { name: "scale" type: "Scale" bottom: "conv" top: "conv" scale_param { bias_term: true } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "pool" type: "Pooling" bottom: "conv" top: "pool" pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool" top: "fc"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }
"""
SSD = """
input: "data" input_shape { dim: 1 dim: 4 dim: 5 dim: 5 } input: "image" input_shape { dim: 1 dim: 3 dim: 50 dim: 50 }
layer { name: "loc" type: "Convolution" bottom: "data" top: "loc"
  convolution_param { num_output: 12 kernel_size: 1 weight_filler { type: "msra" } } }
layer { name: "loc_perm" type: "Permute" bottom: "loc" top: "loc_perm" permute_param { order: [0, 2, 3, 1] } }
layer { name: "loc_flat" type: "Flatten" bottom: "loc_perm" top: "loc_flat" }
layer { name: "conf" type: "Convolution" bottom: "data" top: "conf"
  convolution_param { num_output: 9 kernel_size: 1 weight_filler { type: "msra" } } }
layer { name: "conf_perm" type: "Permute" bottom: "conf" top: "conf_perm" permute_param { order: [0, 2, 3, 1] } }
layer { name: "conf_lines" type: "Reshape" bottom: "conf_perm" top: "conf_lines"
  reshape_param { shape { dim: 0 dim: -1 dim: 3 } } }
layer { name: "softmax" type: "Softmax" bottom: "conf_lines" top: "softmax" softmax_param { axis: 2 } }
layer { name: "conf_flat" type: "Flatten" bottom: "softmax" top: "conf_flat" }
layer { name: "priors" type: "PriorBox" bottom: "data" bottom: "image" top: "priors"
  prior_box_param { min_size: 20 aspect_ratio: 2 flip: true variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 } }
layer { name: "found" type: "DetectionOutput" bottom: "loc_flat" bottom: "conf_flat" bottom: "priors" top: "found"
  detection_output_param { num_classes: 3 background_label_id: 0 nms_param { nms_threshold: 0.4 top_k: 50 }
    code_type: CENTER_SIZE keep_top_k: 20 confidence_threshold: 0.2 } }
"""


CONV = 'convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "msra" } }'
# Layers of the data or of one before: name, type, bottoms, tops, parameters.
LAYERS = f"""
prelu | PReLU | conv | prelu |
lrn | LRN | conv | lrn | lrn_param {{ local_size: 3 }}
pool | Pooling | conv | pool mask | pooling_param {{ pool: MAX kernel_size: 2 stride: 2 }}
up | Upsample | pool mask | up | upsample_param {{ scale: 2 }}
deconv | Deconvolution | pool | deconv | {CONV.replace("kernel_size: 3", "group: 8 stride: 2 kernel_size: 4")}
crop | Crop | deconv pool | crop | crop_param {{ axis: 2 offset: 1 }}
sum | Eltwise | prelu deconv | sum | eltwise_param {{ coeff: 1 coeff: -0.5 }}
cat | Concat | prelu sum | cat |
slice | Slice | cat | left right | slice_param {{ slice_point: 6 }}
power | Power | pool | power | power_param {{ power: 2 scale: 0.5 shift: 1 }}
ave | Pooling | conv | ave | pooling_param {{ pool: AVE kernel_size: 3 stride: 2 pad: 1 }}
sigmoid | Sigmoid | ave | sigmoid |
argmax | ArgMax | conv | argmax | argmax_param {{ axis: 1 }}
tile | Tile | pool | tile | tile_param {{ axis: 1 tiles: 2 }}
interp | Interp | pool | interp | interp_param {{ zoom_factor: 2 }}
reorg | Reorg | conv | reorg | reorg_param {{ stride: 2 }}
depthwise | DepthwiseConvolution | conv | depthwise | {CONV.replace("kernel_size", "group: 8 kernel_size")}
shuffle | ShuffleChannel | depthwise | shuffle | shuffle_channel_param {{ group: 4 }}
relu6 | ReLU6 | shuffle | relu6 |
all | Pooling | conv | all | pooling_param {{ pool: AVE global_pooling: true }}
axpy | Axpy | all conv prelu | axpy |
normalize | Normalize | conv | normalize | norm_param {{ across_spatial: false }}
mean | Reduction | normalize | mean | reduction_param {{ axis: 2 operation: MEAN }}
"""


def session(path):
    import onnxruntime

    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


@pytest.fixture
def net():
    torch.manual_seed(1)
    net = caffe_net(NET)
    with torch.no_grad():
        for blob in net.state_dict().values():
            blob.copy_(torch.rand_like(blob) + 0.1)
    return net


def test_a_file_has_the_blobs_names_and_any_batch(net, tmp_path):
    # A logit of size L has an error of about L * 2**-24, which is prob's relative error. The fixture's logits
    # reach 390: against the net in double, on 300 pictures, the file is off by up to 2.7e-4 and the net itself by
    # 1.0e-4. Small logits leave that rounding out, so that the tolerance below is strict.
    with torch.no_grad():
        net.fc.weight.div_(200)
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and certificate.dynamic_batch and certificate.domains == []
    assert [blob["name"] for blob in certificate.blobs] == ["conv", "pool", "fc", "prob"]
    written = session(tmp_path / "net.onnx")
    assert [i.name for i in written.get_inputs()] == ["data"]
    assert [o.name for o in written.get_outputs()] == ["prob"]
    images = torch.randn(50, 3, 12, 12)
    (found,) = written.run(None, {"data": images.numpy()})
    np.testing.assert_allclose(found, net(data=images).detach().numpy(), rtol=1e-5, atol=1e-8)
    exact = copy.deepcopy(net).double()(data=images.double()).detach().numpy()
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-8)
    said = json.loads((tmp_path / "net.onnx.json").read_text())
    assert said["agrees"] and len(said["blobs"]) == 4


def test_blobs_with_the_names_that_torch_gives(tmp_path):
    """Keras' layers are conv2d and conv2d_1. torch.export uses such names for its values, in another order."""
    layer = """layer { name: "TOP" type: "Convolution" bottom: "BOTTOM" top: "TOP"
      convolution_param { num_output: 3 kernel_size: 1 weight_filler { type: "msra" } } }
    layer { name: "TOP_relu" type: "ReLU" bottom: "TOP" top: "TOP" }
    """
    pairs = itertools.pairwise(("data", "conv2d_1", "conv2d"))
    net = caffe_net(
        NET.split("layer")[0] + "".join(layer.replace("TOP", b).replace("BOTTOM", a) for a, b in pairs)
    )
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and [blob["name"] for blob in certificate.blobs] == ["conv2d_1", "conv2d"]


def test_stock_and_fork_types(tmp_path):
    text = 'input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 12 }\n'
    text += f'layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv" {CONV} }}\n'
    for line in LAYERS.strip().splitlines():
        name, kind, bottoms, tops, parameters = (part.strip() for part in line.split("|"))
        ends = [f'bottom: "{b}"' for b in bottoms.split()] + [f'top: "{t}"' for t in tops.split()]
        text += f'layer {{ name: "{name}" type: "{kind}" {" ".join(ends)} {parameters} }}\n'
    torch.manual_seed(1)
    certificate = caffe_net(text, phase="TEST").to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and certificate.domains == [] and certificate.dynamic_batch, str(certificate)
    assert {"up", "left", "argmax", "interp", "reorg", "relu6", "axpy", "mean"} <= {
        b["name"] for b in certificate.blobs
    }


@pytest.mark.parametrize(
    ("ours", "wanted", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0),
        ([1.0, 40.2], [1.0, 40.0], 0.005),
        ([0.1, 0.3], [0.1, 0.2], 0.1),
        ([np.nan, 1.0], [np.nan, 1.0], 0),
        ([np.inf, 1.0], [np.inf, 1.0], 0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([0.0, 1.0], [np.nan, 1.0], np.inf),
        ([np.inf, 1.0], [0.0, 1.0], np.inf),
        ([np.inf, 1.0], [-np.inf, 1.0], np.inf),
        ([1.0, 1.0, 1.0], [1.0, 1.0], np.inf),
        ([], [], 0),
    ],
)
def test_differences(ours, wanted, difference):
    from cuffi.nets.net.onnx import _difference

    assert _difference(torch.tensor(ours), torch.tensor(wanted)) == pytest.approx(difference, rel=1e-4)


def test_a_difference_may_be_float32s_rounding(tmp_path):
    """A sigmoid of the difference of large numbers: two ways of adding differ by more than the tolerance."""
    from cuffi.nets.net.onnx import Certificate, _difference, _look_into, why

    torch.manual_seed(5)
    text = """input: "data" input_shape { dim: 1 dim: 4000 }
      layer { name: "fc" type: "InnerProduct" bottom: "data" top: "fc"
        inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 300 } } }
      layer { name: "prob" type: "Sigmoid" bottom: "fc" top: "prob" }"""
    net = caffe_net(text)
    with torch.no_grad():
        data = torch.rand(1, 4000)
        net.fc.bias -= net(data=data, blobs=["fc"])["fc"][0]  # where the sigmoid is steep
        wanted = net(data=data, blobs=["prob"])
        wide = copy.deepcopy(net).double()(data=data.double(), blobs=["prob"])["prob"]
        rounding = _difference(wanted["prob"], wide)
        assert rounding > 1e-4
        for factor, agrees in ((0, True), (5, True), (20, False)):
            found = {"prob": (wide + factor * rounding).float()}
            blob = {"name": "prob", "shape": [1, 3], "difference": 1.0}
            _look_into(net, [blob], [({"data": data}, found, wanted)])
            assert blob["net_to_double"] == rounding
            assert blob["file_to_double"] == pytest.approx(factor * rounding, abs=1e-6)
            certificate = Certificate("net.onnx", 20, False, "here", [blob])
            assert certificate.agrees is agrees and ("rounding in 1 of them" in str(certificate)) is agrees
            assert f"the net {rounding:.1e}" in why(blob) and why(blob) in str(certificate)


def test_detection_output_is_non_max_suppression(tmp_path):
    import onnx

    torch.manual_seed(3)
    net = caffe_net(SSD)
    certificate = net.to_onnx(tmp_path / "ssd.onnx")
    assert (
        certificate.agrees and len(next(b for b in certificate.blobs if b["name"] == "found")["shape"]) == 4
    )
    types = [node.op_type for node in onnx.load(tmp_path / "ssd.onnx").graph.node]
    assert "NonMaxSuppression" in types and "Loop" not in types
    written = session(tmp_path / "ssd.onnx")
    for seed in range(4):
        data = torch.randn(1, 4, 5, 5, generator=torch.Generator().manual_seed(seed)) * 2
        inputs = {"data": data, "image": torch.zeros(1, 3, 50, 50)}
        wanted = net(**inputs)
        given = {i.name: inputs[i.name].numpy() for i in written.get_inputs()}
        (found,) = written.run(["found"], given)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_roi_pooling_is_max_roi_pool(tmp_path):
    """Regions may lie outside of the image, or end before they begin. A cascade's pad_ratio widens them."""
    import onnx

    text = """input: "data" input_shape { dim: 2 dim: 3 dim: 20 dim: 30 } input: "rois" input_shape { dim: 7 dim: 5 }
      layer { name: "pool" type: "ROIPooling" bottom: "data" bottom: "rois" top: "pool"
        roi_pooling_param { pooled_h: 3 pooled_w: 4 spatial_scale: 0.4 pad_ratio: 0.1 } }"""
    net = caffe_net(text)
    assert net.to_onnx(tmp_path / "net.onnx").agrees
    assert "MaxRoiPool" in [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node]
    random = torch.Generator().manual_seed(4)
    rois = torch.rand(9, 5, generator=random) * 80 - 10
    rois[:, 0] = torch.arange(9) % 2
    data = torch.randn(2, 3, 20, 30, generator=random)
    (found,) = session(tmp_path / "net.onnx").run(None, {"data": data.numpy(), "rois": rois.numpy()})
    np.testing.assert_array_equal(found, net(data, rois).numpy())


def test_a_difference_is_reported(net, tmp_path, monkeypatch):
    """The certificate of another net's numbers does not agree."""
    from cuffi.nets.net import onnx as module

    compare = module._compare

    def spoiled(net, *rest):
        with torch.no_grad():
            net.fc.bias[0] += 1
        compare(net, *rest)

    monkeypatch.setattr(module, "_compare", spoiled)
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert not certificate.agrees and "NOT EQUAL" in str(certificate)
    differ = {b["name"] for b in certificate.blobs if b["difference"] > 1e-5}
    assert "fc" in differ and differ <= {"fc", "prob"}


def test_a_missing_package_is_named(net, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(
        RuntimeError, match="to_onnx needs the package onnxscript: pip install onnx onnxscript"
    ):
        net.to_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_numbers_and_places_that_are_refused_before_the_work(net, tmp_path):
    half, double, fresh = caffe_net(NET).half(), caffe_net(NET).double(), caffe_net(NET, phase="TRAIN")
    for wrong, path, kind, said in [
        (
            half,
            tmp_path / "y",
            CaffeTypeError,
            "prototxt: to_onnx: conv.weight is float16; .* call net.float",
        ),
        (double, tmp_path / "y", CaffeTypeError, "conv.weight is float64"),
        (net, tmp_path / "nowhere/y", FileNotFoundError, "nowhere/y"),
        (net, tmp_path, IsADirectoryError, tmp_path.name),
        (net, "", CaffeValueError, "to_onnx: path: expected a path, got ''"),
        (net, 3, CaffeTypeError, "to_onnx: path: expected a path, got int 3"),
        (caffe_net(NET).to("meta"), tmp_path / "y", CaffeRuntimeError, "conv.weight is on the device meta"),
        (fresh, tmp_path / "y", CaffeRuntimeError, "built only for phase TRAIN"),
    ]:
        with pytest.raises(kind, match=said):
            wrong.to_onnx(path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("type_name", ["Affine", "Ramp"])
def test_a_ported_layer_is_named(zoo, tmp_path, type_name):
    """With its line and what computes it by torch, of which the file then is made."""
    folder = tmp_path / "layers" / "ported"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        f'from {zoo.__name__} import {type_name}  # caffe_layer(__name__, "{type_name}")'
    )
    text = f'{NET}layer {{ name: "own" type: "{type_name}" bottom: "prob" top: "own" }}\n'
    line = text.count("\n")
    net = caffe_net(text, layers=[folder.parent])
    expected = rf"to_onnx: line {line}: 'own' \({type_name}\): a ported layer, .*types={{'{type_name}': your function}}"
    with pytest.raises(CaffeRuntimeError, match=expected):
        net.to_onnx(tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()

    class Tanh(torch.nn.Tanh):
        def top_shapes(self, shape):
            return [shape]

    net = caffe_net(text, layers=[folder.parent], types={type_name: lambda spec: Tanh()})
    assert net.to_onnx(tmp_path / "net.onnx").agrees


def test_a_ported_layer_of_a_fork_type_can_be_computed_by_torch(tmp_path):
    text = f'{NET}layer {{ name: "norm" type: "Normalize" bottom: "fc" top: "norm" }}\n'
    with pytest.raises(
        CaffeRuntimeError, match=r"a ported layer, .* caffe_net\(\.\.\., native={'Normalize': True}"
    ):
        caffe_net(text, native={"Normalize": False}).to_onnx(tmp_path / "net.onnx")
    assert caffe_net(text, native={"Normalize": True}).to_onnx(tmp_path / "net.onnx").agrees


def test_a_python_layer_is_named(tmp_path):
    (tmp_path / "twice.py").write_text(
        "import caffe\nclass Twice(caffe.Layer):\n"
        "    def setup(self, bottom, top): pass\n"
        "    def reshape(self, bottom, top): top[0].reshape(*bottom[0].data.shape)\n"
        "    def forward(self, bottom, top): top[0].data[...] = 2 * bottom[0].data\n"
    )
    python = """layer { name: "py" type: "Python" bottom: "fc" top: "py" %s
      python_param { module: "twice" layer: "Twice" } }"""
    options: dict[str, Any] = {"python_layers": True, "python_path": [tmp_path]}
    with pytest.raises(CaffeRuntimeError, match=r"to_onnx: line 12: 'py' \(Python\): it runs Python code"):
        caffe_net(NET + python % "", **options).to_onnx(tmp_path / "net.onnx")
    assert not (tmp_path / "net.onnx").exists()
    trained = caffe_net(NET + python % "include { phase: TRAIN }", **options)
    assert trained.to_onnx(tmp_path / "net.onnx").agrees


def test_the_net_stays_as_it_was(net, tmp_path):
    """Modes, and what autocast and inference mode would change."""
    net.train()
    net.bn.eval()
    with torch.autocast("cpu"), torch.inference_mode():
        certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and net.training and net.fc.training and not net.bn.training


def test_a_data_layer_becomes_the_inputs(tmp_path):
    data = """layer { name: "data" type: "Data" top: "data" top: "label"
      data_param { source: "x" batch_size: 2 } transform_param { crop_size: 12 } }\n"""
    loss = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc" bottom: "label" top: "loss" }\n'
    net = caffe_net(data + NET[NET.index("layer") :] + loss, phase="TEST")
    # torch 2.13 forgets the loss's sum where the batch is free, so it is not.
    certificate = net.to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and [b["name"] for b in certificate.blobs][-1] == "loss"
    assert [i.name for i in session(tmp_path / "net.onnx").get_inputs()] == ["data", "label"]


@pytest.mark.gpu
def test_weights_on_a_gpu_are_copied(net, tmp_path):
    certificate = net.cuda().to_onnx(tmp_path / "net.onnx")
    assert certificate.agrees and net.conv.weight.is_cuda


def test_torch_says_nothing_of_its_own(net, tmp_path, capfd):
    net.to_onnx(tmp_path / "net.onnx")
    assert capfd.readouterr() == ("", "")
