"""The geometry of a net's maps: the offsets of a Crop without offsets."""

from types import SimpleNamespace

import pytest

from cuffi import CaffeValueError, caffe_net
from cuffi.caffe_files.prototxt import Node
from cuffi.nets.net.coordinates import crop_offsets, map_of
from cuffi.nets.net.graph import Graph, Spec, Step


def step(kind: str, bottoms=(), *tops: int) -> Step:
    return Step(Spec(Node(1), kind, kind, (), ()), list(bottoms), list(tops))


def test_crop_without_an_offset_follows_the_geometry_of_the_net():
    text = """input: "data" input_shape { dim: 1 dim: 1 dim: 40 dim: 40 }
    layer { name: "c" type: "Convolution" bottom: "data" top: "c"
      convolution_param { num_output: 1 kernel_size: 3 pad: 10 } }
    layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "u" type: "Deconvolution" bottom: "p" top: "u"
      convolution_param { num_output: 1 kernel_size: 4 stride: 2 bias_term: false } }
    layer { name: "crop" type: "Crop" bottom: "u" bottom: "data" top: "crop" }"""
    net = caffe_net(text)
    # u's coordinate x lies at (x - 1.5) / 2 of p, at x - 1.5 + 0.5 of c and at x - 1 - 9 of the data
    assert net.crop.offsets == (10, 10) and "10" in net.notes[0]
    assert caffe_net(text, crop="stock").crop.offsets == (0, 0)
    old = caffe_net(text.replace('"Crop"', '"AutoCrop"'), crop="stock")
    assert type(old.crop).__name__ == "AutoCrop" and old.crop.offsets == (10, 10)
    with pytest.raises(CaffeValueError, match="geometry of the net does not determine"):
        caffe_net(text.replace('"Crop" bottom: "u"', '"AutoCrop" bottom: "p"'))
    assert caffe_net(
        text.replace('top: "crop" }', 'top: "crop" crop_param { offset: 3 } }')
    ).crop.offsets == (3, 3)


def image_layer(type_name, kernel, stride, pad, dilation):
    sizes = ("kernel", kernel), ("stride", stride), ("pad", pad)
    text = " ".join(f"{name}_h: {h} {name}_w: {w}" for name, (h, w) in sizes)
    if type_name == "Pooling":
        return f'type: "Pooling" pooling_param {{ {text} }}'
    return f'type: "{type_name}" convolution_param {{ num_output: 1 dilation: {dilation} {text} }}'


CHAINS = [
    [("Deconvolution", (5, 7), (1, 1), (0, 0), 1)],
    [("Deconvolution", (7, 5), (1, 1), (1, 2), 1)],
    [("Convolution", (1, 3), (1, 1), (4, 6), 1), ("Deconvolution", (3, 3), (1, 1), (0, 0), 1)],
    [("Convolution", (3, 3), (1, 1), (5, 7), 2)],
    [("Convolution", (3, 5), (2, 4), (9, 16), 1), ("Deconvolution", (5, 7), (2, 4), (1, 2), 1)],
    [("Pooling", (2, 4), (2, 4), (0, 0), 1), ("Deconvolution", (6, 8), (2, 4), (0, 0), 1)],
    [("Pooling", (3, 3), (1, 1), (1, 1), 1), ("Deconvolution", (3, 5), (1, 1), (0, 0), 1)],
]


@pytest.mark.parametrize("chain", CHAINS)
def test_offsets_of_a_crop_by_hand(chain):
    """An offset is the position of the image's first value in the last blob, if windows keep their centres."""
    text, at = 'input: "b0" input_shape { dim: 1 dim: 1 dim: 40 dim: 44 }\n', [0, 0]
    for i, layer in enumerate(chain):
        text += f'layer {{ name: "l{i}" bottom: "b{i}" top: "b{i + 1}" {image_layer(*layer)} }}\n'
        kind, kernel, stride, pad, dilation = layer
        for axis in range(2):
            centre = dilation * (kernel[axis] - 1) / 2 - pad[axis]
            there = kind == "Deconvolution"
            at[axis] = at[axis] * stride[axis] + centre if there else (at[axis] - centre) / stride[axis]
    text += f'layer {{ name: "relu" type: "ReLU" bottom: "b{len(chain)}" top: "r" }}\n'
    text += 'layer { name: "crop" type: "Crop" bottom: "r" bottom: "b0" top: "crop" }'
    assert at != [0, 0] and caffe_net(text).crop.offsets == tuple(at)


def geometry(kernel=3, stride=1, pad=0, dilation=1, whole=False):
    """A convolution of one geometry along the first axis, and of one that keeps all along the second."""
    sizes = dict(kernel=(kernel, 1), stride=(stride, 1), pad=(pad, 0), dilation=(dilation, 1))
    return SimpleNamespace(is_set_up=True, whole=whole, **sizes)


@pytest.mark.parametrize(
    "kind, module, offsets",
    [
        ("Convolution", geometry(pad=3), (2, 0)),
        ("Convolution", geometry(pad=1), (0, 0)),
        ("Convolution", geometry(pad=4, dilation=2), (2, 0)),
        ("Pooling", geometry(pad=2), (1, 0)),
        ("Crop", SimpleNamespace(is_set_up=True, offsets=(9, -5, 0)), (5, 0)),
        ("ReLU", None, (0, 0)),
        # Before the first pixel, between two pixels, and pixels of another size.
        ("Convolution", geometry(pad=0), None),
        ("Convolution", geometry(kernel=4, pad=3), None),
        ("Convolution", geometry(stride=2, pad=1), None),
        # What tells no geometry.
        ("Pooling", geometry(pad=3, whole=True), None),
        ("Convolution", SimpleNamespace(**vars(geometry(pad=3)) | {"kernel": (3, 1, 1)}), None),
        ("Crop", SimpleNamespace(is_set_up=True, offsets=(5,)), None),
        ("InnerProduct", geometry(pad=3), None),
    ],
)
def test_what_a_layer_between_says_of_a_crops_offsets(kind, module, offsets):
    between, crop = step(kind, [0], 1), step("Crop", [1, 0], 2)
    graph = Graph([between, crop])
    assert crop_offsets(graph, crop, {between.spec: module}) == offsets
    # Of a Crop's second bottom the first one's geometry says nothing.
    crop.bottoms = [1, 9]
    assert crop_offsets(graph, crop, {between.spec: module}) is None


def test_a_crop_knows_nothing_of_layers_that_are_not_set_up():
    """The geometry of a fork's code is unknown, too."""
    convolution = step("Convolution")
    module = SimpleNamespace(is_set_up=True, kernel=(3, 5), stride=(2, 1), pad=(0, 1))
    assert map_of(convolution, {}, 0) is None
    assert map_of(convolution, {convolution.spec: module}, 0) == (2, 1)
    assert map_of(convolution, {convolution.spec: module}, 1) == (1, 1)
    module.is_set_up = False
    assert map_of(convolution, {convolution.spec: module}, 0) is None
