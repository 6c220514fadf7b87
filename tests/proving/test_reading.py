"""A file as the proof reads it."""

import pytest

from cuffi.proving.reading import Text
from cuffi.proving.types import INT, NAMES, NotFollowed, PointerTo, Real, type_of

FILE = """#include <cuda_runtime.h>
#include "own.cuh"
#define N 4 + 4
typedef unsigned int word;
constexpr int kWidth = 32;
// requires: blockDim.x == N
// size: x SIZE
template <typename T, int W = 3>
__global__ void k(T* x) {
  x[N] = 1;
  x['c'] = 2;
}
"""


@pytest.fixture
def text(tmp_path):
    own = "#pragma once\n#define SIZE 100\n__device__ int half_of(int x) { return x / 2; }\n"
    (tmp_path / "own.cuh").write_text(own)
    (tmp_path / "k.cu").write_text(FILE)
    return Text(tmp_path / "k.cu", ["-DM=3"])


def test_macros_headers_and_lines(text):
    (kernel,) = text.kernels
    assert str(kernel.head).endswith("k.cu:9") and set(text.functions) == {"half_of", "k"}
    body = kernel.body
    assert "x[4 + 4] = 1;" in body.of(body.root)
    statements = [one for one in body.root.named_children]
    assert [kernel.line(one).line for one in statements] == [10, 11]
    assert str(text.functions["half_of"][0].head).endswith("own.cuh:3")


def test_promises_have_their_macros(text):
    assert text.promises["k"].requires == ["blockDim.x == 4 + 4"] and text.promises["k"].size == {"x": "100"}


def test_templates_types_and_constants(text):
    first, second = text.kernels[0].template
    assert (first.name, first.type, second.name, second.type, second.default) == ("T", "", "W", "int", "3")
    assert text.types["word"] == NAMES["unsigned int"] and text.constants["kWidth"][1] == "32"


def test_characters_are_not_zeros(text):
    code = text.kernels[0]
    literals = []
    todo = [code.body.root]
    while todo:
        node = todo.pop()
        todo += node.named_children
        if node.type == "number_literal":
            literals.append((code.body.of(node).strip(), code.is_character(node)))
    assert ("0", True) in literals


@pytest.mark.parametrize("line", ['#include "gone.h"', "#include NAME", "#error no"])
def test_what_is_not_read(line, tmp_path):
    (tmp_path / "k.cu").write_text(f"{line}\n__global__ void k(float* x) {{}}\n")
    with pytest.raises(NotFollowed):
        Text(tmp_path / "k.cu")


def test_types():
    assert type_of("const unsigned * __restrict__", {}) == PointerTo(NAMES["unsigned"])
    assert type_of("long unsigned int", {}) == NAMES["unsigned long int"]
    assert type_of("std::size_t", {}) == NAMES["size_t"] and type_of("T", {"T": Real("T")}) == Real("T")
    assert type_of("const int", {}) == INT
    with pytest.raises(NotFollowed):
        type_of("Unknown", {})
