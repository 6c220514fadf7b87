"""The shapes of inputs in a file, in each possible form."""

import pytest

from cuffi import CaffeValueError, caffe_net
from cuffi.caffe_files.prototxt import parse
from cuffi.caffe_files.upgrade import upgraded
from cuffi.nets.net.graph import Spec
from cuffi.nets.net.inputs import input_shapes


def shapes(text: str, **said) -> dict:
    root = parse(text)
    return input_shapes(root, [Spec.of(node) for node in upgraded(root, "p")], "p", said)


def data(type_name: str, tops: str, inside: str) -> str:
    named = " ".join(f'top: "{top}"' for top in tops)
    return f'layer {{ name: "l" type: "{type_name}" {named} {inside} }}'


FLAT = " ".join(f"input_dim: {n}" for n in (2, 3, 4, 5, 6, 7, 8, 9))
COLUMNS = "num: 4 channels: 3 channels: 2 height: 5 width: 6 width: 7"
CROP = "transform_param { crop_size: 7 %s } data_param { batch_size: 4 }"
NEW = "image_data_param { batch_size: 4 new_height: 8 new_width: 9 }"
MEANS = "mean_value: 1 mean_value: 2"


@pytest.mark.parametrize(
    "text, found",
    [
        (f'input: "a" input: "b" {FLAT}', dict(a=(2, 3, 4, 5), b=(6, 7, 8, 9))),
        ('input: "a" input_shape { dim: 0x10 } input: "b" input_shape { }', dict(a=(16,), b=())),
        (data("Input", "ab", "input_param { shape { dim: 0 } }"), dict(a=(0,), b=(0,))),
        (data("Input", "ab", "input_param { shape { dim: 1 } shape { dim: 2147483647 } }"),
         dict(a=(1,), b=(2147483647,))),
        (data("Input", "ab", ""), {}),
        (data("DummyData", "ab", "dummy_data_param { shape { dim: 1 } shape { dim: 2 } }"), dict(a=(1,), b=(2,))),
        (data("DummyData", "ab", f"dummy_data_param {{ {COLUMNS} }}"), dict(a=(4, 3, 5, 6), b=(4, 2, 5, 7))),
        (data("DummyData", "ab", f"dummy_data_param {{ {COLUMNS} width: 8 }}"), {}),
        (data("DummyData", "ab", "dummy_data_param { num: 4 channels: 3 height: 5 width: 6 }"),
         dict.fromkeys("ab", (4, 3, 5, 6))),
        (data("DummyData", "a", "dummy_data_param { num: 4 channels: 3 height: 5 }"), {}),
        (data("DummyData", "a", ""), {}),
        (data("MemoryData", "ab", "memory_data_param { batch_size: 4 channels: 3 height: 5 width: 6 }"),
         dict(a=(4, 3, 5, 6), b=(4,))),
        (data("MemoryData", "ab", "memory_data_param { batch_size: 4 channels: 3 height: 5 }"), {}),
        (data("Data", "ab", CROP % ""), dict(a=(4, 3, 7, 7), b=(4,))),
        (data("Data", "ab", CROP % "force_gray: true"), dict(a=(4, 1, 7, 7), b=(4,))),
        (data("Data", "ab", CROP % "force_gray: false mean_value: 5"), dict(a=(4, 3, 7, 7), b=(4,))),
        (data("Data", "ab", CROP % MEANS), dict(a=(4, 2, 7, 7), b=(4,))),
        (data("Data", "ab", CROP.replace("7", "0") % ""), dict(b=(4,))),
        (data("Data", "ab", NEW), dict(b=(4,))),
        (data("ImageData", "ab", NEW), dict(a=(4, 3, 8, 9), b=(4,))),
        (data("ImageData", "ab", NEW.replace("new_width: 9", "")), dict(b=(4,))),
        (data("HDF5Data", "ab", "hdf5_data_param { batch_size: 4 }"), {}),
        (data("Data", "ab", "transform_param { crop_size: 7 }"), {}),
    ],
)  # fmt: skip
def test_what_the_file_says(text, found):
    assert shapes(text) == found


@pytest.mark.parametrize(
    "text, found",
    [
        (data("Data", "ab", CROP % ""), dict(a=(9, 8), b=(9,))),
        (data("Data", "ab", "transform_param { crop_size: 7 }"), dict(a=(9, 8), b=(9,))),
        (data("DummyData", "ab", f"dummy_data_param {{ {COLUMNS} }}"), dict(a=(9, 8), b=(9, 2, 5, 7))),
        (data("Input", "ab", "input_param { shape { dim: 1 dim: 2 } }"), dict(a=(9, 8), b=(1, 2))),
        ('input: "b" input_dim: 1 input_dim: 2 input_dim: 3 input_dim: 4', dict(a=(9, 8), b=(1, 2, 3, 4))),
    ],
)
def test_what_the_user_says_wins(text, found):
    assert shapes(text, a=(9, 8)) == found


@pytest.mark.parametrize(
    "text, said",
    [
        (f'input: "a" {FLAT}', "8 input_dim for 1 inputs"),
        ('input: "a" input: "b" input_shape { dim: 1 }', "1 input_shape for 2 inputs"),
        ('\ninput: "a" input_shape { dim: x }', "line 2: a shape: expected an integer, got 'x'"),
        (data("Input", "a", "input_param { shape { dim: 2147483648 } }"), "2147483648 is out of range"),
        (data("DummyData", "a", "dummy_data_param { shape { dim: -1 } }"), "-1 is out of range"),
    ],
)
def test_refused(text, said):
    with pytest.raises(CaffeValueError, match=f"^p.*{said}"):
        shapes(text)


def test_a_guess_that_does_not_fit_is_called_one():
    """A fork's data layer may return ten channels of optical flow. Other inputs are not guessed."""
    text = """layer {{ name: "d" type: "{}" top: "d" {} }}
      layer {{ name: "r" type: "Reshape" bottom: "d" top: "r"
        reshape_param {{ shape {{ dim: -1 dim: 10 dim: 8 dim: 8 }} }} }}"""
    data = text.format("VideoData", "video_data_param { batch_size: 4 } transform_param { crop_size: 8 }")
    with pytest.raises(
        CaffeValueError, match=r"'r' .*The shape of input 'd' was guessed .*: shapes=\{'d': \(...\)\}"
    ):
        caffe_net(data)
    assert caffe_net(data, shapes={"d": (4, 30, 8, 8)}).shapes["r"] == (12, 10, 8, 8)
    plain = text.format("Input", "input_param { shape { dim: 4 dim: 3 dim: 8 dim: 8 } }")
    for said, shapes in ((plain, {}), (data, {"d": (4, 3, 8, 8)})):
        with pytest.raises(CaffeValueError, match="'r'") as error:
            caffe_net(said, shapes=shapes)
        assert "guessed" not in str(error.value)


def test_a_phase_has_its_own_batch_and_the_images_of_the_other():
    """As in a train_val whose crop_size is only in TRAIN."""
    text = """layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { crop_size: 7 } data_param { batch_size: 128 } }
      layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST } data_param { batch_size: 0144 } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 3 } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }"""
    net = caffe_net(text)
    assert net.shapes == {"data": (100, 3, 7, 7), "label": (100,), "ip": (100, 3), "loss": ()}
    assert net.train().shapes["data"] == (128, 3, 7, 7)
    net = caffe_net(text, shapes={"data": (5, 3, 4, 4)})
    assert net.shapes["label"] == (5,) and net.train().shapes["data"] == (5, 3, 4, 4)


def test_ssds_data_layer_says_the_shapes_of_images_and_boxes():
    text = """layer { name: "data" type: "AnnotatedData" top: "data" top: "label"
      transform_param { mean_value: 1 mean_value: 2 mean_value: 3 resize_param { height: 300 width: 200 } }
      data_param { batch_size: 8 } }
    layer { name: "s" type: "Silence" bottom: "data" bottom: "label" }"""
    assert caffe_net(text).shapes == {"data": (8, 3, 300, 200), "label": (1, 1, 1, 8)}
    with pytest.raises(CaffeValueError, match="a shape: expected an integer, got 'x'"):
        caffe_net(text.replace("height: 300", "height: x"))


def test_what_was_read_of_a_data_layer_wins():
    """Only the file's words and what is given decide: nothing is opened."""
    root = parse(data("Data", "ab", CROP % "") + data("HDF5Data", "c", "hdf5_data_param { batch_size: 2 }"))
    specs = [Spec.of(node) for node in upgraded(root, "p")]
    assert input_shapes(root, specs, "p", {})["a"] == (4, 3, 7, 7)
    items: dict[Spec, dict[str, tuple[int, ...]]]
    items = {specs[0]: {"a": (4, 1, 5, 6), "b": (4,)}, specs[1]: {"c": (2, 9)}}
    assert input_shapes(root, specs, "p", {}, items=items) == {"a": (4, 1, 5, 6), "b": (4,), "c": (2, 9)}
    assert input_shapes(root, specs, "p", {"a": (8, 1, 5, 6)}, specs, items)["b"] == (8,)
