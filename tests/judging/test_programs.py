"""A .cu becomes a program."""

import pytest

from cuffi.judging.programs import NotBuilt, program, rewritten

MAIN = "__global__ void k() {}\nint main() { k<<<1, 1>>>(); return N; }\n"


def test_kernels_and_main(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert unbuilt.kernels == ["k"] and unbuilt.has_main and list(unbuilt.texts) == ["judged0.cpp"]


def test_options_and_errors(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(MAIN)
    unbuilt = rewritten([file])
    assert program(unbuilt, [file], "plain", tmp_path / "one", ["-DN=3"]).exists()
    with pytest.raises(NotBuilt) as error:
        program(unbuilt, [file], "plain", tmp_path / "two", [])
    assert error.value.kind == "not-built" and "k.cu:2" in error.value.lines[0]


@pytest.mark.parametrize(
    "text, kind", [("int f();\n", "no-kernel"), ("#include <thrust/sort.h>\nint main() {}\n", "refused")]
)
def test_what_cannot_be_built(text, kind, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(text)
    with pytest.raises(NotBuilt) as error:
        rewritten([file])
    assert error.value.kind == kind and "k.cu" in error.value.lines[0]
