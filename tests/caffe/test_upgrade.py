"""Caffe's older formats as today's, by the words of today's."""

import pytest

from layers._caffe.prototxt import parse
from layers._caffe.upgrade import upgraded, v2_type
from layers._runtime import CaffeValueError


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
    """There are as many as the longest of the lists has."""
    lists = "".join(f"blobs_lr: {i} " for i in range(rates)) + "".join(
        f"weight_decay: {i}5 " for i in range(decays)
    )
    found = layers(
        f'layers {{ name: "a" {lists} type: RELU top: "t" param: "shared" blob_share_mode: STRICT }}'
    )
    params = [
        [("name", '"shared"')] * (i == 0) + [("lr_mult", f"{i}")] * (i < rates)
        + [("decay_mult", f"{i}5")] * (i < decays) + [("share_mode", "STRICT")] * (i == 0)
        for i in range(max(rates, decays, 1))
    ]  # fmt: skip
    assert found == [[("name", '"a"'), ("top", '"t"'), ("type", '"ReLU"'), *(("param", p) for p in params)]]


OLDEST = """layers { layer { name: "%s" type: "%s" %s } bottom: "%s" top: "%s" }"""


def test_the_first_format():
    text = OLDEST % ("c", "conv", "num_output: 3 kernelsize: 5 blobs_lr: 2 biasterm: false", "x", "y")
    text += OLDEST % ("p", "pool", "pool: MAX kernelsize: 2 stride: 3", "y", "z")
    text += OLDEST % ("r", "relu", "", "z", "z") + OLDEST % ("d", "data", "source: 1 batchsize: 2", "z", "v")
    conv = [("num_output", "3"), ("kernel_size", "5"), ("bias_term", "false")]
    pool = [("pool", "MAX"), ("kernel_size", "2"), ("stride", "3")]

    def wanted(name, kind, bottom, top, *more):
        return [
            ("bottom", f'"{bottom}"'),
            ("top", f'"{top}"'),
            ("name", f'"{name}"'),
            *more,
            ("type", f'"{kind}"'),
        ]

    assert layers(text) == [
        [*wanted("c", "Convolution", "x", "y", ("convolution_param", conv)), ("param", [("lr_mult", "2")])],
        wanted("p", "Pooling", "y", "z", ("pooling_param", pool)),
        wanted("r", "ReLU", "z", "z"),
        wanted("d", "Data", "z", "v"),
    ]


@pytest.mark.parametrize("kind, param", [("conv", "convolution_param"), ("pool", "pooling_param")])
@pytest.mark.parametrize("pad", ["", "pad: 4"])
def test_padding_goes_into_the_layer_after_it(kind, param, pad):
    """That layer reads what the padding read, and its own pad is replaced. Layers elsewhere stay as they are."""
    text = OLDEST % ("q", "padding", pad, "x", "padded") + OLDEST % (
        "c",
        kind,
        "pad: 1 stride: 2",
        "padded",
        "y",
    )
    text += OLDEST % ("e", kind, "pad: 1", "x", "w")
    after, aside = layers(text)
    assert dict(after)[param] == [("stride", "2"), ("pad", "4" if pad else "0")]
    assert dict(after)["bottom"] == '"x"' and dict(aside)[param] == [("pad", "1")]


@pytest.mark.parametrize(
    "text, said",
    [
        ('\nlayer { }\nlayers { }', "net, line 3: `layer` and `layers` in one file are two formats"),
        ('layers { name: "a" }', "net, line 1: a layer without a type"),
        (OLDEST % ("a", "relu", "", "x", "y") + '\nlayers { type: RELU }',
         "net, line 2: `layers` with and without `layer`"),
        ('layers { layer { type: "relu"\nstride: 2 } }',
         "net, line 2: a layer of type 'relu' of Caffe's first format has no"),
        (OLDEST % ("q", "padding", "pad: 1", "x", "p") + OLDEST % ("r", "relu", "", "p", "y"),
         "net, line 1: padding before a layer of type 'RELU'"),
    ],
)  # fmt: skip
def test_what_is_no_format(text, said):
    with pytest.raises(CaffeValueError) as raised:
        layers(text)
    assert str(raised.value).startswith(said)
