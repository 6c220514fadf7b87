"""Stock layers accept exactly the values that Caffe accepts, and refuse the next one by the layer's name."""

import pytest
import torch
from support.nets import one_layer
from support.typed import not_none

from cuffi import CaffeTypeError, CaffeValueError, caffe_net
from cuffi.nets.net.needs import needs
from cuffi.nets.stock import StockDefinition, StockLayer, stock_class

X = (2, 4, 6, 5)
# A valid layer, its bottom shapes, its number of tops, and edits: (word, replacement, error), (shapes, error) or
# (number of tops, error). Each edit must be refused with that error.
BOUNDARIES = [
    ("Accuracy accuracy_param { top_k: 4 }", [(3, 4), (3,)], 1, [("4", "5", "top_k 5 of 4")]),
    ("Accuracy", [(3, 4), (3,)], 1, [([(3, 4), (4,)], "4 labels for 3")]),
    ("ArgMax argmax_param { top_k: 20 }", [(2, 20)], 1, [("20", "21", "top_k 21"), ("20", "0", "top_k 0")]),
    ("BatchNorm", [(2, 3)], 1, [([(2,)], "2 or more axes")]),
    ("BatchReindex", [X, (3,)], 1, [([X, (3, 1)], "the indices have 2 axes")]),
    ("Concat concat_param { axis: 1 }", [X, (2, 7, 6, 5)], 1,
     [([X, (2, 7, 5, 5)], "do not join along axis 1"), ([X, (2, 7, 6)], "do not join"),
      ("axis: 1", "axis: 1 concat_dim: 1", "one of them is enough")]),
    ("Concat concat_param { axis: 3 }", [X], 1, [("3", "4", "axis 4 out of range"), ("3", "-5", "axis -5")]),
    ("ContrastiveLoss", [(2, 3), (2, 3), (2,)], 1,
     [([(2, 3), (2, 4), (2,)], "features"), ([(2, 3), (2, 3), (2, 2)], "labels")]),
    ("Convolution convolution_param { num_output: 2 kernel_size: 5 }", [X], 1,
     [("5", "6", "nothing is left"), ("2", "0", "num_output")]),
    ("Convolution convolution_param { num_output: 2 kernel_size: 2 stride: 1 }", [X], 1,
     [("stride: 1", "stride: 0", "stride"), ("kernel_size: 2", "kernel_size: 0", "kernel and stride")]),
    ("Convolution convolution_param { num_output: 6 group: 2 kernel_size: 1 axis: 1 }", [X, X], 2,
     [("group: 2", "group: 4", "multiple of group"), ("group: 2", "group: 0", "multiple of group"),
      ("group: 2", "group: 3", "4 channels are not a multiple of group 3"), (1, "as many tops as bottoms"),
      ([X, (2, 4, 6, 6)], "the same shape"), ([(2, 4, 6, 5, 4, 3)] * 2, "4 axes after axis 1 of"),
      ([(2, 4)] * 2, "0 axes after"), ("axis: 1", "axis: 4", "axis 4 out of range")]),
    ("Convolution convolution_param { num_output: 1 kernel_size: 2 kernel_size: 3 pad_h: 1 pad_w: 0 }", [X], 1,
     [("kernel_size: 2 ", "kernel_size: 2 kernel_size: 2 ", "3 sizes for 2 axes"), ("pad_w: 0", "pad: 1", "either pad"),
      ("kernel_size: 2 kernel_size: 3", "", "0 sizes for 2 axes"), ([(2, 4, 6)], "2 sizes for 1|either pad")]),
    ("Convolution convolution_param { num_output: 1 kernel_size: 3 dilation: 2 }", [(2, 4, 5, 5)], 1,
     [([(2, 4, 4, 5)], "nothing is left"), ([(2, 4, 5, 4)], "nothing is left"), ("2", "3", "nothing is left")]),
    ("Crop crop_param { axis: 2 offset: 1 offset: 2 }", [X, (2, 4, 5, 3)], 1,
     [([X, (2, 4, 6, 3)], "axis 2: 6 from 1"), ("offset: 2", "offset: 3", "axis 3"),
      ("axis: 2", "axis: 1", "2 offsets for 3 axes"), ([X, (4, 5, 3)], "axes")]),
    ("Eltwise eltwise_param { coeff: 1 coeff: 2 }", [X, X], 1,
     [([X, (2, 4, 6, 6)], "bottoms of"), ("coeff: 2", "", "1 coefficients"),
      ("coeff: 1", "operation: PROD coeff: 1", "not for the product")]),
    ("Embed embed_param { num_output: 1 input_dim: 1 }", [(3,)], 1,
     [("num_output: 1", "num_output: 0", "num_output"), ("input_dim: 1", "input_dim: 0", "input_dim")]),
    ("EuclideanLoss", [(2, 6), (2, 3, 2)], 1, [([(2, 3), (2, 4)], "inputs of"), ([(2, 3), (5, 3)], "inputs of")]),
    ("Exp exp_param { base: 0.5 }", [X], 1, [("0.5", "0", "base"), ("0.5", "-2", "base")]),
    ("Filter", [X, (2,)], 1, [([X, (3,)], r"selectors of \[3\] for items"), ([X, (2, 2)], "one number an item")]),
    ("Flatten flatten_param { axis: 2 end_axis: 2 }", [X], 1,
     [("end_axis: 2", "end_axis: 1", "is after end_axis"), ("end_axis: 2", "end_axis: 4", "axis 4 out of range")]),
    ("Im2col convolution_param { kernel_size: 2 }", [X], 1, [([(4, 6, 5)], "4 axes")]),
    ("InfogainLoss", [(3, 4), (3,), (4, 4)], 1,
     [([(3, 4), (2,), (4, 4)], "2 labels for 3"), ([(3, 4), (3,), (4, 3)], "12 values, 4 x 4"),
      ([(3, 4), (3,)], "the matrix, is needed")]),
    ("InfogainLoss loss_param { normalization: FULL }", [(3, 4), (3,), (4, 4)], 1,
     [("normalization: FULL", "normalize: true", "deprecated")]),
    ("InnerProduct inner_product_param { num_output: 1 }", [X], 1,
     [("num_output: 1", "num_output: 0", "num_output")]),
    ("Log log_param { base: 2 }", [X], 1,
     [("2", "1", "not 1"), ("2", "0", "strictly positive"), ("2", "-3", "positive")]),
    ("LRN lrn_param { local_size: 3 }", [X], 1, [("3", "4", "odd"), ([(4, 6, 5)], "4 axes")]),
    ("LSTMUnit", [(1, 2, 3), (1, 2, 12), (1, 2)], 2,
     [([(1, 2, 3), (1, 2, 13), (1, 2)], "bottoms of"), ([(1, 2, 3), (1, 2, 12), (1, 3)], "bottoms of"),
      ([(1, 2, 3), (1, 3, 12), (1, 2)], "bottoms of"), ([(2, 2, 3), (2, 2, 12), (2, 2)], "bottoms of")]),
    ("MVN", [(2, 3)], 1, [([(2,)], "2 to 4 axes"), ([(1, 2, 3, 4, 5)], "2 to 4 axes")]),
    ("PReLU", [(2, 3)], 1, [([(2,)], "2 or more axes")]),
    ("Pooling pooling_param { kernel_size: 5 }", [X], 1, [("5", "7", "nothing is left"), ([(4, 6, 5)], "4 axes")]),
    ("Pooling pooling_param { kernel_size: 2 stride: 1 pad: 1 }", [X], 2,
     [("kernel_size: 2", "kernel_size: 0", "kernel and stride"), ("stride: 1", "stride: 0", "kernel and stride"),
      ("pad: 1", "pad: 2", "not less than the kernel"), ("pad: 1", "pool: AVE", "only MAX has a second top"),
      ("pad: 1", "pad_h: 0 pad_w: 2", "not less than the kernel"), ("pad: 1", "pad: 1 pad_h: 1", "either pad"),
      ("kernel_size: 2", "kernel_size: 2 kernel_h: 2 kernel_w: 2", "either kernel_size"),
      ("kernel_size: 2 stride: 1 pad: 1", "global_pooling: true pad: 1", "pad 0 and stride 1"),
      ("kernel_size: 2 stride: 1 pad: 1", "global_pooling: true stride: 2", "pad 0 and stride 1"),
      ("kernel_size: 2 stride: 1 pad: 1", "global_pooling: true kernel_size: 2", "size cannot be given")]),
    ("Reshape reshape_param { shape { dim: 2 dim: -1 dim: 5 } }", [X], 1,
     [("dim: 5", "dim: 7", "cannot become"), ("dim: 2", "dim: -1", "more than one"),
      ("dim: 5", "dim: -2", "expected -1"), ("dim: 5", "dim: 0 dim: 0 dim: 0", "an axis that does not exist")]),
    ("Reshape reshape_param { shape { dim: 24 } axis: 1 num_axes: 2 }", [X], 1,
     [("num_axes: 2", "num_axes: 4", "axis \\+ num_axes = 5"), ("num_axes: 2", "num_axes: -2", "num_axes must"),
      ("axis: 1", "axis: 5", "axis 5 out"), ("axis: 1", "axis: -6", "axis -6 out")]),
    ("RNN recurrent_param { num_output: 1 }", [(4, 2, 5), (4, 2)], 1,
     [("num_output: 1", "num_output: 0", "num_output must"), ([(4, 2), (4, 2)], "x: expected"),
      ([(4, 2, 5), (4, 3)], "cont: expected"), (2, "2 tops"), ([(4, 2, 5), (4, 2), (2, 3), (2, 3)], "4 bottoms")]),
    ("LSTM recurrent_param { num_output: 3 }", [(4, 2, 5), (4, 2), (2, 6)], 1,
     [([(4, 2, 5), (4, 2), (3, 6)], "static input: expected 2")]),
    ("RNN recurrent_param { num_output: 3 expose_hidden: true }", [(4, 2, 5), (4, 2), (1, 2, 3)], 2,
     [([(4, 2, 5), (4, 2), (1, 3, 3)], "hidden state"), (1, "1 tops"), ([(4, 2, 5), (4, 2)], "2 bottoms")]),
    ("Scale scale_param { axis: 1 num_axes: 3 }", [X], 1,
     [("num_axes: 3", "num_axes: 4", "extends to axis 5"), ("num_axes: 3", "num_axes: -2", "num_axes must")]),
    ("Bias bias_param { axis: -1 num_axes: -1 }", [X], 1,
     [("num_axes: -1", "num_axes: 2", "extends to axis 5"), ("num_axes: -1", "num_axes: -2", "num_axes must")]),
    ("Scale", [X, (4, 6)], 1, [([X, (4, 5)], "are not the axes from 1")]),
    ("SigmoidCrossEntropyLoss", [(2, 6), (2, 3, 2)], 1, [([(2, 6), (2, 5)], "same count")]),
    ("Slice slice_param { axis: 2 slice_point: 1 slice_point: 5 }", [X], 3,
     [("point: 5", "point: 6", "slice points"), ("point: 5", "point: 1", "slice points"),
      ("point: 1", "point: 0", "slice points"), ("slice_point: 5", "", "1 slice points for 3 tops")]),
    ("Slice slice_param { axis: 2 }", [X], 3,
     [("2", "1", "3 tops do not divide 4"), ("axis: 2", "axis: 2 slice_dim: 2", "one of them is enough")]),
    ("SoftmaxWithLoss", [(3, 4), (3,)], 1, [([(3, 4), (4,)], "4 labels for 3"), ([(2, 4, 3), (3, 2)], "first axis")]),
    ("SPP spp_param { pyramid_height: 1 }", [X], 1,
     [("1", "0", "pyramid_height"), ([(4, 6, 5)], "needed"), ([(2, 4, 0, 5)], "needed"), ([(2, 4, 6, 0)], "needed")]),
    ("Tile tile_param { tiles: 1 axis: 3 }", [X], 1,
     [("tiles: 1", "tiles: 0", "tiles"), ("axis: 3", "axis: 4", "axis 4 out of range")]),
]  # fmt: skip


def made(text: str, shapes, tops: int, **options):
    kind, _, parameters = text.partition(" ")
    return one_layer(f'type: "{kind}" {parameters}', *shapes, tops=tops, **options)


@pytest.mark.parametrize(
    "text, shapes, tops, wrong", BOUNDARIES, ids=[row[0].split()[0] for row in BOUNDARIES]
)
def test_the_last_value_and_the_next(text, shapes, tops, wrong):
    made(text, shapes, tops)
    for *change, said in wrong:
        if len(change) == 2:
            changed = text.replace(*change), shapes, tops
        else:
            changed = (text, shapes, change[0]) if isinstance(change[0], int) else (text, change[0], tops)
        assert changed != (text, shapes, tops)
        with pytest.raises(CaffeValueError, match=f"(?s)'L'.*{said}"):
            made(*changed)


def test_a_layer_without_its_bottom_is_no_input():
    """Inputs are a data layer's tops, and those of an unknown type without bottoms."""
    with pytest.raises(CaffeValueError, match=r"line 2: 'r' \(ReLU\): takes 1 bottoms, not 0"):
        caffe_net('input: "x" input_shape { dim: 1 }\nlayer { name: "r" type: "ReLU" top: "y" }')
    assert caffe_net('layer { type: "RoiData" top: "y" }', shapes={"y": (1, 2)}).inputs == ["y"]

    # What the caller makes a module of is none, either.
    class Indicator(torch.nn.Module):
        def top_shapes(self):
            return [(2,)]

        def forward(self):
            return torch.ones(2)

    net = caffe_net('layer { type: "Indicator" top: "y" }', types={"Indicator": lambda spec: Indicator()})
    assert net.inputs == [] and net().tolist() == [1, 1]


def test_a_long_list_of_mistakes_is_cut():
    layers = "".join(
        f'layer {{ type: "T{i:05}" name: "n{i}" bottom: "x" top: "y{i}" }}\n' for i in range(2000)
    )
    with pytest.raises(CaffeValueError, match="2000 problems") as raised:
        caffe_net(f'input: "x" input_shape {{ dim: 1 }}\n{layers}')
    said = str(raised.value)
    assert (
        len(said) < 8000 and "'n49' (T00049)" in said and "'n50'" not in said and "\nand 1,950 more\n" in said
    )
    *_, port, write = said.split("\n")
    assert port.endswith("T00048 T00049'") and "types={'T00000': your function}" in write


def test_names_of_blobs_that_are_none():
    net = one_layer('type: "ReLU"', (2, 3))
    for wrong in (dict(end=[]), dict(blobs=3), dict(blobs=[[]])):
        with pytest.raises(CaffeTypeError, match=r"end, blobs: expected names of blobs, got .*(3|\[\])"):
            net(torch.ones(2, 3).double(), **wrong)
    with pytest.raises(CaffeValueError, match=r"no blob 'x'\. There are: x0, y0"):
        net(torch.ones(2, 3).double(), blobs=["x"])
    # A name alone is no list of its letters.
    with pytest.raises(CaffeTypeError, match=r"blobs: expected a list of names of blobs, got str 'y0'"):
        net(torch.ones(2, 3).double(), blobs="y0")


# Of how many bottoms and tops, the least and the most; None: any number. All other types are of one and one.
COUNTS = {
    "Accuracy": (2, 2, 1, 2), "BatchReindex": (2, 2, 1, 1), "Bias": (1, 2, 1, 1), "Concat": (1, None, 1, 1),
    "ContrastiveLoss": (3, 3, 1, 1), "Convolution": (1, None, 1, None), "Crop": (2, 2, 1, 1),
    "Deconvolution": (1, None, 1, None), "Eltwise": (1, None, 1, 1), "EuclideanLoss": (2, 2, 1, 1),
    "Filter": (2, None, 1, None), "HingeLoss": (2, 2, 1, 1), "InfogainLoss": (2, 3, 1, 2), "LSTM": (2, None, 1, None),
    "LSTMUnit": (3, 3, 2, 2), "MultinomialLogisticLoss": (2, 2, 1, 1), "Parameter": (0, 0, 1, 1),
    "Pooling": (1, 1, 1, 2), "RNN": (2, None, 1, None), "Scale": (1, 2, 1, 1),
    "SigmoidCrossEntropyLoss": (2, 2, 1, 2), "Silence": (1, None, 0, 0), "Slice": (1, 1, 1, None),
    "SoftmaxWithLoss": (2, 2, 1, 2), "Split": (1, 1, 1, None),
}  # fmt: skip
OTHERS = (
    "AbsVal ArgMax BatchNorm BNLL Clip Dropout ELU Embed Exp Flatten Im2col InnerProduct Log LRN MVN Power PReLU "
    "Reduction ReLU Reshape Sigmoid Softmax SPP Swish TanH Threshold Tile"
)


@pytest.mark.parametrize("kind", [*COUNTS, *OTHERS.split()])
def test_how_many_bottoms_and_tops(kind):
    least_in, most_in, least_out, most_out = COUNTS.get(kind, (1, 1, 1, 1))
    made = not_none(stock_class(kind))
    for what, right, (least, most) in (
        ("bottoms", (least_in, least_out), (least_in, most_in)),
        ("tops", (least_in, least_out), (least_out, most_out)),
    ):
        assert getattr(made, what) == (least, most)
        wrong = [least - 1] * (least > 0) + ([] if most is None else [most + 1])
        for count in wrong:
            given = (count, right[1]) if what == "bottoms" else (right[0], count)
            words = (
                str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            )
            with pytest.raises(CaffeValueError, match=f"takes {words} {what}, not {count}"):
                StockLayer.__init__(made.__new__(made), StockDefinition("L", None, *given, {}))


def test_a_stock_type_with_more_bottoms_than_stock_caffe_takes(tmp_path):
    """The layer is a fork's: the ported one runs, and make net ports it. Other layers of the type stay torch's."""
    pytest.importorskip("cuffi.runtime")
    text = """input: "x" input_shape { dim: 1 dim: 2 dim: 3 dim: 3 }
      layer { name: "one" type: "ReLU" bottom: "x" top: "one" }
      layer { name: "two" type: "ReLU" bottom: "one" bottom: "x" top: "two" }"""
    with pytest.raises(
        CaffeValueError, match=r"line 3: 'two' \(ReLU\): takes 1 bottoms, not 2. If a fork's ReLU does"
    ):
        caffe_net(text)
    assert needs(text)["ReLU"].fields == []
    (tmp_path / "re_lu").mkdir()
    (tmp_path / "re_lu/__init__.py").write_text(
        """import torch
class ReLU(torch.nn.Module):  # caffe_layer(__name__, "ReLU")
    type_name = "ReLU"
    def __init__(self, text, bottom, top):
        super().__init__()
    def top_shapes(self, first, second):
        return [first]
    def forward(self, first, second):
        return first + 10 * second
"""
    )
    net, x = caffe_net(text, layers=[tmp_path]), torch.randn(1, 2, 3, 3)
    torch.testing.assert_close(net(x), x.relu() + 10 * x)
    assert net.notes == ["line 3: 'two': stock ReLU takes 1 bottoms, not 2: it runs as ported"]
    loss = 'layer { name: "l" type: "EuclideanLoss" bottom: "x" bottom: "x" }'
    assert needs(text.splitlines()[0] + loss)["EuclideanLoss"].fields is None


def test_a_field_of_another_forks_layer_names_the_folder_that_ran():
    pytest.importorskip("cuffi.runtime")
    layer, shapes = "PSROIPooling psroi_pooling_param { divide_type: 1 }", [(1, 4, 3, 3), (1, 5)]
    with pytest.raises(
        CaffeValueError,
        match=r"(?s)no field 'divide_type'.*It ran .*cuffi/caffe_layers/layers/psroi_pooling, .*make port ",
    ):
        made(layer, shapes, 1, native=False)


def test_a_field_of_another_forks_layer_of_a_fork_type():
    layer, shapes = "PSROIPooling psroi_pooling_param { divide_type: 1 }", [(1, 4, 3, 3), (1, 5)]
    with pytest.raises(
        CaffeValueError, match=r"psroi_pooling_param\.divide_type is a field that stock Caffe does"
    ):
        made(layer, shapes, 1, native={"PSROIPooling": True})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("debug_info: true", "line 1: debug_info: the sizes"),
        (
            'layer { name: "o" type: "HDF5Output" bottom: "y" hdf5_output_param { file_name: "o.h5" } }',
            "line 1: 'o' \\(HDF5Output\\) writes no file here. Read y",
        ),
    ],
)
def test_what_a_file_asks_for_and_nothing_does_is_said(text, said):
    net = 'input: "x" input_shape { dim: 2 } layer { name: "r" type: "ReLU" bottom: "x" top: "y" }'
    with pytest.warns(UserWarning, match=said):
        caffe_net(f"{text} {net}" if "debug" in text else f"{net} {text}")
