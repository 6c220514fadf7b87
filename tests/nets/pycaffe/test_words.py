"""Mistakes that users make with a net's names, files and arrays: the error says what is wrong, and what to do."""

import re
import time

import numpy as np
import pytest
import torch

from cuffi import caffe, caffe_net

NET = """input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }"""
STAGE = """input: "d" input_shape { dim: 2 dim: 3 }
layer { name: "fc" type: "InnerProduct" bottom: "d" top: "fc" inner_product_param { num_output: 2 } include { RULE } }
layer { name: "prob" type: "Softmax" bottom: "fc" top: "prob" }"""
LOSS = """layer { name: "d" type: "Input" top: "d" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "l" type: "Input" top: "l" input_param { shape { dim: 2 } } }
layer { name: "fc" type: "InnerProduct" bottom: "d" top: "fc" inner_product_param { num_output: 5 } }
layer { name: "loss" type: "LOSS" bottom: "fc" bottom: "l" top: "loss" }"""
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture(scope="module")
def net():
    return caffe.Net(NET, caffe.TEST)


@pytest.fixture
def transformer():
    made = caffe.io.Transformer({"data": (2, 3, 8, 8)})
    made.set_transpose("data", (2, 0, 1))
    made.set_channel_swap("data", (2, 1, 0))
    return made


@pytest.mark.parametrize(
    ("look_up", "words"),
    [
        (
            lambda net: net.blobs["dat"],
            "net.blobs['dat']: no blob of that name; did you mean 'data'? There are: data, conv1",
        ),
        (
            lambda net: net.params["conv"],
            "net.params['conv']: no layer with parameters of that name; did you mean 'conv1'?",
        ),
        (lambda net: net.params["prob"], "net.params['prob']: the layer has no parameters"),
        (lambda net: net.params["conv1"][5], "net.params['conv1'][5]: there are 2 blobs"),
    ],
)
def test_a_name_that_is_not_there(net, look_up, words):
    with pytest.raises(LookupError) as error:
        look_up(net)
    assert words in str(error.value)
    assert "dat" not in net.blobs and net.params.get("conv") is None


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((8, 8, 3), "array.transpose(2, 0, 1) puts them first"),
        ((2, 8, 8, 3), "array.transpose(0, 3, 1, 2)"),
        ((3, 8, 8), "one item without the axis of the batch"),
        ((2, 3, 9, 9), "net.blobs['data'].reshape(2, 3, 9, 9)"),
        ((1, 3, 8, 8), "expected a batch of 2, got [1, 3, 8, 8]; net.blobs['data'].reshape(1, 3, 8, 8)"),
    ],
)
def test_an_array_of_another_shape(net, shape, words):
    with pytest.raises(RuntimeError, match=re.escape(words)):
        net.forward(data=np.zeros(shape))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            "stage: '2-layer'",
            "made by 'fc' in line 2, which is only in the stage '2-layer': stages=['2-layer']",
        ),
        ("min_level: 2", "made by 'fc' in line 2, which is only from level 2 on: level=2"),
        ("not_stage: 'x'", "made by 'fc' in line 2, which the stage 'x' leaves out"),
    ],
)
def test_a_layer_that_a_stage_leaves_out(rule, words):
    text = STAGE.replace("RULE", rule)
    with pytest.raises(ValueError, match=re.escape(words)):
        caffe_net(text, stages=["x"] if "not" in rule else ())
    said = re.search(r"stages=(\[.*\])|level=(\d)", words)
    if said:  # and what it says to do works
        caffe_net(text, **eval(f"dict({said[0]})"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda whole: whole[:-300], "are missing, as after a download that stopped: get the file again"),
        (lambda whole: POINTER.encode(), "git lfs pull downloads it"),
        (lambda whole: b"<!DOCTYPE html><html>404</html>", "the download gave a page in place of the file"),
        (
            lambda whole: caffe.io.array_to_blobproto(np.zeros((1, 3, 2, 2))).SerializeToString(),
            "one blob of shape [1, 3, 2, 2]",
        ),
        (lambda whole: b"\x93NUMPY\x01", "numpy.load reads it"),
    ],
)
def test_files_that_are_no_weights(net, tmp_path, data, words):
    path = tmp_path / "a.caffemodel"
    net.save(str(path))
    path.write_bytes(data(path.read_bytes()))
    with pytest.raises((RuntimeError, OSError), match=re.escape(words)) as error:
        caffe.Net(NET, str(path), caffe.TEST)
    assert "a.caffemodel" in str(error.value)


def test_a_pointer_in_place_of_a_prototxt(tmp_path):
    (tmp_path / "a.prototxt").write_text(POINTER)
    with pytest.raises(OSError, match=r"git lfs pull downloads it: .*a\.prototxt"):
        caffe_net(tmp_path / "a.prototxt")


@pytest.mark.parametrize("label", [5, -1])
@pytest.mark.parametrize("loss", ["SoftmaxWithLoss", "MultinomialLogisticLoss"])
def test_a_label_that_is_no_class(loss, label):
    net = caffe_net(LOSS.replace("LOSS", loss), train=True)
    with pytest.raises(
        RuntimeError, match=rf"'loss' \({loss}\): label {label} for 5 classes, which are 0 to 4"
    ):
        net(d=torch.zeros(2, 3), l=torch.tensor([0.0, label]))


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        ("mean.npy", "got the path 'mean.npy': numpy.load('mean.npy')"),
        ("m.binaryproto", "blobproto_to_array"),
        (np.zeros((8, 8, 3)), "Its channels are last: mean.transpose(2, 0, 1)"),
        (np.zeros(4), "4 values, data has 3 channels"),
        (np.zeros((1, 3, 8, 8)), "mean[0] is its image"),
    ],
)
def test_a_mean_of_the_wrong_kind(transformer, mean, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        transformer.set_mean("data", mean)


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (None, "which cv2.imread gives if it cannot read the file"),
        (np.zeros((8, 8)), "A grey image: image[:, :, None]"),
        (np.zeros((8, 8, 1)), "an image of 1 channels, and the input has 3"),
    ],
)
def test_an_image_of_the_wrong_kind(transformer, image, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        transformer.preprocess("data", image)


def test_a_net_of_many_layers_takes_time_by_its_number():
    def seconds(count: int) -> float:
        layer = 'layer {{ name: "c{0}" type: "Convolution" bottom: "{1}" top: "c{0}" '
        layer += "convolution_param {{ num_output: 2 kernel_size: 1 }} }}"
        names = ["data", *(f"c{i}" for i in range(count))]
        text = 'input: "data" input_shape { dim: 1 dim: 2 dim: 2 dim: 2 }\n'
        text += "\n".join(layer.format(i, names[i]) for i in range(count))
        start = time.process_time()
        caffe.Net(text, caffe.TEST)
        return time.process_time() - start

    seconds(50)
    few = min(seconds(200) for _ in range(3))
    assert seconds(2000) < 25 * few  # ten times as many; by squares it would be a hundred
