"""Errors of pycaffe are RuntimeErrors, and keep their own kind."""

import pytest

from cuffi import caffe


def test_errors_are_runtime_errors_as_boost_s_were(net, tmp_path):
    for call in (
        lambda: caffe.Net(str(tmp_path / "none.prototxt"), caffe.TEST),
        lambda: caffe.get_solver(str(tmp_path / "none.prototxt")),
        lambda: net.copy_from(str(tmp_path / "none.caffemodel")),
        lambda: net.forward(end="none"),
    ):
        with pytest.raises(RuntimeError, match="none"):
            call()
    with pytest.raises(OSError, match=r"none\.prototxt"):
        caffe.Net(str(tmp_path / "none.prototxt"), caffe.TEST)
