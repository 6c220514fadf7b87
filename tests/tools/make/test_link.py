"""The messages made from the linker's output."""

import pytest

from tools.make.link import explain, missing

OUTPUT = """/usr/bin/ld: warning: a.o: undefined reference to `twist(int)'
x86_64-ld: b.o:(.text+0x1): undefined reference to 'forward'
/usr/bin/ld: c.o: undefined reference to `PyList_New'
/usr/bin/ld: c.o: undefined reference to `_Py_Dealloc'
/usr/bin/ld: c.o: undefined reference to `__asan_init'
/usr/bin/ld: d.o: undefined reference to `of_Py'
/usr/bin/ld: d.o: relocation truncated
"""
LINES = [
    "a.o: undefined reference to `twist(int)'",
    "b.o:(.text+0x1): undefined reference to 'forward'",
    "d.o: undefined reference to `of_Py'",
]
NEITHER = "Neither the layer's folder nor the toolkit defines these"


def test_what_is_missing():
    assert missing(OUTPUT) == LINES and missing("") == []


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            "int forward(int n); int of_Py();",
            'declared here but defined nowhere as `extern "C"`: forward, of_Py',
        ),
        ("int backward(int n);", "\n".join(LINES) + "\nNothing in the layer's folder defines these."),
        (None, "\n".join(LINES) + f"\n{NEITHER}: files of the fork are missing here."),
    ],
)
def test_who_lacks_it(tmp_path, header, said):
    file = tmp_path / "one.h"
    file.write_text(header or "")
    where = f"{file}: error: " if header and "forward" in header else ""
    assert explain(LINES, file if header else None) == where + said
