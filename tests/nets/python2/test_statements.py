"""What small programs of Python 2 print, compared with what Python 2.7.18 printed (statements.py made the list)."""

import contextlib
import io
import json
import re
import sys

import pytest

from cuffi.nets.python2 import Tree
from cuffi.nets.python2.printing import end_line

from . import statements

PRINTED = json.loads(statements.FACTS.read_text())


def printed(folder, text: str) -> str:
    """What a program prints here."""
    (folder / "old.py").write_text(text)
    output = io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape", newline="\n", write_through=True)
    with contextlib.redirect_stdout(output):
        Tree([str(folder)], {}).run(folder / "old.py", {"__name__": "__main__"}, 2)
        end_line()
    return output.buffer.getvalue().decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("text", PRINTED)
def test_a_program_prints_what_python_2_7_printed(text, tmp_path, monkeypatch):
    for name in ("h5py", "lmdb", "PIL"):
        if re.search(rf"(import|from) .*\b{name}\b", text):
            pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert printed(tmp_path, text) == PRINTED[text]


def test_the_list_has_the_programs_that_the_forms_make():
    missing = [text for text in statements.programs() if text not in PRINTED]
    assert len(missing) <= 1, missing  # Python 2.7 itself ended with an error
    assert set(PRINTED) <= set(statements.programs())
