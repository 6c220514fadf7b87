"""A layer's parameters from Python: keywords, dicts, prototxt text, and errors in them."""

import pytest
from support.protos import SNIPPET, layer_with, parameters

from cuffi.base import CaffeError, CaffeRuntimeError, CaffeTypeError, CaffeValueError
from cuffi.caffe_files.parameters import Parameters


@pytest.fixture(scope="module")
def normalize(tmp_path_factory) -> Parameters:
    return parameters(layer_with(tmp_path_factory.mktemp("python") / "normalize", normalize=SNIPPET))


def test_keywords_dict_and_text_say_the_same(normalize):
    fields = {"norm_param": {"across_spatial": False}, "phase": "TEST", "loss_weight": 2, "name": "n"}
    inside = 'name: "n" loss_weight: 2 phase: TEST bottom: "a" top: "b" top: "c" norm_param { across_spatial: false }'
    other = 'layer { type: "Strange" name: "layer" strange_param { x: "}" } } # layer {\n'
    by_keywords = normalize.layer_parameter("Normalize", bottom="a", top=["b", "c"], **fields)
    for text in (
        inside,
        f"layer {{ {inside} }}",
        f'name: "net" {other} layer {{ type: "Normalize" {inside} }}',
    ):
        assert normalize.layer_parameter("Normalize", text) == by_keywords
    assert normalize.layer_parameter("Normalize", fields, bottom=["a"], top=["b", "c"]) == by_keywords
    assert normalize.layer_parameter("Normalize", inside, loss_weight=[3]).loss_weight == [3]


def test_older_layers(normalize):
    message = normalize.layer_parameter(
        "Pooling",
        'layers { type: POOLING name: "p" bottom: "d" blobs_lr: 0 blobs_lr: 2 weight_decay: 3'
        " pooling_param < pool: AVE > }",
    )
    assert [p.lr_mult for p in message.param] == [0, 2] and message.param[0].decay_mult == 3
    assert (message.pooling_param.pool, list(message.bottom), message.type) == (1, ["d"], "Pooling")
    oldest = 'layers { layer { type: "pool" name: "p" pool: AVE blobs_lr: 0 blobs_lr: 2 weight_decay: 3 } bottom: "d" }'
    assert normalize.layer_parameter("Pooling", oldest) == message
    # Each fork spells types in its own way.
    strange = "layers { type: FORKS_OWN\nnorm_param { across_spatial: false } }"
    assert normalize.layer_parameter("Normalize", strange).norm_param.across_spatial is False
    with pytest.raises(CaffeValueError, match="prototxt, line 2: no field 'gone_param'"):
        normalize.layer_parameter("Normalize", "layers { type: NORMALIZE\ngone_param { } }")


def test_lists_in_text(normalize):
    text = "param: [{ lr_mult: 1 }, < lr_mult: 2 >] loss_weight: [1, 2,], propagate_down: [];"
    message = normalize.layer_parameter("Normalize", text)
    assert [p.lr_mult for p in message.param] == [1, 2] and message.loss_weight == [1, 2]
    for wrong, said in (
        ("loss_weight: [1 2]", r"expected ',' or '\]' in the list of 'loss_weight', found '2'"),
        ("param: [{ lr_mult: 1 }", "expected ',' or '.' in the list of 'param', found 'the end of the text'"),
        ("param [{ }]", r"expected ':' or '{' after 'param', found '\['"),
    ):
        with pytest.raises(CaffeValueError, match=said):
            normalize.layer_parameter("Normalize", wrong)


def test_one_of_several_layers_is_chosen(normalize):
    text = 'layer { type: "Normalize" name: "a" }\nlayer { type: "Normalize" name: "b" loss_weight: 5 }'
    assert normalize.layer_parameter("Normalize", text, name="b").loss_weight == [5]
    with pytest.raises(CaffeValueError, match=r"more than one .* name=\.\.\., one of 'a', 'b'"):
        normalize.layer_parameter("Normalize", text)
    with pytest.raises(CaffeValueError, match=r"no layer named 'c'. There are: 'a' \(Normalize\), 'b'"):
        normalize.layer_parameter("Normalize", text, name="c")


@pytest.mark.parametrize(
    ("error", "said", "fields"),
    [
        (
            CaffeValueError,
            r"^normalize: norm_param: no field 'across_spacial'; did you mean 'across_spatial'\? "
            "There are: across_spatial$",
            {"norm_param": {"across_spacial": True}},
        ),
        (CaffeValueError, "no field 'norm_parm'; did you mean 'norm_param'", {"norm_parm": {}}),
        (CaffeTypeError, "norm_param: expected a dict of fields, got int 3", {"norm_param": 3}),
        (
            CaffeTypeError,
            "across_spatial: expected True or False, got str 'no'",
            {"norm_param": {"across_spatial": "no"}},
        ),
        (
            CaffeValueError,
            "pool: expected one of MAX, AVE, STOCHASTIC, got 'MIN'",
            {"pooling_param": {"pool": "MIN"}},
        ),
        (
            CaffeValueError,
            "pool: expected one of MAX, AVE, STOCHASTIC, got 9",
            {"pooling_param": {"pool": 9}},
        ),
        (CaffeValueError, "pooling_param.pad: -1 is out of range", {"pooling_param": {"pad": -1}}),
        (
            CaffeTypeError,
            "pooling_param.pad: expected an integer, got float",
            {"pooling_param": {"pad": 1.5}},
        ),
        (CaffeTypeError, r"loss_weight\[1\]: expected a number, got str", {"loss_weight": [1, "2"]}),
        (CaffeTypeError, "loss_weight: expected a list, got NoneType None", {"loss_weight": None}),
        (CaffeValueError, "clip_param.max: required", {"clip_param": {"min": 0}}),
        (CaffeTypeError, "prototxt: expected text or a dict, got int 1", {"prototxt": 1}),
        (CaffeValueError, "type 'Normalize', got 'Pooling'", {"prototxt": 'type: "Pooling"'}),
        (
            CaffeValueError,
            "prototxt, line 2: norm_param: no field 'x'",
            {"prototxt": "layer { norm_param {\nx: 1 } }"},
        ),
        (
            CaffeValueError,
            'line 3: .*Expected "true" or "false"',
            {"prototxt": "\n\nnorm_param { across_spatial: 7 }"},
        ),
        (CaffeValueError, "line 2: the text ends inside of .* line 1", {"prototxt": "layer {\n"}),
        (CaffeValueError, "line 1: expected the name of a field, found '}'", {"prototxt": "}"}),
        (CaffeValueError, "line 2: a string without its end", {"prototxt": '\nname: "x'}),
    ],
)
def test_wrong_parameters_are_refused(normalize, error, said, fields):
    with pytest.raises(error, match=said) as raised:
        normalize.layer_parameter("Normalize", **fields)
    assert isinstance(raised.value, CaffeError) and str(raised.value).startswith("normalize: ")


def test_a_layer_that_is_not_built(tmp_path):
    with pytest.raises(CaffeRuntimeError, match="make LAYERS=absent"):
        Parameters(tmp_path / "absent").layer_parameter("Absent")
    assert Parameters(tmp_path / "absent").describe("Absent") == ""


def test_fields_are_described(normalize):
    assert "norm_param:" in normalize.describe("Normalize")
    assert "across_spatial: bool = True" in normalize.describe("Normalize")
    assert "pool: MAX | AVE | STOCHASTIC = MAX" in normalize.describe("Pooling")
