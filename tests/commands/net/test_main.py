"""make net and make verify-net: their output, their calls of port and make, and their status."""

import io
import itertools
import re
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from support.net_command import OWN, TEXT

from cuffi.commands.net import __main__ as net
from cuffi.commands.net.compare import Difference
from cuffi.runtime import CaffeValueError
from tools.make.settings import ROOT, Settings


def test_a_net_is_shown(asked, monkeypatch, capsys):
    """The clock moves by a second at each reading."""
    monkeypatch.setattr(net, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    asked("show", TEXT)
    assert net.main() == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if "│" in line]
    assert rows == [
        ["c", "Convolution", "torch", "2 x 4 x 2 x 2", "112", "1000.00"],
        ["n", "BatchNorm", "torch", "2 x 4 x 2 x 2", "9", "1000.00"],
        ["s", "Scale", "torch", "2 x 4 x 2 x 2", "4", "with the one above"],
        ["[/own]", "Normalize", "torch, as weiliu89/caffe, ssd", "2 x 4 x 2 x 2", "1", "1000.00"],
        ["sum", "Reduction", "torch", "scalar", "", "1000.00"],
    ]
    note, title = [line.strip() for line in said.splitlines() if line.strip()][:2]
    assert note == "Normalize: torch computes it, as weiliu89/caffe, ssd does" and title == "[b]small"
    where = "cuda" if torch.cuda.is_available() else "cpu"
    total = (
        f"5 layers, 117 parameters, loaded in 1.0 s; forward 4000.0 ms on {where}. Inputs: in. Outputs: sum."
    )
    assert total in said and re.search(r"net = caffe_net\('\S+x.prototxt'\)\nout = net\(\.\.\.\)\n", said)


@pytest.mark.filterwarnings("ignore")
def test_a_net_becomes_onnx(asked, monkeypatch, tmp_path, capsys):
    """The status is that of the certificate."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    asked("onnx", TEXT, ONNX=str(tmp_path / "there.onnx"))
    assert net.main() == 0
    said = capsys.readouterr().out
    blobs = [line.split("│")[1].strip() for line in said.splitlines() if "│" in line]
    assert blobs == ["c", "n", "s", "own", "sum"]
    assert "there.onnx: all blobs agree to 1e-05 (onnxruntime" in said and (tmp_path / "there.onnx").exists()
    monkeypatch.setattr("cuffi.nets.net.onnx.Certificate.agrees", False)
    assert net.main() == 1
    assert "NOT EQUAL to 1e-05" in capsys.readouterr().out


def test_a_deep_net_without_weights_stays_finite(asked, tmp_path, monkeypatch, capsys):
    """A norm without statistics multiplies by 316. Given weights do not change."""
    nets = []
    monkeypatch.setattr(net, "timed", lambda net, *_: nets.append(net) or {})
    monkeypatch.setattr(net, "table", lambda *_: "")
    norm = 'layer {{ name: "n{0}" type: "BatchNorm" bottom: "{1}" top: "n{0}" }}\n'
    text = OWN.splitlines()[0] + "".join(norm.format(i, f"n{i - 1}" if i else "data") for i in range(20))
    asked("show", text)
    assert net.main() == 0
    nets[0].save_caffemodel(str(tmp_path / "x.caffemodel"))
    saved = [blob.clone() for blob in nets[0].state_dict().values()]
    asked("show", text, WEIGHTS=str(tmp_path / "x.caffemodel"))
    assert net.main() == 0
    assert all(map(torch.equal, saved, nets[1].state_dict().values()))
    x = torch.randn(2, 3, 4, 4)
    assert nets[0].cpu()(x).isfinite().all() and not net.caffe_net(text)(x).isfinite().all()


def test_an_error_of_the_run_names_the_layer(asked, monkeypatch, capsys):
    def run(net, calls, values):
        for _ in calls:
            torch.zeros(2).view(3)

    monkeypatch.setattr("cuffi.nets.net.running.run_calls", run)
    asked("show", OWN)
    assert net.main() == 1
    assert "x.prototxt, line 2: layer 'own' (Normalize): " in capsys.readouterr().out


@pytest.mark.parametrize(
    "inputs, last, outputs, call",
    [
        ("ab", "", "t", "net(a=..., b=...)"),
        (["a-b", "b"], "", "t", "net(..., ...)"),
        (
            "ab",
            'layer { name: "s" type: "Silence" bottom: "t" }',
            "none, all are silenced",
            "net(a=..., b=..., blobs=['t'])",
        ),
    ],
)
def test_the_call_that_is_shown_has_each_input_and_what_is_silenced(
    asked, capsys, inputs, last, outputs, call
):
    first = "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ dim: 2 }} }} }}\n'
        for name in inputs
    )
    bottoms = " ".join(f'bottom: "{name}"' for name in inputs)
    asked("show", f'{first}layer {{ name: "t" type: "Eltwise" {bottoms} top: "t" }}\n{last}')
    assert net.main() == 0
    *_, total, _, loaded, said, _ = capsys.readouterr().out.split("\n")
    assert total.endswith(f" Outputs: {outputs}.") and said == f"out = {call}"
    made = eval(loaded.removeprefix("net = "), {"caffe_net": net.caffe_net})
    value = eval(call.replace("...", "torch.ones(2)"), {"net": made, "torch": torch})
    assert torch.equal(value["t"] if last else value, torch.full((2,), 2.0))


def test_the_lines_for_python_load_the_same_net(asked, monkeypatch, capsys):
    """They have what the command line gave, without which the file would not load."""
    text = 'layer { name: "in" type: "Input" top: "in" }\n' + OWN.partition("\n")[2].replace('"data"', '"in"')
    given = {"SHAPES": "in=2,3,4,4", "PHASE": "TEST", "REPLACE": "S=1", "IGNORE": "x y", "STAGES": "deploy"}
    asked("show", text, **given)
    assert net.main() == 0
    lines = capsys.readouterr().out.splitlines()
    loaded = next(line.removeprefix("net = ") for line in lines if line.startswith("net = "))
    path = net.os.environ["PROTOTXT"]
    options = (
        "phase='TEST', shapes={'in': (2, 3, 4, 4)}, replace={'S': '1'}, ignore=('x', 'y'), stages=('deploy',)"
    )
    assert loaded == f"caffe_net({path!r}, {options})"
    made = eval(loaded, {"caffe_net": net.caffe_net})
    assert made(torch.zeros(2, 3, 4, 4)).shape == (2, 3, 4, 4)


def test_what_is_to_be_known_of_a_net_is_told_as_it_stands(asked, capsys):
    text = OWN.replace("Normalize", "ReLU").replace('"own" t', '"[/own]" relu_param { strange: 1 } t')
    asked("show", text, IGNORE="relu_param.strange")
    assert net.main() == 0
    assert "line 2: '[/own]': relu_param.strange is ignored, as told" in capsys.readouterr().out


def test_an_error_names_what_is_to_be_typed(asked, monkeypatch, capsys):
    """With that command the net is shown."""
    text = 'layer { name: "in" type: "Input" top: "in" }\n' + OWN.partition("\n")[2].replace('"data"', '"in"')
    strange = OWN.replace("Normalize", "ReLU").replace('"own" t', '"own" relu_param { strange: 1 } t')
    for net_text, setting in ((text, "SHAPES"), (strange, "IGNORE")):
        asked("show", net_text)
        assert net.main() == 1
        said = capsys.readouterr().out
        (value,) = re.findall(rf"\b{setting}=([\w.=]+\w)", said)
        assert not re.search(r"\b(shapes|ignore)=", said), said
        asked("show", net_text, **{setting: value.replace("=1", "=2,3,4,4")})
        status, said = net.main(), capsys.readouterr().out
        assert status == 0, said
        monkeypatch.delenv(setting)


def test_several_shapes_that_are_to_be_typed():
    said = net.as_typed("a: shapes={'x': (...)}\nb: shapes={'im_info': (...)}\nc: shapes={'x': (...)}")
    assert said.splitlines()[-1] == "Together: SHAPES='x=1,3,... im_info=1,3,...'"
    assert "Together" not in net.as_typed("a: shapes={'x': (...)}\nc: shapes={'x': (...)}")


def test_numbers_that_nobody_gave_are_the_same_each_time(asked, monkeypatch):
    drawn = []
    monkeypatch.setattr(net, "show", lambda *_: drawn.append(torch.rand(3).tolist()) or 0)
    for _ in range(2):
        asked("show", OWN)
        assert net.main() == 0
    assert drawn[0] == drawn[1]


def test_two_nets_that_agree(asked, capsys):
    asked("verify", OWN)
    assert net.main() == 0
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if "│" in line]
    assert [row[:3] for row in rows] == [["blobs", "1", "0"], ["blobs", "1", "0"], ["gradients", "1", "0"]]
    assert [title in said for title in ("phase TEST", "phase TRAIN")] == [True, True]
    assert said.endswith("agree\n")
    asked("verify", OWN, PHASE="TEST")
    assert net.main() == 0 and "TRAIN" not in capsys.readouterr().out


def test_two_nets_that_differ(asked, monkeypatch, capsys):
    """One phase that differs is enough, the first as well as the last."""
    wrong = [Difference("blob", "x", 1.0)]
    for first, second in ((wrong, []), ([], wrong)):
        made = iter((first, second))
        monkeypatch.setattr(net, "compare", lambda *_, made=made, **__: next(made))
        asked("verify", OWN)
        assert net.main() == 1
        assert capsys.readouterr().out.endswith("DIFFER\n")


@pytest.mark.parametrize(
    ("what", "error", "right"),
    [
        ("blob", 0.9e-4, True),
        ("blob", 1.1e-4, False),
        ("gradient", 0.9e-3, True),
        ("gradient", 1.1e-3, False),
        ("blob", float("nan"), False),
    ],
)
def test_what_is_a_difference(what, error, right):
    text = io.StringIO()
    found = [Difference(what, "least", 0.0, True), Difference(what, "most", error)]
    assert net.report(found, "TEST", Console(file=text, width=200)) is right
    row = next(line for line in text.getvalue().splitlines() if line.startswith("│"))
    assert [cell.strip() for cell in row.split("│")[1:4]] == [f"{what}s", "2", "1"]
    assert (f"{what} most: {error:.1e}" in text.getvalue()) is not right


def test_gradients_that_are_all_zero():
    zero = [Difference("gradient", name, 0.0, True) for name in "ab"]
    blob, one = Difference("blob", "c", 0.0), Difference("gradient", "d", 0.0)
    assert net.verdict(True, [blob, *zero])[0].startswith("the blobs agree; all 2 gradients are zero")
    assert net.verdict(True, [*zero, one]) == ("agree", "green") == net.verdict(True, [blob])
    assert net.verdict(False, zero) == ("DIFFER", "red")


def test_no_more_than_twenty_are_listed():
    text = io.StringIO()
    wrong = [Difference("blob", f"b{i}", 1.0 + i) for i in range(30)]
    assert not net.report(wrong, "TEST", Console(file=text, width=200))
    said = text.getvalue()
    assert said.count("\nblob b") == 20 and re.search(r"3.0e\+01 +│ b29 ", said)


def test_what_is_asked_for(asked):
    asked(
        "show", OWN, SHAPES="data=1,3,8,8 x=2", REPLACE="A=1 B=", PHASE="TRAIN", IGNORE="a.b c", STAGES="s t",
        PYTHON_LAYERS="1", PYTHON_PATH="/a:/b c",
    )  # fmt: skip
    found = net.CommandLine([Settings({})], verify=True)
    assert found.verify and found.phase == "TRAIN" and found.weights is None
    assert found.options == {
        "layers": ["layers"],
        "phase": "TRAIN",
        "shapes": {"data": (1, 3, 8, 8), "x": (2,)},
        "replace": {"A": "1", "B": ""},
        "ignore": ("a.b", "c"),
        "stages": ("s", "t"),
        "python_layers": True,
        "python_path": ("/a", "/b c"),
    }


@pytest.mark.parametrize(
    ("target", "settings", "status", "said"),
    [
        ("show", {}, 2, "which net? make net PROTOTXT="),
        ("verify", {}, 2, "make verify-net PROTOTXT="),
        ("", {"PROTOTXT": "x"}, 2, "make net PROTOTXT="),
        ("bench", {"PROTOTXT": "x"}, 2, "make net PROTOTXT="),
        (
            "show",
            {"PROTOTXT": "/no/such.prototxt"},
            1,
            "PROTOTXT=/no/such.prototxt: there is no such file: there is no folder /no",
        ),
        (
            "show",
            {"PROTOTXT": "no.prototxt"},
            1,
            f"PROTOTXT=no.prototxt: there is no such file in {ROOT}",
        ),
        (
            "show",
            {"text": OWN, "WEIGHTS": "/no/x.caffemodel"},
            1,
            "WEIGHTS=/no/x.caffemodel: there is no such file: there is no folder /no",
        ),
        ("show", {"text": OWN, "SHAPES": "data"}, 1, "SHAPES (--shapes): expected name=value"),
        ("show", {"text": OWN, "SHAPES": "data=1,a"}, 1, "SHAPES (--shapes): expected sizes"),
        ("show", {"text": OWN, "REPLACE": "A"}, 1, "REPLACE (--replace): expected name=value"),
    ],
)
def test_what_it_cannot_show(asked, capsys, target, settings, status, said):
    asked(target, **settings)
    assert net.main() == status and said in capsys.readouterr().out


def test_pairs():
    assert (
        net.pairs("SHAPES", " a=1,2  b=x=y ") == [("a", "1,2"), ("b", "x=y")]
        and net.pairs("SHAPES", "") == []
    )
    with pytest.raises(
        CaffeValueError, match=r"SHAPES \(--shapes\): expected name=value, or several, got 'a=1 b'"
    ):
        net.pairs("SHAPES", "a=1 b")
