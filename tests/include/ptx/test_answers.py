"""What instructions of PTX do: the same bits as an H200 for the same hostile inputs (tests/fixtures/ptx).

Approximate functions, and sums that a tensor core rounds, are near.
"""

import struct

import pytest
from conftest import ROOT

from cuffi import run

PROGRAMS = ROOT / "tests" / "fixtures" / "ptx"
ANSWERS = PROGRAMS / "answers"
EXACT = sorted({file.stem for file in ANSWERS.glob("*.txt")} - {"approximate", "rounding"})


def printed(program, capfd):
    """The lines of a program: (instruction, result)."""
    assert run.main([str(PROGRAMS / f"{program}.cu")]) == 0
    lines = capfd.readouterr().out.splitlines()
    if program == "fragments":
        lines = [line.split("; lane")[0] for line in lines]
    cut = str.split if program in ("fragments", "fields") else str.rsplit
    return [cut(line, ": ", 1) for line in lines]


def answers(program):
    return (ANSWERS / f"{program}.txt").read_text().splitlines()


@pytest.mark.parametrize("program", EXACT)
def test_the_bits_of_a_gpu(program, capfd):
    lines, given = printed(program, capfd), answers(program)
    assert len(lines) == len(given) > 3
    different = [name for (name, result), answer in zip(lines, given, strict=True) if result != answer]
    assert not different


def words(text):
    return [int(word, 16) for word in text.split()]


def single(bits):
    return struct.unpack("f", struct.pack("I", bits))[0]


def pair(bits):
    """Two halves, as whole numbers whose distance is that in units of the last place."""
    both = bits & 0xFFFF, bits >> 16
    return [half if half < 0x8000 else 0x8000 - half for half in both]


# docs/tensor-cores-without-a-gpu.md has these numbers.
MOST = {"sin": 1e-6, "cos": 1e-6, "lg2": 1e-6}
RELATIVE = {"tanh": 1e-5, "ex2": 3e-7, "rcp": 2e-7, "rsqrt": 2e-7, "sqrt": 2e-7, "div": 2e-7}


def test_approximate_functions(capfd):
    seen = set()
    for (name, result), answer in zip(printed("approximate", capfd), answers("approximate"), strict=True):
        root = name.split(".")[0]
        seen.add(root)
        for own, its in zip(words(result), words(answer), strict=True):
            if "16x2" in name:
                far = [abs(a - b) for a, b in zip(pair(own), pair(its), strict=True)]
                assert max(far) <= 1, f"{name}: {own:08x}, and not {its:08x}"
            elif own != its:
                a, b = single(own), single(its)
                most = MOST[root] if root in MOST else RELATIVE[root] * abs(b)
                assert abs(a - b) <= most, f"{name}: {a}, and not {b}"
    assert seen == MOST.keys() | RELATIVE.keys()


def test_sums_that_a_tensor_core_rounds(capfd):
    lines = printed("rounding", capfd)
    for (name, result), answer in zip(lines, answers("rounding"), strict=True):
        own, its = words(result), words(answer)
        if ".f16.f16.f16.f16" in name:
            assert own == its
        else:
            assert max(abs(single(a) - single(b)) for a, b in zip(own, its, strict=True)) < 2e-6
            assert max(abs(single(b)) for b in its) > 10
    assert len(lines) == 4
