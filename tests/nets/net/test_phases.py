"""The layers of a net: its state, the rules of its layers, and fields that must not be ignored."""

import contextlib

import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeTypeError, CaffeValueError, caffe_net
from cuffi.caffe_files.prototxt import parse
from cuffi.nets.net.needs import needs
from cuffi.nets.net.phases import State

INPUT = 'input: "data" input_shape { dim: 2 dim: 3 dim: 8 dim: 8 }\n'


def conv(name, bottom, more=""):
    return (
        f'layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}" {more} '
        "convolution_param { num_output: 4 kernel_size: 3 } }\n"
    )


def test_stages_and_levels():
    text = INPUT + "".join(
        conv(name, "data", more=rule)
        for name, rule in (
            ("deploy", 'include { stage: "deploy" }'),
            ("other", 'include { not_stage: "deploy" }'),
            ("high", "include { min_level: 2 }"),
            ("low", "include { max_level: 1 }"),
            ("never", "exclude { phase: TEST } exclude { phase: TRAIN }"),
        )
    )
    assert caffe_net(text).outputs == ["low", "other"]
    assert caffe_net(text, stages="deploy", level=2).outputs == ["deploy", "high"]


# A layer for each stage and each level, which counts in the outputs' names.
STATES = INPUT + "".join(
    f'layer {{ name: "{rule}" type: "Power" bottom: "data" top: "{name}" include {{ {rule} }} }}'
    for name, rule in (
        ("a", "stage: 'a'"), ("b", "stage: 'b'"), ("0", "max_level: 0"), ("1", "min_level: 1 max_level: 1"),
        ("2", "min_level: 2"), ("T", "phase: TRAIN"),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "state, options, wanted",
    [
        ("", {}, "0"),
        ('state { stage: "a" }', {}, "0a"),
        ('state { stage: "a" level: 1 }', {"stages": ["b"]}, "1ab"),  # they add up
        ("state { level: 2 }", {}, "2"),
        ("state { level: 2 }", {"level": 0}, "0"),  # the caller's counts, as in Caffe's Net
        ("state { level: 01 phase: TRAIN }", {}, "1"),  # the caller chooses the phase
        ('state < stage: "\\141" >', {"level": 1}, "1a"),
    ],
)
def test_the_files_own_state(state, options, wanted):
    assert "".join(caffe_net(f"{state} {STATES}", **options).outputs) == wanted


def test_what_a_state_makes_of_a_net():
    """The file's stages decide whether the values are scaled."""
    text = """state { stage: "deep" level: 0 } input: "data" input_shape { dim: 1 dim: 2 }
      layer { name: "a" type: "Power" bottom: "data" top: "data" power_param { scale: 10 } include { stage: "deep" } }
      layer { name: "b" type: "Power" bottom: "data" top: "out" power_param { shift: 1 } }"""
    assert caffe_net(text)(torch.ones(1, 2)).tolist() == [[11, 11]]
    text += 'layer { type: "ReLU" bottom: "data" include { stage: "x" } }'
    assert list(needs(text, states=[State("TEST")])) == ["Power"]


def test_the_state_of_a_solvers_net():
    """Caffe's Solver merges its train_state over the net's state. Levels replace, stages add up."""
    net = parse('state { stage: "a" level: 1 }').node("state")
    solver = parse('train_state { stage: "b" level: 2 } test_state { stage: "c" }')
    assert State("TRAIN").over(solver.node("train_state")).over(net) == State("TRAIN", 2, frozenset("ab"))
    assert State("TEST").over(solver.node("test_state")).over(net) == State("TEST", 1, frozenset("ac"))
    assert State("TEST").over(solver.node("none")) == State("TEST")


@pytest.mark.parametrize(
    "text, said",
    [
        ("state { stgae: 1 }", "line 2: no field 'stgae'; did you mean 'stage'"),
        ("state { level: x }", "line 2: level: Couldn't parse integer: x"),
        ("state: TRAIN", "line 2: state: expected a message in braces, got TRAIN"),
        ("force_bakward: true", "line 2: no field 'force_bakward'; did you mean 'force_backward'"),
        ("layr { }", "line 2: no field 'layr'; did you mean 'layer'"),
        ("input { }", "line 2: input: expected a string, got a message in braces"),
        ('layer: "x"', "line 2: layer: expected a message in braces"),
        ("layer { bottom { } }", "line 2: bottom: expected a value, got a message"),
    ],
)
def test_fields_of_the_net_that_would_be_passed_over(text, said):
    with pytest.raises(CaffeValueError, match=f"(?s)prototxt, {said}"):
        caffe_net(f"\n{text}\n" + INPUT + conv("c", "data"))


@pytest.mark.parametrize(
    "more, said",
    [
        ("loss_weight: 1 loss_weight: 2", "2 loss_weight for 1 tops"),
        ("propagate_down: true propagate_down: false", "2 propagate_down for 1 bottoms"),
        ("blobs { data: 1 }", "blobs in a prototxt are not read: pass them as weights"),
    ],
)
def test_fields_of_a_layer_that_would_be_passed_over(more, said):
    with pytest.raises(CaffeValueError, match=f"line 1: 'r' .ReLU.: {said}"):
        caffe_net(f'layer {{ name: "r" type: "ReLU" bottom: "data" top: "r" {more} }}' + INPUT)


@pytest.mark.parametrize(
    "phase, drops", [("", (False, True)), ("phase: TEST", (False, False)), ("phase: 0", (True, True))]
)
def test_a_layers_own_phase(phase, drops):
    """Net::Init gives its own phase to layers without one."""
    net = caffe_net(INPUT + f'layer {{ name: "d" type: "Dropout" bottom: "data" top: "d" {phase} }}')
    for training, dropped in zip((False, True), drops, strict=True):
        assert (net.train(training)(torch.ones(2, 3, 8, 8)) == 0).any() == dropped
        assert torch.nn.Sequential(net).train(training)(torch.ones(2, 3, 8, 8)).eq(0).any() == dropped


def test_a_field_of_a_forks_net():
    text = "quantize_net: true " + INPUT + conv("c", "data")
    with pytest.raises(CaffeValueError, match=r"line 1: no field .*ignore=\('quantize_net',\)"):
        caffe_net(text)
    assert caffe_net(text, ignore="quantize_net").outputs == ["c"]


@pytest.mark.parametrize(
    "rule, levels",
    [
        ("include { min_level: 2 }", "2345"),
        ("include { max_level: 1 }", "01"),
        ("include { min_level: 0x1 max_level: 3 }", "123"),
        ("include { min_level: 4 } include { max_level: 0 }", "045"),
        ("exclude { min_level: 4 } exclude { max_level: 0 }", "123"),
        ("include { phase: TRAIN min_level: 1 }", ""),
        ("include { phase: 1 min_level: 1 }", "12345"),
        ("exclude { phase: 0 max_level: 3 }", "012345"),
        ("exclude { phase: TEST max_level: 3 }", "45"),
        ('include { stage: "a" stage: "b" }', "012345"),
        ('include { stage: "a" stage: "c" }', ""),
        ('exclude { stage: "a" not_stage: "b" }', "012345"),
        ('exclude { stage: "a" not_stage: "c" }', ""),
    ],
)
def test_rules(rule, levels):
    """The levels at which a layer with that rule is in the net, in phase TEST, with the stages a and b."""
    text = INPUT + conv("c", "data", more=rule) + conv("always", "data")
    found = [n for n in range(6) if "c" in caffe_net(text, phase="TEST", stages=["a", "b"], level=n).layers]
    assert "".join(map(str, found)) == levels


@pytest.mark.parametrize(
    "rule, said",
    [
        ("include { phase: TEST } exclude { phase: TRAIN }", "layer 'c' has both include and exclude"),
        ("include { phase: BOTH }", "phase: there is no BOTH. There are: TRAIN, TEST"),
        ("exclude { phase: 2 }", "phase: Enum type .* no value with number 2"),
        ("include { min_level: x }", "min_level: Couldn't parse integer: x"),
        ("exclude { max_level: 1.5 }", "max_level: Couldn't parse integer: 1.5"),
        ("include { pahse: TEST }", "no field 'pahse'; did you mean 'phase'?"),
        ("include: TEST", "include: expected a message in braces, got TEST"),
    ],
)
def test_rules_that_say_nothing(rule, said):
    with pytest.raises(CaffeValueError, match=f"line 3: {said}"):
        caffe_net("\n\n" + conv("c", "data", more=rule) + INPUT)


def test_a_net_that_silences_all_outputs_says_what_to_ask_for():
    net = caffe_net(
        INPUT + conv("c", "data") + 'layer { name: "s" type: "Silence" bottom: "data" bottom: "c" }'
    )
    x = torch.ones(2, 3, 8, 8)
    with pytest.warns(UserWarning, match=r"no outputs: Silence reads data, c\. .* end='c' or blobs="):
        assert net(x) == {}
    assert net(x, end="c").shape == (2, 4, 6, 6)


def test_arguments_that_an_onnx_export_adds():
    """torch.onnx.export(dynamo=False) passes None for `end` and `blobs`, by position."""
    net, x = caffe_net(INPUT + conv("c", "data")), torch.ones(2, 3, 8, 8)
    assert torch.equal(net(x, None, None), net(x))
    with pytest.raises(CaffeTypeError, match="2 inputs were given; the net has data"):
        net(x, x, None)


ONE_PHASE = """input: "x" input_shape { dim: 2 dim: 3 }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 }
  include { phase: HAS } }
layer { name: "b" type: "Sigmoid" bottom: "y" top: "z" }"""


@pytest.mark.parametrize("has, lacks", [("TEST", "TRAIN"), ("TRAIN", "TEST")])
def test_a_phase_with_a_blob_that_no_layer_makes_is_left_out(has, lacks):
    """The file is a net of the other phase, as Caffe loads it."""
    text, reason = (
        ONE_PHASE.replace("HAS", has),
        f"no {lacks}: line 4: 'b' (Sigmoid): bottom 'y' is made by no layer",
    )
    with pytest.warns(match="only for training: no TEST") if has == "TRAIN" else contextlib.nullcontext():
        net = caffe_net(text)
    assert list(net.phases) == [has] and net.notes == [reason] and net.training == (has == "TRAIN")
    assert net(torch.zeros(2, 3)).shape == (2, 2)
    with pytest.raises(CaffeRuntimeError, match=f"built only for phase {has}: no {lacks}: line 4"):
        net.train(has == "TEST")
    with pytest.raises(CaffeValueError, match="is made by no layer"):
        caffe_net(text, phase=lacks)
    with pytest.raises(CaffeValueError, match="is made by no layer"):
        caffe_net(text.replace('"x" top', '"w" top'))  # no phase is whole


def test_a_layer_of_no_known_type_without_tops_is_left_out():
    """It writes or shows a blob, which stays an output."""
    net = caffe_net('input: "x" input_shape { dim: 2 } layer { name: "w" type: "MatWrite" bottom: "x" }')
    assert net.notes == ["line 1: 'w' (MatWrite) is left out: it has no top"] and net.outputs == []
    text = ONE_PHASE.replace("include { phase: HAS }", "")
    net = caffe_net(text + 'layer { name: "w" type: "MatWrite" bottom: "z" }')
    assert net.outputs == ["z"] and net(torch.zeros(2, 3)).shape == (2, 2)
    with pytest.raises(CaffeValueError, match="no such layer here"):
        caffe_net(text + 'layer { name: "w" type: "MatWrite" bottom: "z" top: "v" }')
    with pytest.raises(CaffeValueError, match="no such layer here"):  # a loss may leave out its top
        caffe_net(text + 'layer { name: "w" type: "MyLossLayer" bottom: "z" }')
