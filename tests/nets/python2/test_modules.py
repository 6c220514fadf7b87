"""Imports of a user's files: their own modules, apart from all others."""

import linecache
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuffi
from cuffi.nets.python2 import folders_of_user


def test_modules_of_a_folder_find_each_other_as_in_python_2(tree):
    files = {
        "rpn/__init__.py": "",
        "rpn/anchors.py": "import bases\nfrom bases import base as b\nx = [bases.base, b]\nprint x",
        "rpn/bases.py": "base = 5",
        "top.py": "import rpn.anchors, rpn.bases as other\nfrom rpn import anchors\nfrom .rpn import bases\n"
        "x = [rpn.anchors.x, other.base, anchors.x, bases.base]",
    }
    assert tree(files).module("top").x == [[5, 5], 5, [5, 5], 5]


def test_two_folders_may_have_modules_of_one_name(tree):
    first, second = tree({"utils.py": "x = 1"}), tree({"utils.py": "x = 2"})
    assert (first.module("utils").x, second.module("utils").x) == (1, 2)
    assert "utils" not in sys.modules


def test_a_user_s_module_is_not_hidden_by_the_toolkit_s(tree):
    files = {
        "layers/__init__.py": "x = 3",
        "layers/foo.py": "y = 4",
        "use.py": "import layers.foo\nz = layers.x",
    }
    made = tree(files)
    assert made.module("use").z == 3
    assert made.module("layers.foo").y == 4


def test_a_module_that_the_process_has_of_the_same_folder_is_shared(tree, monkeypatch):
    made = tree({"config.py": "x = []", "use.py": "import config\nx = config.x"})
    monkeypatch.syspath_prepend(made.places[0])
    config = __import__("config")
    monkeypatch.setitem(sys.modules, "config", config)
    assert made.module("use").x is config.x


def test_a_given_module_wins_over_any_other_and_is_not_left_in_sys_modules(tree):
    caffe: Any = types.ModuleType("caffe")
    caffe.io, caffe.TRAIN = types.SimpleNamespace(f=7), 0
    files = {
        "caffe.py": "raise Exception",
        "use.py": "import caffe.io\nfrom caffe.io import f\nx = [caffe.TRAIN, f]",
    }
    made = tree(files, caffe=caffe)
    assert made.module("use").x == [0, 7]
    assert "caffe" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="draw"):
        tree({"use.py": "import caffe.draw"}, caffe=caffe).module("use")


def test_what_is_missing_names_the_file_and_the_package(tree):
    made = tree(
        {
            "use.py": "import no_such_thing",
            "tolerant.py": "try:\n    import nothing\nexcept ImportError:\n    x = 1",
        }
    )
    with pytest.raises(
        ModuleNotFoundError, match=r"use.py: import no_such_thing: neither in .* pip install no_such_thing"
    ):
        made.module("use")
    assert made.module("tolerant").x == 1


def test_a_traceback_shows_the_file_s_own_line(tree):
    made = tree({"use.py": "def f(a, b):\n    print a\n    return a / b\n"})
    with pytest.raises(ZeroDivisionError) as error:
        made.module("use").f(1, 0)
    frame = next(entry for entry in error.traceback if Path(entry.path).name == "use.py")
    assert linecache.getline(str(frame.path), frame.lineno + 1) == "    return a / b\n"


def test_a_library_that_was_built_for_python_2_gives_way(tree):
    made = tree({"nms/__init__.py": "", "nms/cpu_nms.so": "not a library"})
    assert made.module("nms.cpu_nms").cpu_nms(np.zeros((0, 5), np.float32), 0.5) == []


def test_installed_packages_are_no_folders_of_the_user(tmp_path, monkeypatch):
    (tmp_path / "target" / "x.dist-info").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "target"), str(tmp_path / "own"), *sys.path])
    found = folders_of_user()
    assert found[0] == str(tmp_path / "own")
    ours = str(Path(cuffi.__path__[0]).parent)
    assert not {ours, str(tmp_path / "target"), sysconfig.get_paths()["purelib"]} & set(found)
