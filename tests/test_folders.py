"""Folders of layers outside of the toolkit, in LAYERS_DIR: for make and its tools, and for Python."""

import importlib
import os
import subprocess
import sys

import pytest
from conftest import ROOT, Workshop, make
from support import python_with_torch

import cuffi
from cuffi.caffe_layers.provides_ported_layers import Ported
from cuffi.nets.net.registry import Folders

CAFFE = 'from .._caffe import caffe_layer\n\nOwn = caffe_layer(__name__, "{type}")\n'


@pytest.fixture
def both(tmp_path):
    """Two folders of layers."""
    shops = Workshop(tmp_path / "a"), Workshop(tmp_path / "b")
    for shop in shops:
        shop.folder.mkdir()
    return shops


def listed(shops) -> str:
    return ":".join(str(shop.folder) for shop in shops)


def ported(type_name: str, *folders) -> Ported:
    found = Folders(folders).find(type_name)
    assert isinstance(found, Ported)
    return found


def test_layers_of_all_folders_are_built_and_are_layers(both):
    a, b = both
    a.layer("one", value="1", cases_py="CASES = []\n")
    (
        b.layer("two", value="2", cases_py="CASES = []\n"),
        b.layer("round", cases_py="CASES = []\n"),
        b.layer("left_out"),
    )
    # Somebody's copy of the toolkit's own parts is not in the way.
    (
        (a.folder / "_runtime").mkdir(),
        (a.folder / "_runtime" / "__init__.py").write_text("raise RuntimeError\n"),
    )
    done = make("NVCC=", f"LAYERS_DIR={listed(both)}", "LAYERS=one two", "libraries")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {f.parent.name for shop in both for f in shop.folder.glob("*/_host.abi3.so")} == {"one", "two"}
    # As a bundled one, whatever the current folder of layers is called; of two with one name the first.
    script = """
import torch, cuffi.two
from cuffi.one import layer
one, two = torch.zeros(2), torch.zeros(2)
layer.one_fill(one, 2), cuffi.two.layer.two_fill(two, 2)
print(one.tolist(), two.tolist(), cuffi.round.__file__, cuffi.sigmoid.__file__, sep="\\n")
try:
    cuffi.left_out.layer.left_out_fill(one, 2)
except cuffi.CaffeRuntimeError as error:
    print(error)
try:
    cuffi.nosuch
except AttributeError as error:
    print(error)
from benchmarks._cases import layers_here
print([folder.name for folder in layers_here()])
"""
    environment = os.environ | {"LAYERS_DIR": f"{listed(both)}:"}
    done = python_with_torch.run([sys.executable, "-c", script], env=environment)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    own, bundled = b.folder / "round" / "__init__.py", ROOT / "layers" / "sigmoid" / "__init__.py"
    assert said[:4] == ["[1.0, 1.0]", "[2.0, 2.0]", str(own), str(bundled)]
    assert f"Type `make LAYERS_DIR={b.folder} LAYERS=left_out`" in said[4]
    assert all(f" {name}" in said[5] for name in ("one", "two", "sigmoid"))
    assert said[6] == "['one', 'round', 'two']"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["LAYERS=one nosuch"], "LAYERS: no layer nosuch in {a} {b}"),
        (["BUILD=/tmp/nosuch"], "BUILD: several folders of layers cannot share a build folder"),
        (["LAYERS_DIR={a}:{b}/nosuch"], "LAYERS_DIR: there is no folder {b}/nosuch"),
    ],
)
def test_what_make_refuses(both, arguments, said):
    a, b = both
    a.layer("one")
    places = {"a": a.folder, "b": b.folder}
    done = make(
        "-n", "NVCC=", f"LAYERS_DIR={listed(both)}", *(x.format(**places) for x in arguments), "libraries"
    )
    assert done.returncode != 0 and said.format(**places) in done.stderr


def test_new_layers_go_into_the_first(both):
    a, b = both
    assert make("new", "LAYER=foo", f"LAYERS_DIR={listed(both)}").returncode == 0
    assert (a.folder / "foo" / "foo.cu").exists() and not list(b.folder.iterdir())


def test_the_suite_tests_one_after_the_other(both):
    done = subprocess.run(
        [sys.executable, ROOT / "test.py"],
        capture_output=True, text=True, env=os.environ | {"LAYERS_DIR": listed(both)},
    )  # fmt: skip
    assert done.returncode != 0
    assert [f"Nothing is built in {shop.folder}" in done.stderr for shop in both] == [True, True]


def test_a_nets_layers_are_found(both, monkeypatch):
    a, b = both
    for shop, name, type_name in ((a, "own", "Own"), (b, "own", "Own"), (b, "normalize", "Normalize")):
        (shop.folder / name).mkdir()
        (shop.folder / name / "__init__.py").write_text(CAFFE.format(type=type_name))
    bundled = ported("Normalize").folder
    monkeypatch.setenv("LAYERS_DIR", listed(both))
    assert ported("Own").folder == a.folder / "own"
    assert ported("Normalize").folder == b.folder / "normalize" != bundled
    assert ported("Own").module_name() == "cuffi.own"
    of_b = ported("Own", b.folder)
    assert of_b.folder == b.folder / "own" and of_b.module_name() != "cuffi.own"
    # A name that is like that of a layer of the toolkit.
    (b.folder / "normalise").mkdir()
    (b.folder / "normalise" / "__init__.py").write_text(CAFFE.format(type="Like"))
    assert ported("Like", b.folder).module_name().endswith(".normalise")
    # Two folders whose names differ by a mark alone are two packages.
    for mark in "-_":
        (b.folder / f"of{mark}mine" / "own").mkdir(parents=True)
        (b.folder / f"of{mark}mine" / "own" / "__init__.py").write_text(CAFFE.format(type="Own"))
    of_marks = [ported("Own", b.folder / f"of{mark}mine") for mark in "-_-"]
    first, second, again = (own.module_name() for own in of_marks)
    assert first == again != second
    monkeypatch.setenv("LAYERS_DIR", f"{a.folder}/nosuch")
    with pytest.raises(ImportError, match=f"LAYERS_DIR: there is no folder {a.folder}/nosuch"):
        Folders()


def test_folder_outside_gets_one_file(workshop):
    """Its __init__.py, by which the layers find the toolkit's own runtime."""
    workshop.layer("one", value="7")
    workshop.build()
    assert {p.name for p in workshop.folder.iterdir()} == {"one", "build", "__init__.py"}
    # In a process that has never heard of the toolkit.
    said = workshop.python(f"""{workshop.importing("one")}
import sys, cuffi, {workshop.folder.name}
print({workshop.folder.name}._runtime is cuffi.runtime, [m for m in sys.modules if m.endswith("runtime.layer")])
""")
    assert said == "7.0\nTrue ['cuffi.runtime.layer']"
    made = (workshop.folder / "__init__.py").stat().st_mtime_ns
    workshop.build()
    assert (workshop.folder / "__init__.py").stat().st_mtime_ns == made


def test_own_init_stays(workshop):
    workshop.layer("one", value="7")
    own = workshop.folder / "__init__.py"
    own.write_text("MINE = 1\n")
    assert "add `import cuffi; cuffi.adopt(__name__)` to it" in workshop.build()
    assert own.read_text() == "MINE = 1\n"


def test_layers_that_import_the_installed_toolkit_get_nothing(workshop):
    one = workshop.layer("one")
    (one / "__init__.py").write_text("from cuffi import Layer\n\nlayer = Layer(__name__)\n")
    workshop.build()
    assert not (workshop.folder / "__init__.py").exists()


def test_a_folder_that_is_not_there(monkeypatch, tmp_path):
    """With a typo in LAYERS_DIR the toolkit's `normalize` would run instead of the user's."""
    monkeypatch.setenv("LAYERS_DIR", f"{tmp_path}:{tmp_path / 'nope'}")
    with pytest.raises(ImportError, match=rf"LAYERS_DIR: there is no folder {tmp_path / 'nope'}"):
        importlib.import_module("cuffi.no_such_layer")
    with pytest.raises(ImportError, match="there is no folder"):
        getattr(cuffi, "no_such_layer")  # noqa: B009


@pytest.mark.parametrize(
    ("name", "near"),
    [("sigmoidd", "cuffi.sigmoid"), ("lltn", "cuffi.lltm"), ("normalise", "cuffi.normalize")],
)
def test_a_misspelt_layer_is_told_its_name(name, near):
    with pytest.raises(
        ModuleNotFoundError, match=f"No module named 'cuffi.{name}'. Did you mean .*{near}"
    ) as raised:
        importlib.import_module(f"cuffi.{name}")
    assert raised.value.name == f"cuffi.{name}"


@pytest.mark.parametrize("name", ["xyzxyz", "_nothing", "sigmoid.nothing"])
def test_another_name_is_python_s_own_error(name):
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(f"cuffi.{name}")
    assert "Did you mean" not in str(raised.value)


@pytest.mark.parametrize("target", ["buld", "install"])
def test_a_target_that_does_not_exist(target):
    done = subprocess.run(["make", "-C", ROOT, target], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"there is no target '{target}'. There are: all libraries test" in done.stderr
