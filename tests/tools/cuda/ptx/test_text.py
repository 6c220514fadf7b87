"""The reader of inline PTX."""

import pytest

from tools.cuda.ptx.text import Block, Instruction, Label, Operand, PtxError, Registers, read_ptx


def test_what_a_template_has():
    (block,) = read_ptx(
        "{ .reg .pred p, q<2>; // a comment\n"
        "LOOP: @!p ld.global.v2.f32 {%0, _}, [%1+-8]; setp.lt .s32 p|q0, %2, 0x10; bra LOOP; }"
    )
    assert isinstance(block, Block)
    registers, label, load, compare, jump = block.items
    assert registers == Registers("pred", [("p", 0), ("q", 2)]) and label == Label("LOOP")
    vector = Operand("vector", "", (Operand("operand", "%0"), Operand("name", "_")))
    minus = Operand("negative", "", (Operand("number", "8"),))
    memory = Operand("memory", "", (Operand("operand", "%1"), minus))
    assert load == Instruction("ld.global.v2.f32", [vector, memory], (True, Operand("name", "p")))
    assert compare.opcode == "setp.lt.s32" and compare.operands[0].kind == "pair"
    assert jump.operands == [Operand("name", "LOOP")]


def test_numbers_and_names():
    (move,) = read_ptx("mov.b32 %%r1, 0f3F800000;")
    assert move.operands == [Operand("name", "%%r1"), Operand("float", "0f3F800000")]
    (add,) = read_ptx("add.f64 %0, %1, 0d3FF0000000000000")
    assert [operand.kind for operand in add.operands] == ["operand", "operand", "float"]
    (special,) = read_ptx("mov.u32 %0, %tid.x;")
    assert special.operands[1] == Operand("name", "%tid.x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("add.u32 %0, %1 %2;", "; expected before '%2'"),
        ("{ add.u32 %0, %1, %2;", "} expected"),
        ("add.u32 %0, %1, %2; }", "'}' is left over"),
        (".extern .shared .b8 s[];", "the directive .extern"),
        ("add.u32 %0, ~%1, 2;", "an operand expected before '~'"),
        ("add.u32 %0, `1`;", "a template with"),
        ("ld.u32 %0, [%1;", "] expected"),
    ],
)
def test_what_cannot_be_read(text, why):
    with pytest.raises(PtxError) as error:
        read_ptx(text)
    assert str(error.value).startswith(why)
