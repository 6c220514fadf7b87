"""make port: includes that only the compiler can tell."""

import pytest

from tools.port.compiler import Compiler


def test_header_that_nobody_has(fork, port):
    """Neither the tree, nor the toolkit, nor the system: the file cannot be compiled."""
    fork.layer("Shift", includes="#include <vector>\n#include <itkNoSuchImage.h>")
    output = port("Shift", fails=True)
    assert "src/caffe/layers/shift_layer.cpp:4: ShiftLayer needs itkNoSuchImage.h, which" in output


@pytest.mark.parametrize(
    "condition", ["ifdef __APPLE_OF_OLD__", "if defined(USE_THAT) && THAT > 2", "ifdef USE_OPENCV"]
)
def test_header_that_is_not_reached(fork, port, condition):
    fork.layer(
        "Shift", includes=f"#{condition}\n#include <itkNoSuchImage.h>\n#else\n#include <vector>\n#endif"
    )
    port("Shift")


def test_without_a_compiler_nothing_is_known(monkeypatch):
    assert Compiler().lacks(["vector", "no_such.h"]) == {"no_such.h"}
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert Compiler().lacks(["vector", "no_such.h"]) == set()
