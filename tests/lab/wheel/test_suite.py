"""Which tests run where only cuffi-nets is."""

import pytest
from support.root import ROOT

from lab.wheel.suite import copied, main, needs_kernels


@pytest.mark.parametrize(
    "line, expected",
    [
        ("from cuffi import caffe_net", False),
        ("from cuffi.nets.net.graph import Spec", False),
        ("import cuffi.caffe_files.prototxt", False),
        ("from support.nets import draw", False),
        ("from cuffi.runtime import operator", True),
        ("import cuffi.caffe_layers.port.__main__ as tool", True),
        ("from cuffi import judge", True),
        ("def test():\n    from support.points import Point", True),
        ("from tools.make.folders import Folder", True),
    ],
)
def test_what_needs_kernels(tmp_path, line, expected):
    (tmp_path / "test_a.py").write_text(line)
    assert needs_kernels(tmp_path / "test_a.py") is expected


def test_the_tests_are_copied_without_the_package(tmp_path):
    left_out = copied(tmp_path)
    there = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("test_*.py")}
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "nets").rglob("test_*.py")}
    assert ours - there <= set(left_out) and len(ours & there) > 70
    assert (
        not (tmp_path / "cuffi").exists()
        and "def needs_gpu" not in (tmp_path / "tests/conftest.py").read_text()
    )


def test_a_python_without_the_wheel_is_refused(capsys):
    assert main(["/bin/false"]) == 2
    assert "has no cuffi-nets alone" in capsys.readouterr().out
