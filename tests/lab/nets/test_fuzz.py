"""Random nets: the separate evaluation agrees with results by hand, and mistakes in the toolkit are found."""

import random
import re
import sys
import tempfile

import numpy as np
import pytest
from google.protobuf import text_format
from support import python_with_torch
from support.typed import not_none

from cuffi.caffe_files import prototxt
from cuffi.caffe_files.caffemodel import StoredBlob
from cuffi.nets.net.messages import STOCK
from cuffi.nets.net.net import CaffeNet
from cuffi.nets.net.phases import State
from cuffi.nets.stock import StockLayer
from lab.fuzz.calls import Finding
from lab.nets import fuzz as nets
from lab.nets.fuzz import Blob, Layer, Net, Nets, drawn, evaluated

X = np.array([[1.0, -2.0]])


def net(*layers, state=None, stages=(), level=None, train=False, stored=()):
    return Net(
        list(layers), {"stage": [], **(state or {})}, list(stages), level, None, train, list(stored), False
    )


def power(name, shift, rules):
    return Layer(name, "Power", ["in"], ["in"], {"scale": 2.0, "shift": float(shift)}, rules)


@pytest.mark.parametrize(
    "rules, ways",
    [
        (("include", []), "all"),
        (("include", [{"phase": "TRAIN"}]), "train"),
        (("exclude", [{"phase": "TRAIN"}]), "test"),
        (("include", [{"stage": ["a"], "not_stage": ["b"]}]), "a"),
        (("include", [{"min_level": 2}, {"max_level": -1}]), "level"),
        (("include", [{"min_level": 1, "max_level": 0}]), "none"),
    ],
)
def test_rules(rules, ways):
    calls = {
        "train": dict(train=True), "test": {}, "a": dict(state={"stage": ["a"]}),
        "ab": dict(state={"stage": ["a"]}, stages="b"), "level": dict(state={"level": 2}),
        "zero": dict(state={"level": 2}, level=0),
    }  # fmt: skip
    inside = {
        "all": [*calls],
        "none": [],
        "train": ["train"],
        "test": [c for c in calls if c != "train"],
    }.get(ways, [ways])
    for name, options in calls.items():
        blobs, unread, _, _ = evaluated(net(power("p", 1, rules), **options), X)
        assert np.array_equal(blobs["in"], [[3, -3]] if name in inside else X)
        assert unread == ({"in"} if name in inside else set())


def test_sharing():
    first = Layer(
        "f", "Scale", ["in"], ["f"], {"bias_term": True}, blobs=[Blob((2,), 3, "w", (2, None)), Blob((2,), 5)]
    )
    second = Layer("g", "Scale", ["in"], ["g"], {"bias_term": False}, blobs=[Blob((2,), 7, "w", (None, 4))])
    blobs, unread, parameters, multipliers = evaluated(net(first, second), X)
    assert blobs["f"].tolist() == [[8, -1]] and blobs["g"].tolist() == [[3, -6]] and unread == {"f", "g"}
    assert multipliers == {"f": [(2, 4), (1, 1)], "g": [(2, 4)]}
    stored = [("g", [np.array([1.0, 0.0])]), ("none", [])]
    blobs, _, parameters, _ = evaluated(net(first, second, stored=stored), X)
    assert blobs["f"].tolist() == [[6, 5]] and parameters["g"][0].tolist() == [1, 0]


def test_protobuf_reads_the_same_strings():
    r = random.Random(0)
    for name in nets.NAMES * 20:
        message = STOCK.message("LayerParameter")
        text_format.Parse(f"name: {nets.string(name, r)}", message)
        assert message.name == name


@pytest.fixture(autouse=True)
def place(monkeypatch, tmp_path):
    """For the file of weights."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def tried(count):
    """(the first finding, the outcomes until then) of so many nets."""
    outcomes, r = set(), random.Random(1)
    for _ in range(count):
        try:
            outcomes.add(Nets().attempt((r.randint(1, 8), r.getrandbits(48), r.choice([0, 0, 0, 1]))))
        except Finding as finding:
            return finding, outcomes
    return None, outcomes


def test_the_toolkit_as_it_is():
    assert tried(150) == (None, {"right", "read", "refused"})
    assert str(drawn(5, 8)) == str(drawn(5, 8)) != str(drawn(6, 8))


FILL = StockLayer.fill


@pytest.mark.parametrize(
    "where, what, broken",
    [
        (State, "over", lambda self, state: self),
        (prototxt, "unquoted", lambda value: value.strip("\"'")),
        (StockLayer, "fill", lambda self, keep: FILL(self)),
        (StoredBlob, "fits", lambda self, shape: self.legacy),
        (CaffeNet, "parameter_groups", lambda self, lr, decay: []),
        (nets.np, "allclose", lambda *_, **__: False),
    ],
    ids=["state", "escapes", "fillers", "shapes", "multipliers", "values"],
)
def test_mistakes_are_found(monkeypatch, where, what, broken):
    monkeypatch.setattr(where, what, broken)
    assert tried(500)[0] is not None


def test_a_short_run():
    command = [sys.executable, "-m", "lab.nets.fuzz", "--minutes", "0.001", "--examples", "30"]
    done = python_with_torch.run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = re.search(r"nets +([0-9]+): ", done.stdout)
    assert 1 <= int(not_none(tried)[1]) <= 30 and "0 findings" in done.stdout
