"""make net: types that are missing are ported out of a fork, and built."""

import io
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from support.net_command import OWN, TEXT

from cuffi.commands.net import __main__ as net
from cuffi.commands.net import porting
from cuffi.runtime import CaffeValueError
from tools.make import clean
from tools.make.settings import Settings


@pytest.mark.parametrize("status", [0, 1])
def test_what_is_missing_is_ported_and_built(asked, tmp_path, monkeypatch, fork, status):
    """Each type that stock Caffe lacks is ported once. If port fails, the command ends."""
    ran, folder = [], tmp_path / "new" / "mine"
    monkeypatch.setattr(
        porting.subprocess,
        "run",
        lambda command, **_: ran.append(command[2:]) or SimpleNamespace(returncode=status),
    )
    asked("show", TEXT.replace("Normalize", "Own").replace("Reduction", "Own"), CAFFE=str(fork.root))
    wanted = net.CommandLine([Settings({"LAYERS_DIR": str(folder)})], verify=False)
    said = io.StringIO()
    assert net.prepare(wanted, Console(file=said, width=200)) is (status == 0)
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
    assert net.prepare(wanted, Console(file=said, width=200)) is (status == 0)
    assert ran == [["tools.make.build", "libraries", f"LAYERS_DIR={folder}", "LAYERS=own"]]
    # For the comparison stock types are ported, too.
    wanted.verify, _ = True, ran.clear()
    net.prepare(wanted, Console(file=said, width=200))
    assert ran[0][-1] == "Convolution BatchNorm Scale"


def test_another_trees_layer_does_not_hide_the_forks_own(asked, tmp_path, monkeypatch, fork, port):
    """If the fork has the type, layers of the toolkit and of other trees are ported again. A user's own layer runs."""
    ran = []
    fork.layer("Normalize")
    fork.layer("Own")
    port("Own")
    first, second = tmp_path / "new", port.folder
    monkeypatch.setattr(
        porting.subprocess,
        "run",
        lambda command, **_: ran.append(command[2:]) or SimpleNamespace(returncode=0),
    )

    def said(*folders, tree=fork.root):
        asked("show", TEXT.replace("Reduction", "Own"), CAFFE=str(tree))
        text = io.StringIO()
        wanted = net.CommandLine([Settings({"LAYERS_DIR": str(folder)}) for folder in folders], verify=False)
        net.prepare(wanted, Console(file=text, width=200))
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
    monkeypatch.setattr(porting.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    asked("show", OWN, CAFFE=str(fork.root))
    said = io.StringIO()
    wanted = net.CommandLine([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
    assert not net.prepare(wanted, Console(file=said, width=200))
    assert "Not ported: Normalize. " in said.getvalue()


def test_only_what_the_phase_needs_is_ported(asked, tmp_path, monkeypatch, fork):
    """If that cannot be ported, the message names the phase that does not need it."""
    ran = []
    monkeypatch.setattr(
        porting.subprocess,
        "run",
        lambda command, **_: ran.append(command[-1]) or SimpleNamespace(returncode=1),
    )

    def said(*rules, phase=None, stages=()):
        layers = "".join(
            f'layer {{ name: "{i}" type: "Own{i}" bottom: "own" top: "{i}" include {{ {rule} }} }}\n'
            for i, rule in enumerate(rules)
        )
        asked("show", OWN + layers, CAFFE=str(fork.root))
        wanted = net.CommandLine([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
        wanted.phase, wanted.options["stages"], text = phase, stages, io.StringIO()
        assert not net.prepare(wanted, Console(file=text, width=200))
        return ran.pop(), re.findall("PHASE=.*", text.getvalue())

    rules = "phase: TRAIN", "phase: TEST", 'stage: "show"'
    assert said(*rules) == ("Own0 Own1", [])
    assert said(*rules, phase="TRAIN") == ("Own0", []) and said(*rules, phase="TEST") == ("Own1", [])
    assert said(*rules, phase="TEST", stages=("show",)) == ("Own1 Own2", [])
    assert said(rules[0], rules[0]) == ("Own0 Own1", ["PHASE=TEST needs none of these"])


def test_a_forks_field_of_a_stock_type_is_named(asked, tmp_path, monkeypatch):
    """With its place in the prototxt and in the fork, and what to do if the fork's layer cannot be ported."""
    monkeypatch.setattr(porting.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1))
    text = TEXT.replace("num_output: 4", "num_output: 4 rank: 3")
    (tmp_path / "fork/include/caffe").mkdir(parents=True)
    (tmp_path / "fork/src/caffe").mkdir(parents=True)
    asked("show", text, CAFFE=str(tmp_path / "fork"))
    wanted = net.CommandLine([Settings({"LAYERS_DIR": str(tmp_path / "new")})], verify=False)
    proto = tmp_path / "fork" / "caffe.proto"
    proto.write_text("message Other {\n  optional int32 rank = 1;\n}\nmessage ConvolutionParameter {\n}\n")
    said = io.StringIO()
    wrong = r"line 4: .*_param.rank of Conv.*, nor has .*IGNORE=convolution_param.rank"
    with pytest.raises(CaffeValueError, match=f"(?s){wrong}"):
        net.prepare(wanted, Console(file=said, width=200))
    proto.write_text("message ConvolutionParameter {\n  // rank = 9\n  optional int32 rank = 9;\n}\n")
    assert not net.prepare(wanted, Console(file=said, width=200))
    assert said.getvalue().splitlines()[-4:] == [
        f"Porting Convolution from {proto.parent}",
        "  line 4: convolution_param.rank of Convolution is a field that stock Caffe does not have. "
        f"It is declared at {proto}:3",
        "Not ported: Convolution. The lines above have the reasons",
        "If the fork's own fields do not matter: IGNORE=convolution_param.rank",
    ]


def test_stock_caffes_messages_are_made_where_they_are_missing_or_older(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(porting.subprocess, "run", lambda command, **_: ran.append(command[2:]))
    stock, made = tmp_path / "caffe.proto", tmp_path / "_caffe.desc"
    monkeypatch.setattr(porting, "STOCK_PROTO", stock)
    monkeypatch.setattr(porting, "STOCK", SimpleNamespace(path=made))
    stock.write_text("")
    made.with_name("forks.proto").write_text("")
    porting.make_messages("core")
    assert ran and ran[0][0] == "cuffi.caffe_layers.make.proto" and ran[0][-1] == "core/net"
    made.write_text("")
    for age, count in ((10, 1), (-10, 2)):
        porting.os.utime(made, (stock.stat().st_mtime + age,) * 2)
        porting.make_messages("core")
        assert len(ran) == count


def test_what_is_ported_to_be_compared_has_a_place_of_its_own(tmp_path, monkeypatch):
    """Not the checkout's layers/, where the next make would build it; `make clean` removes it."""
    settings = Settings({"BUILD": str(tmp_path / "b")})
    for fork in ("one", "two"):
        monkeypatch.setenv("CAFFE", str(tmp_path / fork))
        own, *folders = net.CommandLine([settings], verify=True).folders
        assert Path(own).parent == tmp_path / "b" / "verify-net" and folders == ["layers"]
    assert net.CommandLine([settings], verify=False).folders == ["layers"]
    entry = next(entry for entry in os.scandir(tmp_path / "b") if entry.name == "verify-net")
    assert clean.is_made(entry)
