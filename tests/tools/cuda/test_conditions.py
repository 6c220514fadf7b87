"""The values of #if conditions, compared with those of g++'s preprocessor."""

import random

import pytest
from support.compiler import preprocessed

from tools.cuda.conditions import HOST_BUILD, IS_DEFINED, VALUES, evaluate
from tools.cuda.lexer import Lexed

ATOMS = [
    "defined(__CUDACC__)", "defined __CUDA_ARCH__", "defined(CAFFE_HOST_BACKEND)", "!defined(__NVCC__)", "1", "0",
    "__CUDACC_VER_MAJOR__ >= 9", "CUDART_VERSION < 9000", "defined(__cplusplus)", "12000 == CUDART_VERSION",
    "0x10 > 9u",
]  # fmt: skip


def condition(draw: random.Random, depth: int) -> str:
    if not depth or draw.random() < 0.2:
        return draw.choice(ATOMS)
    left, right = (condition(draw, depth - 1) for _ in range(2))
    return draw.choice([f"({left}) && {right}", f"{left} || ({right})", f"!({left})", f"{left} && {right}"])


def value_of(text: str, defined) -> int | None:
    (directive,) = Lexed(text + "#endif\n", defined).conditions
    return evaluate(directive, defined)


def test_conditions_have_the_preprocessors_values(tmp_path):
    draw = random.Random(1)
    conditions = ["#if " + condition(draw, 3) for _ in range(300)] + [
        "#ifdef __CUDACC__",
        "#ifndef __CUDA_ARCH__",
    ]
    text = "".join(f"{line}\nyes\n#else\nno\n#endif\n" for line in conditions)
    values = VALUES | {"CAFFE_HOST_BACKEND": 1}
    said = preprocessed(text, *(f"-D{name}={value}" for name, value in values.items())).split()
    assert len(said) == len(conditions)
    for line, answer in zip(conditions, said, strict=True):
        assert value_of(line + "\n", HOST_BUILD) == (answer == "yes"), line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#if OF_THE_USER", None),
        ("#if 0 && OF_THE_USER", 0),
        ("#if OF_THE_USER || 1", 1),
        ("#if __has_include(<a.h>)", None),
        ("#ifdef OF_THE_USER", None),
        ("#ifdef __cplusplus", 1),
        ("#if defined(__CUDACC__)", 0),
    ],
)
def test_what_is_not_known_is_none(text, value):
    assert value_of(text + "\n", IS_DEFINED) == value
