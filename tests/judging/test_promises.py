"""What is promised of a kernel's arguments: read, and kept by what is invented."""

import pytest

from cuffi.judge import judge
from cuffi.judging.harness import harness
from cuffi.judging.limits import Limits
from cuffi.judging.promises import Promise, Refused, above, of_json
from tools.cuda.analysis import Unit

COMMENT = "int other;\n// Adds.\n// requires: blockDim.x == 256, n % 4 == 0, f(a, b) > 1\n// size: x n, y n * (m + 1)\n"


def test_a_comment():
    made = above(COMMENT, len(COMMENT), ["x", "y", "n", "m"])
    assert made == Promise(["blockDim.x == 256", "n % 4 == 0", "f(a, b) > 1"], {"x": "n", "y": "n * (m + 1)"})
    assert made.block("x") == "256" and made.block("y") == ""
    assert made.adjusted()[:2] == ["judge::equals(blockDim.x, 256);", "judge::divides(n, 4);"]
    block = "/* size: x n\n * requires: n >= 1 */\n"
    assert above(block, len(block), ["x"]) == Promise(["n >= 1"], {"x": "n"})
    assert not above("// size: x n\nint y;\n", 21, ["x"])  # of something else


def test_json_says_the_same():
    said = {"requires": ["n > 0"], "size": {"x": "n"}}
    assert of_json(said, ["x", "n"]) == Promise(["n > 0"], {"x": "n"})


@pytest.mark.parametrize(
    "said", [{"size": {"z": "n"}}, {"size": {"x": ""}}, {"requires": ['system("x");']}, {"sizes": {}}]
)
def test_what_cannot_be_read(said):
    with pytest.raises(Refused):
        of_json(said, ["x", "n"])


def test_the_main_that_it_gives():
    text = harness(Unit(COMMENT + "__global__ void k(const float* x, float* y, int n, int m) {}\n", "k.cu"))
    assert "{{judge::threads(256), judge::threads(1)}}, false, 2," in text
    assert "judge_case.sized<judge::parameter<1, F>::type>(n * (m + 1))" in text
    assert text.index("auto n =") < text.index("judge::divides(n, 4)") < text.index("auto x =")
    text = harness(
        Unit("__global__ void __launch_bounds__(96) k(float* y) { y[threadIdx.x] = 1; }\n", "k.cu")
    )
    assert "judge::most(128, (1), 96)" in text
    text = harness(
        Unit("__global__ void k(float* y) { assert(blockDim.x == 96); y[threadIdx.x] = 1; }\n", "k.cu")
    )
    assert "{{judge::threads(96), judge::threads(1)}}" in text


# With a promise one line says whether the guard is there; a block of another size would be wrong in both.
GUARD = """// requires: blockDim.x == 96
// size: x n, y n
__global__ void twice(const float* x, float* y, int n) {
  __shared__ float s[96];
  int i = blockIdx.x * 96 + threadIdx.x;
  s[threadIdx.x] = 1;
  GUARD y[i] = 2 * x[i] + s[95 - threadIdx.x] * 0;
}
"""


@pytest.mark.parametrize(
    "guard, kinds", [("__syncthreads(); if (i < n)", []), ("__syncthreads();", ["bounds"])]
)
def test_a_missing_guard(guard, kinds, tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(GUARD.replace("GUARD", guard))
    said = judge([file], limits=Limits(60))
    assert [one["kind"] for one in said["findings"]] == kinds and said["ran"] == ["twice"], said
    assert not any("bounds" in why for why in said["not_run"])
    if kinds:
        assert said["findings"][0]["array"] == "x" or "y" in said["findings"][0]["text"]


def test_a_name_that_is_like_a_parameter_is_refused_before_a_build():
    text = "// requires: nn % 4 == 0\n__global__ void k(float* x, int n)"
    with pytest.raises(
        Refused, match="line 1: requires: nn % 4 == 0: there is no parameter nn; did you mean n"
    ):
        above(text, text.index("__global__"), ["x", "n"])


def test_names_of_the_file_are_no_mistakes():
    text = "constexpr int nn = 4;\n// requires: n % nn == 0, blockDim.x == 8\n__global__ void k(int n, int block_dim)"
    assert above(text, text.index("__global__"), ["n", "block_dim"]).requires == [
        "n % nn == 0",
        "blockDim.x == 8",
    ]


def test_a_misspelt_array_has_a_name_near():
    text = "// size: xx n\n__global__ void k(float* x, int n)"
    with pytest.raises(Refused, match="no parameter xx; did you mean x"):
        above(text, text.index("__global__"), ["x", "n"])
