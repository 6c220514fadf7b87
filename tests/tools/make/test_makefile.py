"""tools.make.makefile: the files and recipes of the Caffe core's objects."""

import os
import re
import shlex
import subprocess

from conftest import ROOT


def test_standard_headers_are_compiled_once(shared_layers, workshop):
    """Before all else; a compiler that is told otherwise afterwards passes over what it made, and says nothing."""
    crooked = shared_layers.build_layers("caffe_crooked") / "caffe_crooked"
    workshop.folder.mkdir()
    (workshop.folder / "crooked").symlink_to(crooked)
    workshop.layer("one")
    (workshop.layer("two") / "macros_first").touch()
    workshop.build("libraries", "LAYERS=two")  # the tree's layers need no such header
    (workshop.folder / "two" / "_host.abi3.so").unlink()
    said = workshop.build("-n", "V=1", "libraries")
    for source in ("square_layer.cpp", "square_layer.cu", "registration.cpp", "one.cu", "two.cu"):
        (command,) = set(re.findall(rf"if \(  *(\S.*?) -MD .*/{source}\.o\.partial", said))
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
    (command,) = set(re.findall(r"\( +(\S.*? build_ffi\.py \S+/one\.h .*?) \) >", said))
    python, script, header, _, *options = shlex.split(command)
    options[options.index("--cxx") + 1] += " -H"
    words = [python, script, header, str(tmp_path / "_host.o"), *options]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^x .*\.gch$|^\.+ .*/patchlevel\.h$", done.stderr, re.M), done.stderr
