"""Video instructions, against what PTX's text says, in Python's integers."""

import itertools

import pytest

from cuffi import run
from tools.cuda.ptx.translate import covered

WORDS = [0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80FF7F01, 0xFFFFFFE0]
OPERATIONS = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
SHIFTS = {"vshl": lambda a, b: a << b, "vshr": lambda a, b: a >> b}


def number(bits, kind, width=32):
    bits &= (1 << width) - 1
    return bits - (1 << width) if kind[0] == "s" and bits >> (width - 1) else bits


def limited(value, kind, width=32):
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)
    return min(max(value, low), high)


def expected(name, kind, saturates, second, a, b, c):
    name, _, mode = name.partition(".")
    if mode:
        value = SHIFTS[name](number(a, kind), min(b, 32) if mode == "clamp" else b & 31)
    else:
        value = OPERATIONS[name](number(a, kind), number(b, kind))
    value = limited(value, kind) if saturates else number(value, kind)
    if second == "add":
        value += number(c, kind)
    elif second:
        value = {"min": min, "max": max}[second](value, number(c, kind))
    return value & 0xFFFFFFFF


def cases():
    names = [*OPERATIONS, "vshl.clamp", "vshl.wrap", "vshr.clamp", "vshr.wrap"]
    every = itertools.product(names, ("u32", "s32"), ("", ".sat"), ("add", "min", "max"))
    return [one for one in every if not (one[2] and is_refused(*one))]


def is_refused(name, kind, _, second):
    """With .sat, an H200 computes these by other rules than PTX's text has."""
    return "." in name or second == "add" or (kind == "u32" and name in ("vadd", "vsub"))


def expected_lanes(name, kind, width, saturates, adds, a, b, c):
    values = [
        OPERATIONS[name](number(a >> at, kind, width), number(b >> at, kind, width))
        for at in range(0, 32, width)
    ]
    values = [limited(v, kind, width) if saturates else number(v, kind, width) for v in values]
    if adds:
        return (c + sum(values)) & 0xFFFFFFFF
    return sum((v & (1 << width) - 1) << width * i for i, v in enumerate(values))


def test_what_they_do(tmp_path, capfd):
    statements, wanted = [], []

    def ask(text, of):
        statements.append(f'asm("{text} %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); *out++ = r;')
        wanted.append(of)

    for name, kind, saturates, second in cases():
        root, _, mode = name.partition(".")
        kinds = f"{kind}.{kind}.{'u32' if mode else kind}"
        text = f"{root}.{kinds}{saturates}{'.' + mode if mode else ''}.{second}"
        ask(text, lambda a, b, c, k=(name, kind, saturates, second): expected(*k, a, b, c))
    for name, kind, width, saturates, adds in itertools.product(
        OPERATIONS, ("u32", "s32"), (8, 16), ("", ".sat"), ("", ".add")
    ):
        if (saturates and (adds or kind == "u32")) or (adds and (name != "vabsdiff" or kind == "s32")):
            continue  # refused
        ask(
            f"{name}{32 // width}.{kind}.{kind}.{kind}{saturates}{adds}",
            lambda a, b, c, k=(name, kind, width, saturates, adds): expected_lanes(*k, a, b, c),
        )
    rows = list(itertools.product(WORDS, WORDS, (5, 0xFFFFFF00)))
    program = (
        "#include <cstdio>\n__global__ void k(const unsigned* in, unsigned* out) {\n"
        "unsigned r; in += 3 * threadIdx.x; const unsigned a = in[0], b = in[1], c = in[2];\n"
        f"out += threadIdx.x * {len(wanted)};\n" + "\n".join(statements) + "\n}\nint main() {\n"
        f"static unsigned in[] = {{{', '.join(f'{w}u' for row in rows for w in row)}}}; unsigned *x, *y;\n"
        f"cudaMallocManaged(&x, sizeof in); cudaMallocManaged(&y, {4 * len(rows) * len(wanted)});\n"
        f"cudaMemcpy(x, in, sizeof in, cudaMemcpyDefault); k<<<1, {len(rows)}>>>(x, y); cudaDeviceSynchronize();\n"
        f'for (int i = 0; i < {len(rows) * len(wanted)}; ++i) printf("%u\\n", y[i]);\n}}\n'
    )
    (tmp_path / "video.cu").write_text(program)
    assert run.main([str(tmp_path / "video.cu")]) == 0
    found = [int(line) for line in capfd.readouterr().out.split()]
    assert found == [of(*row) for row in rows for of in wanted]


@pytest.mark.parametrize(
    "instruction",
    [
        "vadd.u32.u32.u32.sat", "vsub.u32.u32.u32.sat.min", "vadd.s32.s32.s32.sat.add", "vadd.u32.s32.u32",
        "vshl.u32.u32.u32.sat.clamp", "vshr.s32.s32.u32.sat.wrap.max", "vadd4.u32.u32.u32.add",
        "vsub2.s32.s32.s32.add", "vabsdiff4.s32.s32.s32.add", "vmin4.u32.u32.u32.sat", "vmax2.u32.s32.u32",
    ],
)  # fmt: skip
def test_what_is_refused(instruction):
    assert covered(f"{instruction} %0, %1, %2, %3;")
    assert not covered("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;")
