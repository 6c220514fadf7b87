"""Pieces of a Caffe layer's .cu: which of them the preprocessor drops, compared with g++'s."""

import re
import subprocess

import pytest

from tools.cuda.source import Source
from tools.new_layer.caffe_file import Cutter, type_names

CONDITIONS = (
    "#ifdef A", "#ifndef A", "#ifdef GONE", "#ifndef GONE", "#if defined(A)", "#if !defined(A)", "#if defined GONE",
    "#if !defined GONE", "#if 0", "#if 1",
)  # fmt: skip


def kept_by_gcc(text: str) -> set[str]:
    done = subprocess.run(["g++", "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True)
    return set(re.findall(r"mark\d+", done.stdout))


def kept(text: str) -> set[str]:
    cutter = Cutter(Source(text, "some.cu"))
    return {
        found[0]
        for piece in cutter.pieces
        if piece.active and (found := re.search(r"mark\d+", text[piece.start : piece.end]))
    }


def test_branches_as_gcc_sees_them():
    """Each condition by itself, with #else and #elif, within another one, and after a macro of a dropped branch."""
    lines, marks = ["#define A"], iter(range(10_000))

    def mark():
        lines.append(f"int mark{next(marks)};")

    for outer in CONDITIONS:
        for inner in CONDITIONS:
            lines.append(outer)
            mark()
            lines.append(inner)
            mark()
            lines.append(f"#define FROM{len(lines)}")
            lines.append(f"#el{inner[1:] if inner.startswith('#if ') else 'if defined(A)'}")
            mark()
            lines.append("#else")
            mark()
            lines += ["#endif", "#elif defined(A)"]
            mark()
            lines.append("#else")
            mark()
            lines.append("#endif")
            mark()
    defined = [line.split()[1] for line in lines if line.startswith("#define FROM")]
    for name in defined[:40]:
        lines.append(f"#ifdef {name}")
        mark()
        lines.append("#endif")
    text = "\n".join(lines) + "\n"
    assert kept(text) == kept_by_gcc(text)


@pytest.mark.parametrize(
    "text, names",
    [
        ("int x;\n", set()),
        ("struct A { float x; };\n", {"A"}),
        ("using B = float;\n", {"B"}),
        ("typedef float C;\n", {"C"}),
        ("typedef struct D { int x; } E;\n", {"D", "E"}),
        ("enum F { one };\n", {"F"}),
    ],
)
def test_types_that_the_device_part_defines(text, names):
    cutter = Cutter(Source(text, "some.cu"))
    for piece in cutter.pieces:
        piece.kind = "device"
    assert type_names(cutter) == names
    for piece in cutter.pieces:
        piece.kind = "host"
    assert type_names(cutter) == set()
