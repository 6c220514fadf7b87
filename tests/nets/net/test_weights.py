"""Weights: .caffemodel of both formats and .caffemodel.h5 into a net and back."""

import random
import struct
from typing import Any

import numpy as np
import pytest
import torch
from support.weights import TEXT, add_blob, message_of, net_with, same
from support.wire import field

from cuffi import CaffeValueError, caffe_net
from cuffi.caffe_files.caffemodel import mean_image, stored_layers
from cuffi.nets.net.messages import STOCK


def older(message, format: str) -> bytes:
    """The same layers in the formats of 2014, `layers`, and of 2013, a message within each of these."""
    name, blobs = (4, 6) if format == "layers" else (1, 50)
    layers = []
    for layer in message.layer:
        inside = field(name, layer.name) + b"".join(field(blobs, b.SerializeToString()) for b in layer.blobs)
        layers.append(field(2, inside if format == "layers" else field(1, inside)))
    return b"".join(layers)


@pytest.mark.parametrize("format", ["layer", "layers", "v0"])
@pytest.mark.parametrize("legacy", [True, False])
def test_files_that_protobuf_wrote(tmp_path, format, legacy):
    first, path = net_with(), tmp_path / "a.caffemodel"
    message = message_of(first, legacy=legacy)
    path.write_bytes(message.SerializeToString() if format == "layer" else older(message, format))
    assert same(caffe_net(TEXT, path), first)


def test_doubles(tmp_path):
    first, path = net_with(dtype=torch.float64), tmp_path / "a.caffemodel"
    path.write_bytes(message_of(first, double=True).SerializeToString())
    second = caffe_net(TEXT).double()
    second.load_caffemodel(path)
    assert same(second, first)


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    first, path = net_with(), tmp_path / "a.caffemodel.h5"
    with h5py.File(path, "w") as file:
        for name, module in first.layers.items():
            for i, blob in enumerate(module.present_blobs()):
                file[f"data/{name}/{i}"] = getattr(module, blob).detach().numpy()
    assert same(caffe_net(TEXT, path), first)
    with h5py.File(path, "w") as file:
        file["other"] = 1
    with pytest.raises(CaffeValueError, match="no group 'data'"):
        caffe_net(TEXT, path)
    with pytest.raises(CaffeValueError, match=r"a.caffemodel.h5: HDF5 is read, and not written"):
        first.save_caffemodel(path)
    # The name does not decide.
    first.save_caffemodel(tmp_path / "a.caffemodel")
    assert same(caffe_net(TEXT, (tmp_path / "a.caffemodel").rename(tmp_path / "b.h5")), first)


def test_what_was_not_matched_is_said_in_both_directions(tmp_path):
    first, path = net_with(), tmp_path / "a.caffemodel"
    first.save_caffemodel(path)
    renamed = TEXT.replace('name: "ip"', 'name: "ip2"')
    with pytest.warns(UserWarning, match="no weights for ip2.*not in the net, ignored: ip$"):
        net = caffe_net(renamed, path)
    assert torch.equal(net.conv.weight, first.conv.weight)
    report = net.load_caffemodel(path)
    assert (report.loaded, report.missing, report.unused) == (["conv", "bn"], ["ip2"], ["ip"])


def test_parameters_that_another_layer_brought_are_not_missing(tmp_path):
    """Only the first layer is in the file. The others share all of its parameters, one, or none."""
    layer = 'layer {{ name: "{0}" type: "InnerProduct" bottom: "x" top: "{0}" {1}'
    layer += "inner_product_param {{ num_output: 3 }} }}\n"
    w, b = 'param { name: "w" } ', 'param { name: "b" } '
    text = 'input: "x" input_shape { dim: 2 dim: 4 }\n'
    first, path = caffe_net(text + layer.format("first", w + b)), tmp_path / "a.caffemodel"
    first.save_caffemodel(path)
    others = {"both": w + b, "one": w + 'param { name: "own" } ', "none": ""}
    text += layer.format("first", w + b) + "".join(layer.format(*other) for other in others.items())
    with pytest.warns(
        UserWarning, match="loaded the weights of 1 layers; no weights for one, none: they have their"
    ):
        net = caffe_net(text, path)
    report = net.load_caffemodel(path)
    assert (report.loaded, report.missing, report.unused) == (["first"], ["one", "none"], [])
    layers: Any = net.layers
    for name in ("first", "both"):
        assert torch.equal(layers[name].weight, first.first.weight)
        assert torch.equal(layers[name].bias, first.first.bias)
    assert torch.equal(net.one.weight, first.first.weight) and net.one.bias is not net.both.bias


def test_weights_of_another_shape_are_refused(tmp_path):
    first, path = net_with(), tmp_path / "a.caffemodel"
    first.save_caffemodel(path)
    with pytest.raises(
        CaffeValueError, match=r"'ip': blob 'weight' is \[5, 64\] in the file and \[6, 64\].*line 4"
    ):
        caffe_net(TEXT.replace("num_output: 5", "num_output: 6"), path)
    with pytest.raises(CaffeValueError, match="'conv': 2 blobs in the file, 1 in"):
        caffe_net(TEXT.replace("num_output: 4", "num_output: 4 bias_term: false"), path)


def test_a_file_of_another_net_names_each_layer_that_differs(tmp_path):
    net_with().save_caffemodel(path := tmp_path / "a.caffemodel")
    net = caffe_net(TEXT.replace("num_output: 5", "num_output: 6").replace("num_output: 4", "num_output: 7"))
    before = {name: blob.clone() for name, blob in net.state_dict().items()}
    with pytest.raises(CaffeValueError) as said:
        net.load_caffemodel(path)
    assert [line.split(":")[0].strip() for line in str(said.value).removeprefix(f"{path}: ").splitlines()] == [
        "'conv'", "'bn'", "'ip'"]  # fmt: skip
    assert all(torch.equal(blob, before[name]) for name, blob in net.state_dict().items())


@pytest.mark.parametrize(
    "legacy, shape, fits",
    [
        (False, (4, 3, 1, 7), True), (False, (4, 3, 7, 1), False), (False, (4, 3, 7), False),
        (False, (1, 4, 3, 1, 7), False), (False, (4, 21), False),
        (True, (4, 3, 1, 7), True), (True, (4, 3, 7, 1), False), (True, (1, 4, 3, 7), False),
    ],
)  # fmt: skip
def test_shapes_are_compared_as_caffe_does(tmp_path, legacy, shape, fits):
    """The same shape, where an older file has num, channels, height and width, too. Axes of 1 are axes."""
    text = """input: "x" input_shape { dim: 1 dim: 3 dim: 5 dim: 9 } layer { name: "c" type: "Convolution"
      bottom: "x" top: "c" convolution_param { num_output: 4 kernel_h: 1 kernel_w: 7 bias_term: false } }"""
    message, path = STOCK.message("NetParameter"), tmp_path / "a.caffemodel"
    values = np.arange(84, dtype=np.float32)
    add_blob(message.layer.add(name="c"), values, legacy=legacy, shape=shape)
    path.write_bytes(message.SerializeToString())
    if fits:
        assert np.array_equal(caffe_net(text, path).c.weight.detach().numpy().ravel(), values)
    else:
        with pytest.raises(
            CaffeValueError, match=r"'c': blob 'weight' is \[.*\] in the file and \[4, 3, 1, 7\] in"
        ):
            caffe_net(text, path)


@pytest.mark.parametrize(
    "shape, fits", [((1, 1, 5, 64), True), ((1, 5, 1, 64), False), ((5, 64, 1, 1), False)]
)
def test_legacy_shapes_have_leading_ones_alone(tmp_path, shape, fits):
    message, path, net = message_of(net_with(), legacy=True), tmp_path / "a.caffemodel", net_with(1)
    blob = message.layer[2].blobs[0]
    blob.num, blob.channels, blob.height, blob.width = shape
    blob.shape.dim.extend([5, 64])  # Caffe does not look at it
    path.write_bytes(message.SerializeToString())
    if fits:
        net.load_caffemodel(path)
        assert np.array_equal(net.ip.weight.detach().numpy().ravel(), blob.data)
    else:
        with pytest.raises(CaffeValueError, match=r"'ip': blob 'weight' is"):
            net.load_caffemodel(path)


def test_blobs_of_another_forks_type_are_named(tmp_path):
    message, path = message_of(net_with()), tmp_path / "a.caffemodel"
    for _ in range(2):
        add_blob(message.layer[1], np.ones(4, np.float32))
    path.write_bytes(message.SerializeToString())
    with pytest.raises(
        CaffeValueError,
        match=r"'bn': 5 blobs in the file, 3 in .*NVCaffe's has mean, variance, factor, scale and bias",
    ):
        caffe_net(TEXT, path)


def test_a_mean_file(tmp_path):
    path, values = tmp_path / "mean.binaryproto", np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    blob = STOCK.message("BlobProto")
    blob.num, blob.channels, blob.height, blob.width = values.shape
    blob.data.extend(values.ravel().tolist())
    path.write_bytes(blob.SerializeToString())
    assert np.array_equal(mean_image(path).numpy(), values[0])
    net_with().save_caffemodel(path)
    with pytest.raises(CaffeValueError, match=r"mean.binaryproto: not a mean image: no values in it"):
        mean_image(path)


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "the file is empty"),
        (b"\x00" * 50, "not a .caffemodel"),
        (b"<!DOCTYPE html>\n<html>", "it is text, and begins with '<!DOCTYPE html>'"),
        (b"PK\x03\x04" + b"\x00" * 50, "it is a zip archive, as torch.save writes"),
        (b"\x1f\x8b" + b"\x00" * 50, "it is a gzip file: unpack it"),
        (b"\x0a\x04name", "no layers in it"),
        (b"\xa2\x06\x7f", "a field of 127 bytes where 0 are left"),
        (b"\xa2\x06\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "where 0 are left"),
        (b"\xff" * 40, "a number without its end"),
    ],
)
def test_files_that_are_no_weights(tmp_path, data, words):
    path = tmp_path / "a.caffemodel"
    path.write_bytes(data)
    with pytest.raises(CaffeValueError, match=words):
        caffe_net(TEXT, path)


def test_a_blob_whose_shape_lies(tmp_path):
    path = tmp_path / "a.caffemodel"
    for dims in ([4, 3, 3, 4], [1 << 40, 1 << 40], [-1, -108], [108] * 40):
        message = message_of(net_with())
        message.layer[0].blobs[0].shape.dim[:] = dims
        path.write_bytes(message.SerializeToString())
        with pytest.raises(CaffeValueError, match=r"a\.caffemodel: not a \.caffemodel: .*a blob"):
            caffe_net(TEXT, path)


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "a.caffemodel"
    net_with().save_caffemodel(path)
    data = path.read_bytes()
    for size in random.Random(0).sample(range(1, len(data)), 60):
        path.write_bytes(data[:size])
        try:  # a file that ends behind a layer is whole, but has fewer
            assert sum(bool(layer.blobs) for layer in stored_layers(path)) < 3
        except CaffeValueError as error:
            assert "a.caffemodel: not a .caffemodel" in str(error)


def test_unpacked_numbers_are_read(tmp_path):
    """Before 2014 repeated floats were written one by one."""

    def tagged(number, content):
        return bytes([number << 3 | 2, len(content)]) + content

    values = [1.5, -2.0, 3.25]
    blob = b"".join(bytes([5 << 3 | 5]) + struct.pack("<f", v) for v in values)
    blob += bytes([1 << 3, 1, 2 << 3, 1, 3 << 3, 1, 4 << 3, 3])
    layer = tagged(1, b"scale") + tagged(7, blob)
    path = tmp_path / "a.caffemodel"
    path.write_bytes(b"\xa2\x06" + bytes([len(layer)]) + layer)
    text = 'input: "x" input_shape { dim: 2 dim: 3 } layer { name: "scale" type: "Scale" bottom: "x" top: "y" }\n'
    assert caffe_net(text, path).scale.weight.tolist() == values


def test_a_cut_file_is_one_problem_and_not_one_of_each_known_layer(tmp_path):
    text = """input: "x" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
    layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 4 kernel_size: 3 } }
    layer { name: "n" type: "Normalize" bottom: "c" top: "n" }
    layer { name: "p" type: "Permute" bottom: "n" top: "p" permute_param { order: [0, 2, 3, 1] } }"""
    path = tmp_path / "w.caffemodel"
    caffe_net(text).save_caffemodel(path)
    whole = path.read_bytes()
    for length in (1, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CaffeValueError) as caught:
            caffe_net(text, path)
        said = str(caught.value)
        assert said.count("not a .caffemodel") == 1 and len(said.splitlines()) == 1, said
