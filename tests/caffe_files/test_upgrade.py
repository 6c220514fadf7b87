"""Caffe's older formats give the same nets as today's format."""

import pytest

from cuffi.base import CaffeValueError
from cuffi.caffe_files.parameters import read_fields
from cuffi.caffe_files.prototxt import parse
from cuffi.caffe_files.upgrade import upgraded, v2_type
from cuffi.nets.net.messages import STOCK


def told(node) -> list:
    return [(f.name, told(f.value) if hasattr(f.value, "fields") else f.value) for f in node.fields]


def layers(text: str) -> list:
    return [told(layer) for layer in upgraded(parse(text), "net")]


@pytest.mark.parametrize(
    "word, wanted",
    [
        ("RELU", "ReLU"), ("SOFTMAX_LOSS", "SoftmaxWithLoss"), ("SMOOTH_L1_LOSS", "SmoothL1Loss"),
        ("POOLING", "Pooling"), ("SmoothL1Loss", "SmoothL1Loss"), ("Own_Type", "Own_Type"),
    ],
)  # fmt: skip
def test_types(word, wanted):
    assert v2_type(word) == wanted


def test_todays_format_is_left_alone():
    text = 'layer { name: "a" type: "ReLU" } layer { name: "b" }'
    assert upgraded(parse(text), "net") == parse(text).nodes("layer")


@pytest.mark.parametrize("rates", range(4))
@pytest.mark.parametrize("decays", range(4))
def test_rates_become_messages(rates, decays):
    """Their number is that of the longest list."""
    lists = "".join(f"blobs_lr: {i} " for i in range(rates)) + "".join(
        f"weight_decay: {i}.5 " for i in range(decays)
    )
    (found,) = layers(
        f'layers {{ name: "a" {lists} type: RELU top: "t" param: "shared" blob_share_mode: STRICT }}'
    )
    params = [
        [("name", '"shared"'), ("share_mode", "STRICT")] * (i == 0) + [("lr_mult", f"{i}")] * (i < rates)
        + [("decay_mult", f"{i}.5")] * (i < decays)
        for i in range(max(rates, decays, 1))
    ]  # fmt: skip
    assert found == [("name", '"a"'), ("type", '"ReLU"'), ("top", '"t"'), *(("param", p) for p in params)]


def v0(name, kind, inside="", bottom="x", top="y"):
    return f'layers {{ layer {{ name: "{name}" type: "{kind}" {inside} }} bottom: "{bottom}" top: "{top}" }}'


# BVLC's UpgradeV0LayerParameter: V0 type, fields; today's type, messages. {} of fields that the type does not have.
FIRST = [
    ("conv", "num_output: 3 kernelsize: 05 biasterm: false pad: 1 stride: 2 group: 1 bias_filler { }", "Convolution",
     {"convolution_param": "num_output: 3 kernel_size: 05 bias_term: false pad: 1 stride: 2 group: 1 bias_filler { }"}),
    ("innerproduct", 'num_output: 3 weight_filler { type: "xavier" }', "InnerProduct",
     {"inner_product_param": 'num_output: 3 weight_filler { type: "xavier" }'}),
    ("pool", "pool: AVE kernelsize: 2 stride: 3 pad: 1", "Pooling",
     {"pooling_param": "pool: AVE kernel_size: 2 stride: 3 pad: 1"}),
    ("dropout", "dropout_ratio: 0.2", "Dropout", {"dropout_param": "dropout_ratio: 0.2"}),
    ("lrn", "local_size: 3 alpha: 1 beta: 2 k: 3", "LRN", {"lrn_param": "local_size: 3 alpha: 1 beta: 2 k: 3"}),
    ("concat", "concat_dim: 0", "Concat", {"concat_param": "concat_dim: 0"}),
    ("data", 'source: "s" batchsize: 2 rand_skip: 1 scale: 0.5 meanfile: "m" cropsize: 7 mirror: true', "Data",
     {"data_param": 'source: "s" batch_size: 2 rand_skip: 1',
      "transform_param": 'scale: 0.5 mean_file: "m" crop_size: 7 mirror: true'}),
    ("images", "batchsize: 2 shuffle_images: true new_height: 8 new_width: 9 rand_skip: 1", "ImageData",
     {"image_data_param": "batch_size: 2 shuffle: true new_height: 8 new_width: 9 rand_skip: 1"}),
    ("window_data", "det_fg_threshold: 1 det_bg_threshold: 2 det_fg_fraction: 3 det_context_pad: 4", "WindowData",
     {"window_data_param": "fg_threshold: 1 bg_threshold: 2 fg_fraction: 3 context_pad: 4"}),
    ("hdf5_data", 'source: "s" batchsize: 2', "HDF5Data", {"hdf5_data_param": 'source: "s" batch_size: 2'}),
    ("infogain_loss", 'source: "s"', "InfogainLoss", {"infogain_loss_param": 'source: "s"'}),
    ("softmax_loss", "kernelsize: 3 new_num: 1", "SoftmaxWithLoss", {}),
    *((word, "", v2, {}) for word, v2 in (
        ("accuracy", "Accuracy"), ("bnll", "BNLL"), ("euclidean_loss", "EuclideanLoss"), ("flatten", "Flatten"),
        ("hdf5_output", "HDF5Output"), ("im2col", "Im2col"), ("multinomial_logistic_loss", "MultinomialLogisticLoss"),
        ("relu", "ReLU"), ("sigmoid", "Sigmoid"), ("softmax", "Softmax"), ("split", "Split"), ("tanh", "TanH"),
    )),
]  # fmt: skip


@pytest.mark.parametrize("kind, inside, v2, messages", FIRST, ids=[row[0] for row in FIRST])
def test_the_first_format(kind, inside, v2, messages):
    notes = []
    text = f"{inside} blobs_lr: 2 weight_decay: 0"
    (layer,) = upgraded(parse(v0("n", kind, text)), "net", notes)
    found = {f.name: f.value for f in layer.fields}
    param = found.pop("param")
    assert told(param) == [("lr_mult", "2"), ("decay_mult", "0")]
    plain = {name: value for name, value in found.items() if isinstance(value, str)}
    assert plain == {"bottom": '"x"', "top": '"y"', "name": '"n"', "type": f'"{v2}"'}
    assert {n: told(v) for n, v in found.items() if n not in plain} == {
        name: told(parse(fields)) for name, fields in messages.items()
    }
    ignored = ["kernelsize", "new_num"] if kind == "softmax_loss" else []
    assert notes == [
        f"line 1: {name} of a layer of type '{kind}' is ignored, as in Caffe" for name in ignored
    ]
    message = STOCK.message("LayerParameter")
    assert read_fields(layer, message) == []  # all of them are fields of stock Caffe


def test_layer_beside_the_first_format_is_ignored():
    """BVLC's UpgradeV0Net copies only `layers`; UpgradeV1Net refuses both in one file, and so does this."""
    notes = []
    (layer,) = upgraded(parse('layer { name: "b" type: "ReLU" }\n' + v0("a", "relu")), "net", notes)
    assert layer.value("name") == "a"
    assert notes == ["line 1: `layer` beside Caffe's first format is ignored, as in Caffe"]


def test_fields_keep_their_lines():
    """Also of a type that V1 writes in its own place, and of V0, whose fields move into messages."""
    text = """layers {
  layer {
    name: "c"
    type: "conv"
    num_output: 3
    kernelsize: 3
    blobs_lr: 1
    stride: 2
  }
  bottom: "x"
  top: "y"
}"""
    for line, (old, new, said) in enumerate(
        [("num_output: 3", "num_output: x", "num_output: Couldn't parse integer: x"),
         ("kernelsize: 3", "kernelsize: x", "kernel_size: Couldn't parse integer: x"),
         ("blobs_lr: 1", "blobs_lr: x", "blobs_lr: expected a number, got x"),
         ("stride: 2", "stride: -", "expected a value")], 5):  # fmt: skip
        with pytest.raises(CaffeValueError, match=f"line {line}: {said}"):
            read_fields(upgraded(parse(text.replace(old, new)), "net")[0], STOCK.message("LayerParameter"))


@pytest.mark.parametrize("kind, param", [("conv", "convolution_param"), ("pool", "pooling_param")])
@pytest.mark.parametrize("pad", ["", "pad: 4"])
def test_padding_goes_into_the_layer_after_it(kind, param, pad):
    """That layer reads what the padding read, and its own pad is replaced. Layers elsewhere stay as they are."""
    text = v0("q", "padding", pad, "x", "padded") + v0("c", kind, "pad: 1 stride: 2", "padded", "y")
    text += v0("e", kind, "pad: 1", "x", "w")
    text += v0("r", "relu", "", "w", "padded") + v0(
        "f", kind, "pad: 1", "padded", "v"
    )  # no padding made it last
    after, aside, _, later = map(dict, layers(text))
    assert after[param] == [("stride", "2"), ("pad", "4" if pad else "0")]
    assert after["bottom"] == '"x"' and aside[param] == [("pad", "1")]
    assert later["bottom"] == '"padded"' and later[param] == [("pad", "1")]


def test_statistics_of_2015_are_not_trained():
    """UpgradeNetBatchNorm: three params, regardless of their values."""

    def layer(params):
        return parse('layer { type: "BatchNorm" ' + 'param { lr_mult: 1 name: "n" } ' * params + "}")

    (found,) = upgraded(layer(3), "net")
    assert [told(p) for p in found.nodes("param")] == [
        [("name", '"n"'), ("lr_mult", "0"), ("decay_mult", "0")]
    ] * 3
    assert upgraded(layer(2), "net") == layer(2).nodes("layer")


@pytest.mark.parametrize(
    "text, said",
    [
        ('\nlayer { }\nlayers { }', "net, line 3: `layer` and `layers` in one file are two formats"),
        ('layers { name: "a" }', "net, line 1: a layer without a type"),
        (v0("a", "relu") + '\nlayers { type: RELU }', "net, line 2: `layers` with and without `layer`"),
        ('layers { layer { type: "relu"\nstrde: 2 } }', "net, line 2: a layer of Caffe's first format has no 'strde'"),
        (v0("q", "padding", "pad: 1", "x", "p") + v0("r", "relu", "", "p", "y"),
         "net, line 1: padding before a layer of type 'relu'"),
        (v0("q", "padding", "pad: 1", "x", "p") + v0("c", "conv", "", 'p" bottom: "z', "y"),
         "net, line 1: padding is for layers of one bottom and one top"),
        ("layers { type: RELU\nparam { lr_mult: 0 } }",
         "net, line 2: param: expected a value, got a message in braces. `param { ... }` is of today's format"),
        ("layers { type: RELU\nparam: 3 }", "net, line 2: param: expected a string, got 3"),
        ("layers { type: RELU\nblobs_lr: 1\nblobs_lr: x }", "net, line 3: blobs_lr: expected a number, got x"),
        ("layers { type: RELU\nweight_decay { } }", "net, line 2: weight_decay: expected a value, got a message"),
    ],
)  # fmt: skip
def test_what_is_no_format(text, said):
    with pytest.raises(CaffeValueError) as raised:
        layers(text)
    assert str(raised.value).startswith(said)
