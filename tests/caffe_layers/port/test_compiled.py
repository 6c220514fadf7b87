"""make port: the advice for a compiler's error."""

import pytest

from cuffi.caffe_layers.port import __main__ as port
from cuffi.caffe_layers.port.compiled import first_error, hint


def test_an_error_of_the_core(fork, said, tmp_path):
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "a.log").write_text("x: fatal error: the core's\n")
    settings, _ = port.from_environment([])
    assert first_error(tmp_path / "mine" / "silent", settings) == "x: fatal error: the core's"


@pytest.mark.parametrize(
    "error, says",
    [
        ("x.hpp:3:10: fatal error: Eigen/Dense: No such file or directory", "CPLUS_INCLUDE_PATH"),
        ("x.cpp:3: error: class 'X<Dtype>' does not have any field named 'Layer'", "Microsoft's"),
        ("x.cpp:3: error: 'powf' is not a member of 'std'", "Microsoft's"),
        ("x.cpp:3: error: invalid new-expression of abstract class type", "another fork"),
        ("undefined reference to `caffe::x()'", "Copy the fork's file"),
        ("x.cpp:3: error: 'y' was not declared in this scope", "two versions"),
        ("x.cpp:3: error: expected ';'", ""),
    ],
)
def test_what_to_do_about_an_error(error, says):
    assert says in hint(error) and bool(says) == bool(hint(error))
