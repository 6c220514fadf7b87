"""The types that a net needs, before anything is built."""

from support.typed import not_none

from cuffi.nets.net.needs import Need, needs
from cuffi.nets.net.phases import TEST, TRAIN, State

NET = """input: "x" input_shape { dim: 1 dim: 2 }
layer { type: "DataOfAFork" top: "a" }
layer { type: "Own" top: "b" }
layer { type: "ReLU" bottom: "x" top: "c" include { phase: TRAIN } }
layer { type: "Other" bottom: "x" top: "d" include { phase: TEST } }
layer { type: "Other" bottom: "x" top: "e" include { stage: "late" } }
layer { type: "Power" bottom: "x" top: "f" power_param { of_fork: 1 } }
layer { type: "Power" bottom: "x" top: "g" power_param { shift: 1 } }
layer { type: "Python" bottom: "x" top: "h" }
layer { type: "HDF5Output" bottom: "x" }
"""


def test_all_is_asked_at_once():
    asked = []
    found = needs(NET, states=[State(TEST), State(TRAIN)], own=lambda types: asked.append(types) or ["Own"])
    assert asked == [["DataOfAFork", "Own"]]
    assert [name for name, need in found.items() if need.fields is not None] == ["Own", "Other", "Power"]
    assert found["ReLU"] == Need(None, {TRAIN}) and found["Other"].phases == {TEST}
    (field,) = not_none(found["Power"].fields)
    assert (field.path, field.line) == ("power_param.of_fork", 7)
    assert list(found) == ["Own", "ReLU", "Other", "Power"]


def test_a_field_that_is_ignored_and_a_stage():
    assert needs(NET, ignore=["power_param.of_fork"])["Power"].fields is None
    only = State(TRAIN, stages=frozenset(["late"]))
    assert list(needs(NET, states=[only])) == ["ReLU", "Other", "Power"]
    assert list(needs(NET)) == ["ReLU", "Other", "Power"]
