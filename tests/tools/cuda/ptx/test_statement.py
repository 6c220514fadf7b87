"""The asm statements of tokens."""

import pytest

from tools.cuda.brackets import match_brackets
from tools.cuda.conditions import Token
from tools.cuda.lexer import tokens_and_directives
from tools.cuda.ptx.statement import asm_statement, literal
from tools.cuda.ptx.text import PtxError


def statement(text):
    tokens = [item for item in tokens_and_directives(text) if isinstance(item, Token)]
    found = asm_statement(tokens, match_brackets(tokens), 0)
    assert found is not None

    def shown(operands):
        return [(constraint, " ".join(t.text for t in tokens[a:b])) for constraint, a, b in operands]

    return found.template, shown(found.outputs), shown(found.inputs)


def test_the_parts_of_a_statement():
    text = 'asm volatile("add.u32 %0, " "%1, 2;\\n" : "=r"(x[i ? 1 : 2]) : [name] "r"(f(a, b)), "n"(3) : "memory");'
    outputs, inputs = [("=r", "x [ i ? 1 : 2 ]")], [("r", "f ( a , b )"), ("n", "3")]
    assert statement(text) == ("add.u32 %0, %1, 2;\n", outputs, inputs)
    assert statement('asm("x;" :: "l"(std::move(p)));') == ("x;", [], [("l", "std :: move ( p )")])
    assert statement('asm("x;" ::: "memory");') == ("x;", [], [])
    assert statement('asm("x;");') == ("x;", [], [])


def test_what_macros_make():
    assert statement('asm("mma." SHAPE ";" : "=r"(x));')[0] is None
    with pytest.raises(PtxError, match="an operand without brackets"):
        statement('asm("x;" : OUTPUTS : "r"(x));')
    with pytest.raises(PtxError, match="an operand of a macro"):
        statement('asm("x;" : "=r"(x) : POINTER(p));')


def test_literals():
    assert literal(r'"a\n\t\"%%r\\"') == 'a\n\t"%%r\\'
    assert literal('R"(a\\n)"') == "a\\n"
    assert literal(r'"\x25"') == "%"
