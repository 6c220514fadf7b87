"""A launcher's PTX as steps: each instruction against Python's arithmetic, and what is refused."""

import ctypes
import math
import random
import struct

import pytest

from cuffi.loading import ptx
from cuffi.runtime import extension

WORDS = {
    "s8": ctypes.c_int8, "u8": ctypes.c_uint8, "s16": ctypes.c_int16, "u16": ctypes.c_uint16, "s32": ctypes.c_int32,
    "u32": ctypes.c_uint32, "s64": ctypes.c_int64, "u64": ctypes.c_uint64,
}  # fmt: skip
HARD = (
    0,
    1,
    2,
    7,
    255,
    256,
    2**15,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64 - 2**31,
    1234567891011,
)
# Where a test's result is stored, and read again: the kernel's arguments.
AT = 0x10000


def offset_of_arguments(edge) -> int:
    """The offset of caffe_launch.arguments: a program that stores at several places finds it."""
    for offset in range(0, 2048, 8):
        store = f"mov.u64 %rd1, {AT + offset};\nmov.u64 %rd2, 81985529216486895;\nst.global.u64 [%rd1], %rd2;\nret;\n"
        if compute(edge, store)[6][:8] == struct.pack("<Q", 81985529216486895):
            return offset
    raise AssertionError


def text_of(body: str, parameters=("u64", "u64", "u64"), before: str = "") -> str:
    listed = ",\n".join(f"\t.param .{kind} k_param_{i}" for i, kind in enumerate(parameters))
    return f".version 9.0\n{before}\n.visible .entry k(\n{listed}\n)\n{{\n\t.reg .b64 %rd<9>;\n{body}\n}}\n"


def compute(edge, body: str, words=(0, 0, 0), parameters=("u64", "u64", "u64"), before: str = ""):
    program = ptx.program_of(text_of(body, parameters, before), "k", edge)
    packed = program.packed()
    images = edge.images((), (), (), b"k.cu", b"sm_90")
    address = edge.program(
        images, bytes.fromhex(packed["steps"]), bytes.fromhex(packed["registers"]), tuple(packed["parameters"]),
        bytes.fromhex(packed["data"]), packed["local_bytes"], (), len(parameters) - 1,
    )  # fmt: skip
    signed = tuple(ctypes.c_int64(word).value for word in words)
    return edge.compute(address, signed)


@pytest.fixture(scope="module")
def edge():
    return extension.extension("test")


@pytest.fixture(scope="module")
def arguments_at(edge):
    return AT + offset_of_arguments(edge)


def result(
    edge, at: int, instructions: str, words=(0, 0, 0), kind: str = "u64", parameters=("u64", "u64", "u64")
):
    """The bits that instructions leave in %rd4, of operands in %rd1 to %rd3."""
    loads = "".join(f"ld.param.{p} %rd{i + 1}, [k_param_{i}];\n" for i, p in enumerate(parameters))
    why, *_, content, _ = compute(
        edge, f"{loads}{instructions}\nst.global.{kind} [{at}], %rd4;\nret;", words, parameters
    )
    assert why is None, why
    return int.from_bytes(content[: int(kind[1:]) // 8], "little")


def draws(kind: str, count: int = 3):
    chosen = random.Random(f"{kind} {count}")
    for first in HARD:
        yield first, *(chosen.choice(HARD) for _ in range(count - 1))
    for _ in range(20):
        yield tuple(chosen.getrandbits(64) for _ in range(count))


def divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER = {
    "add": lambda a, b, c, bits: a + b,
    "sub": lambda a, b, c, bits: a - b,
    "mul.lo": lambda a, b, c, bits: a * b,
    "mul.hi": lambda a, b, c, bits: (a * b) >> bits,
    "mad.lo": lambda a, b, c, bits: a * b + c,
    "div": lambda a, b, c, bits: divided(a, b),
    "rem": lambda a, b, c, bits: a - b * divided(a, b),
    "min": lambda a, b, c, bits: min(a, b),
    "max": lambda a, b, c, bits: max(a, b),
}


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("operation", INTEGER)
def test_arithmetic_of_whole_numbers(edge, arguments_at, operation, kind):
    bits = int(kind[1:])
    for words in draws(kind):
        a, b, c = (WORDS[kind](word).value for word in words)
        if operation in ("div", "rem") and b == 0:
            continue
        third = ", %rd3" * (operation == "mad.lo")
        found = result(edge, arguments_at, f"{operation}.{kind} %rd4, %rd1, %rd2{third};", words, f"u{bits}")
        assert found == INTEGER[operation](a, b, c, bits) % 2**bits, (operation, kind, words)


@pytest.mark.parametrize("kind", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("operation", ["div", "rem"])
def test_a_division_by_0_is_an_error(edge, operation, kind):
    why = compute(
        edge, f"ld.param.u64 %rd1, [k_param_0];\n{operation}.{kind} %rd4, %rd1, %rd2;\nret;", (1, 0, 0)
    )[0]
    assert why == "it divides by 0"


@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_shifts_by_any_amount(edge, arguments_at, kind):
    bits = int(kind[1:])
    for word, _, _ in draws(kind):
        for by in (0, 1, 5, bits - 1, bits, bits + 1, 200, 2**32 - 1):
            words, a = (word, by, 0), WORDS[kind](word).value
            right = result(edge, arguments_at, f"shr.{kind} %rd4, %rd1, %rd2;", words, f"u{bits}")
            assert right == (a >> min(by, 80)) % 2**bits
            left = result(edge, arguments_at, f"shl.b{bits} %rd4, %rd1, %rd2;", words, f"u{bits}")
            assert left == (a << by if by < bits else 0) % 2**bits


@pytest.mark.parametrize("source", WORDS)
@pytest.mark.parametrize("target", WORDS)
def test_conversions_of_whole_numbers(edge, arguments_at, source, target):
    bits = int(target[1:])
    for word, _, _ in draws(source):
        found = result(edge, arguments_at, f"cvt.{target}.{source} %rd4, %rd1;", (word, 0, 0), f"u{bits}")
        assert found == WORDS[source](word).value % 2**bits


@pytest.mark.parametrize(
    ("how", "expected"), [("ne", 6), ("neu", 5), ("eq", 6), ("equ", 5), ("nan", 5), ("num", 6)]
)
def test_comparisons_with_what_is_no_number(edge, arguments_at, how, expected):
    words = (bits_of("f32", math.nan), bits_of("f32", 1.0), 0)
    code = f"setp.{how}.f32 %p1, %rd1, %rd2;\nselp.b64 %rd4, 5, 6, %p1;"
    assert result(edge, arguments_at, code, words) == expected


COMPARED = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("how", COMPARED)
@pytest.mark.parametrize("kind", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_comparisons_jumps_and_choices(edge, arguments_at, kind, how):
    chosen = f"setp.{how}.{kind} %p1, %rd1, %rd2;\nselp.b64 %rd4, 5, 6, %p1;"
    jumped = f"mov.u64 %rd4, 5;\nsetp.{how}.{kind} %p1, %rd1, %rd2;\n@%p1 bra $L__BB0_1;\nmov.u64 %rd4, 6;\n$L__BB0_1:"
    for words in [*draws(kind), (7, 7, 7)]:
        a, b, _ = (WORDS[kind](word).value for word in words)
        expected = 5 if COMPARED[how](a, b) else 6
        assert result(edge, arguments_at, chosen, words) == expected
        assert result(edge, arguments_at, jumped, words) == expected


def bits_of(kind: str, value: float) -> int:
    return int.from_bytes(struct.pack("<f" if kind == "f32" else "<d", value), "little")


def rounded(kind: str, value: float) -> float:
    if kind == "f64" or not math.isfinite(value):
        return value
    return ctypes.c_float(value).value


REALS = (
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.5,
    3.5,
    0.1,
    1e10,
    -1e10,
    3e9,
    2147483648.0,
    9.3e18,
    1e38,
    -1e-30,
    math.inf,
    -math.inf,
)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_arithmetic_of_real_numbers(edge, arguments_at, kind):
    operations = {"add.rn": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul.rn": lambda a, b: a * b}
    for a in REALS:
        for b in REALS:
            a, b = rounded(kind, a), rounded(kind, b)
            words = (bits_of(kind, a), bits_of(kind, b), 0)
            for name, of in operations.items():
                found = result(edge, arguments_at, f"{name}.{kind} %rd4, %rd1, %rd2;", words, f"u{kind[1:]}")
                expected = of(a, b)
                if math.isnan(expected):
                    continue
                expected = rounded(kind, expected) if abs(expected) < 3e38 or kind == "f64" else None
                assert expected is None or found == bits_of(kind, expected), (name, a, b)


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize(
    ("how", "of"), [("rzi", math.trunc), ("rpi", math.ceil), ("rmi", math.floor), ("rni", round)]
)
def test_real_numbers_become_whole_as_on_a_gpu(edge, arguments_at, how, of, target, source):
    bits = int(target[1:])
    least, most = (0, 2**bits - 1) if target[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for value in (*REALS, math.nan):
        value = rounded(source, value)
        words = (bits_of(source, value), 0, 0)
        found = result(edge, arguments_at, f"cvt.{how}.{target}.{source} %rd4, %rd1;", words, f"u{bits}")
        whole = (
            0
            if math.isnan(value)
            else most + 1
            if value > 1e30
            else least - 1
            if value < -1e30
            else of(value)
        )
        assert found == max(least, min(most, whole)) % 2**bits, value


def test_a_product_is_rounded_before_it_is_added_to(edge, arguments_at):
    """As the host's compiler does: a launch's numbers are those of nvcc's host code."""
    a = 1.0 + 2.0**-12
    words = (bits_of("f32", a), bits_of("f32", a), bits_of("f32", -(a * a)))
    expected = ctypes.c_float(ctypes.c_float(a * a).value + ctypes.c_float(-(a * a)).value).value
    found = result(edge, arguments_at, "fma.rn.f32 %rd4, %rd1, %rd2, %rd3;", words, "u32")
    assert found == bits_of("f32", expected)


def test_halves_vectors_and_local_memory(edge, arguments_at):
    half = int.from_bytes(struct.pack("<e", 1.5), "little")
    word = bits_of("f32", 1.5)
    assert result(edge, arguments_at, "{  cvt.rn.f16.f32 %rd4, %rd1;}\n", (word, 0, 0), "u16") == half
    assert result(edge, arguments_at, "cvt.f32.f16 %rd4, %rd1;", (half, 0, 0), "u32") == word
    both = "cvt.rn.f16x2.f32 %rd4, %rd1, %rd2;"
    assert result(edge, arguments_at, both, (word, 0, 0), "u32") == half << 16
    brain = result(edge, arguments_at, "cvt.rn.bf16x2.f32 %rd4, %rd1, %rd2;", (0, word, 0), "u32")
    assert brain == word >> 16
    packed = "mov.b64 %rd4, {%rd1, %rd2};"
    assert result(edge, arguments_at, packed, (1, 2, 0)) == 1 | 2 << 32
    unpacked = "mov.b64 {%rd5, %rd4}, %rd1;"
    assert result(edge, arguments_at, unpacked, (1 | 2 << 32, 0, 0)) == 2
    local = (
        ".local .align 8 .b8 __local_depot0[16];\nmov.u64 %SPL, __local_depot0;\ncvta.local.u64 %SP, %SPL;\n"
        "st.local.v2.u32 [%SPL+8], {%rd1, %rd2};\nld.u64 %rd4, [%SP+8];"
    )
    assert result(edge, arguments_at, local, (3, 4, 0)) == 3 | 4 << 32
    assert (
        result(
            edge,
            arguments_at,
            f"st.u8 [{arguments_at + 64}], %rd1;\nld.s8 %rd4, [{arguments_at + 64}];",
            (200, 0, 0),
        )
        == 2**64 - 56
    )


def test_a_float_is_a_double_in_a_call_s_word(edge, arguments_at):
    words = (bits_of("f64", 0.1), 7, 0)
    found = result(edge, arguments_at, "mov.u64 %rd4, %rd1;", words, "u32", ("f32", "u64", "u64"))
    assert found == bits_of("f32", rounded("f32", 0.1))


@pytest.mark.parametrize(
    "body",
    ["mov.u64 %rd1, 16;\nst.u32 [%rd1], %rd1;\nret;", "mov.u64 %rd1, 131072;\nld.u32 %rd2, [%rd1];\nret;",
     f"mov.u64 %rd1, {AT - 4};\nst.u64 [%rd1], %rd1;\nret;"],
)  # fmt: skip
def test_memory_beside_its_own_is_an_error(edge, body):
    assert compute(edge, body)[0] == "its launcher reads or writes beside its memory"


def test_a_launcher_that_does_not_end_is_an_error(edge):
    assert compute(edge, "$L__BB0_1:\nbra.uni $L__BB0_1;\nret;")[0] == "its launcher does not end"


@pytest.mark.parametrize("instruction", ["mov.u32 %rd1, %tid.x", "bar.sync 0", "atom.add.u32 %rd1, [%rd2], %rd3",
                                         "call.uni (r), f, (p)", "div.approx.f32 %rd1, %rd2, %rd3",
                                         "ex2.approx.ftz.f32 %rd1, %rd2", "trap"])  # fmt: skip
def test_what_has_no_step_is_refused(edge, instruction):
    with pytest.raises(ptx.NoSteps):
        ptx.program_of(text_of(f"{instruction};\nret;"), "k", edge)


def test_texts_and_variables_have_addresses(edge, arguments_at):
    before = ".global .align 1 .b8 $str[3] = {97, 98, 0};\n.const .align 4 .b8 weights[16];"
    text = text_of(
        f"mov.u64 %rd1, $str;\nmov.u64 %rd2, weights;\nst.u64 [{arguments_at}], %rd2;\nret;", before=before
    )
    program = ptx.program_of(text, "k", edge)
    assert program.data == b"ab\0\0" and program.symbols == ["weights"]


def test_steps_that_c_cannot_run_are_refused(edge):
    images = edge.images((), (), (), b"k.cu", b"sm_90")
    for steps in (struct.pack("<5H", len(edge.OPERATIONS), 0, 0, 0, 0), struct.pack("<5H", 0, 9, 0, 0, 0)):
        with pytest.raises(ValueError, match="cannot be run"):
            edge.program(images, steps, b"\0" * 16, ((0, False),), b"", 0, (), 0)
