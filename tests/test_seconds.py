"""The times of the tests' folders (support/seconds.py), and nvcc's for each layer (.ci/nvcc_seconds)."""

import runpy

from support.seconds import FILE, Took, folder_of, grown, of_folders, read, read_tests
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


def test_only_the_same_tests_are_compared():
    """As many cases of each, by its name: another package or nvcc makes no folder slower."""
    before = {
        f"tests/{folder}/test_x.py::test_{n}": Took(10, 3) for folder in ("nets", "docs") for n in range(5)
    }
    more = {"tests/docs/test_x.py::test_0": Took(90, 9), "tests/docs/test_new.py::test_new": Took(500, 1)}
    now = before | more
    assert of_folders(before, now) == of_folders(now, before) == {"nets": 50, "docs": 40}
    slower = now | {"tests/nets/test_x.py::test_1": Took(30, 3)}
    (line,) = grown(of_folders(slower, before), of_folders(before, slower))
    assert line == "nets took 70 s, 61 s by tests/seconds.txt"


def test_the_file_names_tests_that_are_there():
    """Few rows may be of tests that have another name since; a new file is written then."""
    rows = read_tests(FILE.read_text())
    there = [test for test in rows if f"def {test.partition('::')[2]}(" in read_file(test)]
    assert len(there) >= 0.9 * len(rows)
    assert (
        folder_of("tests/nets/net/test_x.py::test_y") == "nets/net" and folder_of("tests/test_x.py::t") == "."
    )


def read_file(test: str) -> str:
    file = FILE.parents[1] / test.partition("::")[0]
    return file.read_text() if file.exists() else ""


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
