"""Solver files that are refused: each message names the file, the line and the field."""

import pytest

from cuffi.nets.solver import read_settings

GOOD = 'base_lr: 0.1\nlr_policy: "fixed"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            GOOD + "momentun: 0.9",
            "s.prototxt, line 3: momentun: no field 'momentun'; did you mean 'momentum'",
        ),
        (GOOD + "momentum: fast", "s.prototxt, line 3: "),
        (GOOD + 'type: "ADAMW"', "type: expected one of SGD, .* got 'ADAMW'"),
        ('base_lr: 0.1\nlr_policy: "plateau"', "line 2: lr_policy: expected one of fixed, .* got 'plateau'"),
        ('base_lr: 0.1 lr_policy: "step" gamma: 0.1', "lr_policy: 'step' needs stepsize"),
        ('base_lr: 0.1 lr_policy: "poly" power: 1', "lr_policy: 'poly' needs max_iter"),
        ('base_lr: 1 lr_policy: "sigmoid" gamma: -1 stepsize: 9', "line 1: gamma: -1 is out of range"),
        ('lr_policy: "fixed"', "base_lr is missing"),
        ("base_lr: 1", "lr_policy is missing"),
        (GOOD + 'regularization_type: "L3"', "line 3: regularization_type: expected L1 or L2, got 'L3'"),
        (GOOD + "iter_size: 0", "line 3: iter_size: expected 1 or more, got 0"),
        (GOOD + 'type: "AdaGrad"\nmomentum: 0.9', "line 4: momentum: AdaGrad takes no momentum"),
        (GOOD + 'type: "SGD" solver_type: ADAM', "both type and solver_type"),
        ('layer { name: "a" type: "ReLU" }', "line 1: not a solver's file: it is a net"),
        ("base_lr: {", "line 1"),
    ],
)
def test_refusals(text, words, tmp_path):
    path = tmp_path / "s.prototxt"
    path.write_text(text)
    with pytest.raises(ValueError, match=words) as raised:
        read_settings(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected one of net, net_param, train_net and train_net_param, got none"),
        ('net: "a" train_net: "b"', "got net and train_net"),
    ],
)
def test_the_net_is_named_once(text, words, tmp_path):
    path = tmp_path / "s.prototxt"
    path.write_text(GOOD + text)
    with pytest.raises(ValueError, match=words):
        read_settings(path).train_net()


def test_states_and_test_nets(tmp_path):
    path = tmp_path / "s.prototxt"
    path.write_text(
        GOOD + 'net: "n" test_net: "t" test_iter: 1 test_iter: 2 test_interval: 5 '
        'train_state { stage: "deep" level: 2 } test_state { } test_state { stage: "x" }'
    )
    (tmp_path / "n").touch()
    settings = read_settings(path)
    source, state = settings.train_net()
    assert source == str(tmp_path / "n") and state.stages == {"deep"} and state.level == 2
    # A level that the solver does not say is the net's own.
    assert [st.level for _, st in settings.test_nets()] == [None, None]
    assert [(s, st.stages) for s, st in settings.test_nets()] == [("t", set()), (source, {"x"})]
    path.write_text(GOOD + 'net: "n" test_iter: 1 test_interval: 5 test_state { } test_state { }')
    with pytest.raises(ValueError, match="test_state: 2 for 1 test nets"):
        read_settings(path).test_nets()


@pytest.mark.parametrize(("number", "name"), [(0, "SGD"), (1, "Nesterov"), (5, "Adam")])
def test_types_of_old_files(number, name, tmp_path):
    path = tmp_path / "s.prototxt"
    path.write_text(GOOD + f"solver_type: {number}")
    assert read_settings(path).type == name
