"""Expanding macros, compared with the C preprocessor."""

import re

import pytest
from support.compiler import preprocessed

from tools.cuda.conditions import Directive, Token
from tools.cuda.lexer import tokens_and_directives
from tools.cuda.ptx.macros import Macros
from tools.cuda.ptx.text import PtxError


def parsed(text):
    items = list(tokens_and_directives(text))
    return Macros(i for i in items if isinstance(i, Directive)), [i for i in items if isinstance(i, Token)]


def expanded(text):
    macros, tokens = parsed(text)
    return " ".join(token.text for token in macros.expand(tokens))


@pytest.mark.parametrize(
    "text",
    [
        "#define A 1\n#define B A + A\nB;",
        '#define LOAD(n, to) asm("ld.u" #n " %0;" : "=r"(to))\nLOAD(32, x[f(1, 2)]);',
        "#define JOIN(a, b) a##b\n#define NAME(a) JOIN(x, a)\nNAME(1) JOIN(y, 2) JOIN(, z);",
        "#define TWICE(f, ...) f(__VA_ARGS__) f(__VA_ARGS__)\n#define ADD(a, b) (a + b)\nTWICE(ADD, 1, 2);",
        "#define LIST(T) T(1) T(2)\n#define ONE(x) [x]\nLIST(ONE) ONE;",
        "#define SELF(x) SELF(x + 1)\nSELF(SELF(2));",
        "#define F G\n#define G(x) x * 2\nF(3);",
        '#define S(x) #x\nS(a  "b\\n"   c) S() S(m16n8k16.row);',
        "#define NONE() 7\nNONE() + NONE();",
        "#define LOG(f, args...) g(f, args)\nLOG(1, 2, 3);",
    ],
)
def test_as_the_compiler_does(text):
    assert re.sub(r"\s+", "", expanded(text)) == re.sub(r"\s+", "", preprocessed(text))


def test_which_macros_use_others():
    macros, _ = parsed("#define A asm(x)\n#define B A\n#define C f(B)\n#define D 1")
    assert macros.users_of({"A"}) == {"A", "B", "C"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#define F(a, b) a\nF(1);", "the arguments of F"),
        ("#define A 1\n#undef A\n#define A 2\nA;", "the macro A has several definitions"),
        ("#define F(a) a\nF(1", "the brackets of F"),
    ],
)
def test_what_cannot_be_expanded(text, why):
    with pytest.raises(PtxError, match=why):
        expanded(text)
