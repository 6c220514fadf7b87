"""tools.make.makefile: the files and recipes of the Caffe core's objects."""

import os
import re
import shlex
import subprocess

from conftest import ROOT

from tools.make.makefile import core_folder, units


def test_each_source_of_the_core_is_compiled_once():
    """Together with similar ones, except files of which a layer's folder may have its own version."""
    core = core_folder(str(ROOT))
    made = units(core)
    assert sorted(part for parts in made.values() for part in parts) == core.sources
    together = {unit: parts for unit, parts in made.items() if parts != [unit]}
    assert set(together) == {"base.cpp", "stock.cpp", "stock_loops.cpp"}
    assert "blob.cpp" in together["base.cpp"] and "layers/loss_layer.cpp" in together["base.cpp"]
    assert "net.cpp" in together["stock.cpp"] and "layers/bias_layer.cpp" in together["stock.cpp"]
    assert "layers/pooling_layer.cpp" in together["stock_loops.cpp"]
    alone = {unit for unit in made if unit not in together}
    assert {"io.cpp", "util/im2col.cpp", "util/im2col.cu", "layers/pooling_layer.cu"} <= alone


def test_standard_headers_are_compiled_once(shared_layers, workshop):
    """Before all else; a compiler that is told otherwise afterwards passes over what it made, and says nothing."""
    crooked = shared_layers.build_layers("caffe_crooked") / "caffe_crooked"
    workshop.folder.mkdir()
    (workshop.folder / "crooked").symlink_to(crooked)
    workshop.layer("one")
    said = workshop.build("-n", "V=1", "libraries")
    for source in ("square_layer.cpp", "square_layer.cu", "registration.cpp", "one.cu"):
        (command,) = set(re.findall(rf"\(  *(\S.*) -MD .*/{source}\.o\.partial", said))
        done = subprocess.run(
            [*shlex.split(command), "-H", "-fsyntax-only", "-xc++", os.devnull],
            cwd=ROOT, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        passed_over = r"^x .*\.gch$|^\.+ .*/(iostream|cuda_launch\.h)$"  # as g++ says it, and as clang does
        assert not re.search(passed_over, done.stderr, re.M), source


def test_headers_of_wrappers_are_compiled_once(workshop, tmp_path):
    workshop.layer("one")
    said = workshop.build("-n", "V=1", "libraries")
    (command,) = set(re.findall(r"\(  *(\S+ build_ffi\.py \S+/one\.h .*?) \) >", said))
    python, script, header, _, *options = shlex.split(command)
    options[options.index("--cxx") + 1] += " -H"
    words = [python, script, header, str(tmp_path / "_host.o"), *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^x .*\.gch$|^\.+ .*/patchlevel\.h$", done.stderr, re.M), done.stderr
