"""make net and make verify-net: their output, their calls of port and make, and their status."""

import io
import itertools
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from cuffi.commands.net import __main__ as net
from cuffi.commands.net.compare import Difference
from cuffi.runtime import CaffeValueError
from tools.make import clean
from tools.make.settings import ROOT, Settings

TEXT = """name: "[b]small"
input: "in" input_shape { dim: 2 dim: 3 dim: 4 dim: 4 }
layer { name: "c" type: "Convolution" bottom: "in" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "n" type: "BatchNorm" bottom: "c" top: "n" }
layer { name: "s" type: "Scale" bottom: "n" top: "s" }
layer { name: "[/own]" type: "Normalize" bottom: "s" top: "own" }
layer { name: "sum" type: "Reduction" bottom: "own" top: "sum" }
"""
OWN = """input: "data" input_shape { dim: 2 dim: 3 dim: 4 dim: 4 }
layer { name: "own" type: "Normalize" bottom: "data" top: "own" }
"""


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The options of a command line; a prototxt's text becomes a file."""
    for name in (
        "PROTOTXT",
        "WEIGHTS",
        "CAFFE",
        "PHASE",
        "SHAPES",
        "REPLACE",
        "IGNORE",
        "STAGES",
        "PYTHON_LAYERS",
        "PYTHON_PATH",
        "LAYERS_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def ask(target, text="", **settings):
        if text:
            (tmp_path / "x.prototxt").write_text(text)
            settings["PROTOTXT"] = str(tmp_path / "x.prototxt")
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["net", *target.split()])

    yield ask
    torch.set_default_dtype(torch.float32)


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
    total = "5 layers, 117 parameters, loaded in 1.0 s; forward 4000.0 ms on cpu. Inputs: in. Outputs: sum."
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
    runs = property(lambda self: "[b]somebody runs it")
    monkeypatch.setattr("cuffi.nets.net.onnx.Certificate.runs", runs)
    monkeypatch.setattr("cuffi.nets.net.onnx.Certificate.agrees", False)
    assert net.main() == 1
    said = capsys.readouterr().out
    assert "[b]somebody runs it\n" in said and "NOT EQUAL to 1e-05" in said


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
    assert nets[0](x).isfinite().all() and not net.caffe_net(text)(x).isfinite().all()


def test_an_error_of_the_run_names_the_layer(asked, monkeypatch, capsys):
    monkeypatch.setattr(net.CaffeNet, "run_calls", lambda *_: torch.zeros(2).view(3))
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
    found = net.Asked([Settings({})], verify=True)
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
        ("show", {}, 2, "make net PROTOTXT="),
        ("verify", {}, 2, "make verify-net PROTOTXT="),
        ("", {"PROTOTXT": "x"}, 2, "make net PROTOTXT="),
        ("bench", {"PROTOTXT": "x"}, 2, "make net PROTOTXT="),
        (
            "show",
            {"PROTOTXT": "/no/such.prototxt"},
            1,
            "PROTOTXT=/no/such.prototxt: there is no /no/such.prototxt",
        ),
        (
            "show",
            {"PROTOTXT": "no.prototxt"},
            1,
            f"PROTOTXT=no.prototxt: there is no {ROOT}/no.prototxt",
        ),
        (
            "show",
            {"text": OWN, "WEIGHTS": "/no/x.caffemodel"},
            1,
            "WEIGHTS=/no/x.caffemodel: there is no /no/x.",
        ),
        ("show", {"text": OWN, "SHAPES": "data"}, 1, "SHAPES: expected name=value"),
        ("show", {"text": OWN, "SHAPES": "data=1,a"}, 1, "SHAPES: expected sizes"),
        ("show", {"text": OWN, "REPLACE": "A"}, 1, "REPLACE: expected name=value"),
    ],
)
def test_what_it_cannot_show(asked, capsys, target, settings, status, said):
    asked(target, **settings)
    assert net.main() == status and said in capsys.readouterr().out


@pytest.mark.parametrize("status", [0, 1])
def test_what_is_missing_is_ported_and_built(asked, tmp_path, monkeypatch, fork, status):
    """Each type that stock Caffe lacks is ported once. If port fails, the command ends."""
    ran, folder = [], tmp_path / "new" / "mine"
    monkeypatch.setattr(
        net.subprocess,
        "run",
        lambda command, **_: ran.append(command[2:]) or SimpleNamespace(returncode=status),
    )
    asked("show", TEXT.replace("Normalize", "Own").replace("Reduction", "Own"), CAFFE=str(fork.root))
    wanted = net.Asked([Settings({"LAYERS_DIR": str(folder)})], verify=False)
    said = io.StringIO()
    assert net.port_missing(wanted, Console(file=said, width=200)) is (status == 0)
    assert ran == [
        [
            "cuffi.caffe_layers.port",
            f"--caffe={fork.root}",
            f"--layers-dir={folder}",
            "--unbuilt",
            "--",
            "Own",
        ]
    ]
    told = [f"Porting Own from {fork.root}"] + ["Not ported: Own. The lines above have the reasons"] * status
    assert said.getvalue().splitlines() == told and folder.is_dir()
    # There, and not built.
    (folder / "own").mkdir()
    (folder / "own" / "__init__.py").write_text('caffe_layer(__name__, "Own")\n')
    ran.clear()
    assert net.port_missing(wanted, Console(file=said, width=200)) is (status == 0)
    assert ran == [["tools.make.build", "libraries", f"LAYERS_DIR={folder}", "LAYERS=own"]]
    # For the comparison stock types are ported, too.
    wanted.verify, _ = True, ran.clear()
    net.port_missing(wanted, Console(file=said, width=200))
    assert ran[0][-1] == "Convolution BatchNorm Scale"


def test_another_trees_layer_does_not_hide_the_forks_own(asked, tmp_path, monkeypatch, fork, port):
    """If the fork has the type, layers of the toolkit and of other trees are ported again. A user's own layer runs."""
    ran = []
    fork.layer("Normalize")
    fork.layer("Own")
    port("Own")
    first, second = tmp_path / "new", port.folder
    monkeypatch.setattr(
        net.subprocess, "run", lambda command, **_: ran.append(command[2:]) or SimpleNamespace(returncode=0)
    )

    def said(*folders, tree=fork.root):
        asked("show", TEXT.replace("Reduction", "Own"), CAFFE=str(tree))
        text = io.StringIO()
        wanted = net.Asked([Settings({"LAYERS_DIR": str(folder)}) for folder in folders], verify=False)
        net.port_missing(wanted, Console(file=text, width=200))
        return [command[-1] for command in ran if command[0] == "cuffi.caffe_layers.port"], text.getvalue()

    assert said(first, second)[0] == ["Normalize"]
    # The fork changes its layer: what was ported is not its own any more.
    fork.layer("Own", body="int changed;")
    ran.clear()
    assert said(first, second)[0] == ["Normalize Own"]
    ran.clear()
    ported, text = said(second)
    assert ported == ["Normalize"] and f"Own: {second}/own runs, not {fork.root}'s own. To run that:" in text
    (second / "own" / "ORIGIN").unlink()
    ran.clear()
    ported, text = said(first, second)
    assert ported == ["Normalize"] and f"Own: {second}/own runs, not {fork.root}'s own. To run that:" in text
    # A fork without the type changes nothing.
    (fork.root / "src/caffe/layers/own_layer.cpp").unlink()
    ran.clear()
    ported, text = said(first, second)
    assert ported == ["Normalize"] and "runs, not" not in text


def test_the_toolkits_own_is_no_answer_if_port_fails(asked, tmp_path, monkeypatch, fork):
    fork.layer("Normalize")
    monkeypatch.setattr(net.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    asked("show", OWN, CAFFE=str(fork.root))
    said = io.StringIO()
    wanted = net.Asked([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
    assert not net.port_missing(wanted, Console(file=said, width=200))
    assert "Not ported: Normalize. " in said.getvalue()


def test_only_what_the_phase_needs_is_ported(asked, tmp_path, monkeypatch, fork):
    """If that cannot be ported, the message names the phase that does not need it."""
    ran = []
    monkeypatch.setattr(
        net.subprocess, "run", lambda command, **_: ran.append(command[-1]) or SimpleNamespace(returncode=1)
    )

    def said(*rules, phase=None, stages=()):
        layers = "".join(
            f'layer {{ name: "{i}" type: "Own{i}" bottom: "own" top: "{i}" include {{ {rule} }} }}\n'
            for i, rule in enumerate(rules)
        )
        asked("show", OWN + layers, CAFFE=str(fork.root))
        wanted = net.Asked([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
        wanted.phase, wanted.options["stages"], text = phase, stages, io.StringIO()
        assert not net.port_missing(wanted, Console(file=text, width=200))
        return ran.pop(), re.findall("PHASE=.*", text.getvalue())

    rules = "phase: TRAIN", "phase: TEST", 'stage: "show"'
    assert said(*rules) == ("Own0 Own1", [])
    assert said(*rules, phase="TRAIN") == ("Own0", []) and said(*rules, phase="TEST") == ("Own1", [])
    assert said(*rules, phase="TEST", stages=("show",)) == ("Own1 Own2", [])
    assert said(rules[0], rules[0]) == ("Own0 Own1", ["PHASE=TEST needs none of these"])


def test_a_forks_field_of_a_stock_type_is_named(asked, tmp_path, monkeypatch):
    """With its place in the prototxt and in the fork, and what to do if the fork's layer cannot be ported."""
    monkeypatch.setattr(net.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    text = TEXT.replace("num_output: 4", "num_output: 4 rank: 3")
    (tmp_path / "fork/include/caffe").mkdir(parents=True)
    (tmp_path / "fork/src/caffe").mkdir(parents=True)
    asked("show", text, CAFFE=str(tmp_path / "fork"))
    wanted = net.Asked([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
    proto = tmp_path / "fork" / "caffe.proto"
    proto.write_text("message Other {\n  optional int32 rank = 1;\n}\nmessage ConvolutionParameter {\n}\n")
    said = io.StringIO()
    wrong = r"line 4: .*_param.rank of Conv.*, nor has .*IGNORE=convolution_param.rank"
    with pytest.raises(CaffeValueError, match=f"(?s){wrong}"):
        net.port_missing(wanted, Console(file=said, width=200))
    proto.write_text("message ConvolutionParameter {\n  // rank = 9\n  optional int32 rank = 9;\n}\n")
    assert not net.port_missing(wanted, Console(file=said, width=200))
    assert said.getvalue().splitlines()[-4:] == [
        f"Porting Convolution from {proto.parent}",
        "  line 4: convolution_param.rank of Convolution is a field that stock Caffe does not have. "
        f"It is declared at {proto}:3",
        "Not ported: Convolution. The lines above have the reasons",
        "If the fork's own fields do not matter: IGNORE=convolution_param.rank",
    ]


def test_pairs():
    assert (
        net.pairs("SHAPES", " a=1,2  b=x=y ") == [("a", "1,2"), ("b", "x=y")]
        and net.pairs("SHAPES", "") == []
    )
    with pytest.raises(CaffeValueError, match=r"SHAPES: expected name=value, or several, got 'a=1 b'"):
        net.pairs("SHAPES", "a=1 b")


def test_stock_caffes_messages_are_made_where_they_are_missing_or_older(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(net.subprocess, "run", lambda command, **_: ran.append(command[2:]))
    stock, made = tmp_path / "core/caffe.proto", tmp_path / "net/_caffe.desc"
    monkeypatch.setattr(net, "STOCK_PROTO", stock)
    monkeypatch.setattr(net, "STOCK", SimpleNamespace(path=made))
    for file in (stock, made):
        file.parent.mkdir(parents=True)
    stock.write_text("")
    made.with_name("known.proto").write_text("")
    net.make_messages("core")
    assert ran and ran[0][0] == "cuffi.caffe_layers.make.proto" and ran[0][-1] == "core/net"
    made.write_text("")
    for age, count in ((10, 1), (-10, 2)):
        net.os.utime(made, (stock.stat().st_mtime + age,) * 2)
        net.make_messages("core")
        assert len(ran) == count


def test_what_is_ported_to_be_compared_has_a_place_of_its_own(tmp_path, monkeypatch):
    """Not the checkout's layers/, where the next make would build it; `make clean` removes it."""
    settings = Settings({"BUILD": str(tmp_path / "b")})
    for fork in ("one", "two"):
        monkeypatch.setenv("CAFFE", str(tmp_path / fork))
        own, *folders = net.Asked([settings], verify=True).folders
        assert Path(own).parent == tmp_path / "b" / "verify-net" and folders == ["layers"]
    assert net.Asked([settings], verify=False).folders == ["layers"]
    entry = next(entry for entry in os.scandir(tmp_path / "b") if entry.name == "verify-net")
    assert clean.is_made(entry)
