"""The times of the tests' folders (support/seconds.py), and nvcc's for each layer (.ci/nvcc_seconds)."""

import runpy

from support.seconds import FILE, grown, read
from support.workshop import ROOT

# As nvcc --time writes it.
TABLE = """source file name , phase name , phase input files , phase output file , arch , tool, metric , unit
build/foo/cuda/foo.cu , cicc ,  /tmp/a.ii  , /tmp/a.ptx , compute_90 , nvcc , 1500.0000 , ms
build/foo/cuda/more.cu , ptxas , /tmp/a.ptx  , /tmp/a.cubin , sm_90 , nvcc , 500.0000 , ms
build/bar/cuda/bar.cu , cicc ,  /tmp/b.ii  , /tmp/b.ptx , compute_90 , nvcc , 250.0000 , ms
 , nvcc (driver) ,  , b.o ,  , nvcc , 0.1750 , ms
"""


def test_a_folder_that_grew_by_a_tenth_is_named():
    before = {"nets": 50.0, "tools/make": 30.0, "docs": 20.0}
    assert not grown({"nets": 100, "tools/make": 60, "docs": 40}, before)  # another machine
    (line,) = grown({"nets": 50, "tools/make": 40, "docs": 20}, before)
    assert line == "tools/make took 40 s, 33 s by tests/seconds.txt"
    assert not grown({"nets": 50, "tools/make": 30, "docs": 20.5}, before)
    assert len(grown({"nets": 50, "new": 50}, before)) == 1


def test_the_file_has_every_folder_with_tests():
    folders = {path.parent for path in FILE.parent.rglob("test_*.py") if "fixtures" not in path.parts}
    names = {"/".join(folder.relative_to(FILE.parent).parts[:2]) or "." for folder in folders}
    assert set(read(FILE.read_text())) == names


def test_nvccs_seconds_are_those_of_a_layers_files(tmp_path, capsys):
    """A file with shares of before; then CI names the layer that takes a quarter more."""
    script = runpy.run_path(str(ROOT / ".ci" / "nvcc_seconds"))
    assert script["seconds_of"](TABLE) == {"foo": 2.0, "bar": 0.25}
    (tmp_path / "nvcc.csv").write_text(TABLE)
    script["main"](str(tmp_path / "nvcc.csv"))
    assert "bar 0, foo 2" in capsys.readouterr().out
    parents = ROOT / "layers", ROOT / "cuffi" / "caffe_layers" / "layers"
    layers = {file.parent.name for parent in parents for file in parent.glob("*/*.cu")}
    assert set(read(script["FILE"].read_text())) == layers | {"core"}
