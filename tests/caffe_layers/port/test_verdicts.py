"""The results of make port TYPE=all."""

import json
import os
from pathlib import Path

import pytest

from cuffi.caffe_layers.port import verdicts
from cuffi.caffe_layers.port.verdicts import Row


@pytest.mark.parametrize(
    "found, status, line",
    [([], 0, "0 types: none"), (["compiles"], 0, "1 type: 1 compiles"),
     (["refused", "compiles", "refused"], 1, "3 types: 1 compiles, 2 refused"),
     (["refused", "does not compile"], 2, "2 types: 1 does not compile, 1 refused"), (["to do by hand"], 0,
      "1 type: 1 to do by hand")],
)  # fmt: skip
def test_the_status_and_the_line_of_counts(found, status, line):
    assert verdicts.status(found) == status and verdicts.counts(found) == line


def test_json_has_a_line_for_each_type(tmp_path):
    rows = [Row("A", "a", "compiles", "", 1.5, "/log"), Row("B", "", "refused", 'x:3: "y"\n')]
    lines = verdicts.write_json(rows, str(tmp_path)).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [row._asdict() for row in rows]
    assert json.loads(lines[0]).keys() == {"type", "folder", "verdict", "reason", "seconds", "log"}


def test_the_seconds_of_the_compilers(tmp_path):
    """From when the log was opened to when the object was written. An object that failed counts nothing."""
    for name, began, ended in (("a.o", 10, 12), ("deep/b.o", 10, 13.5), ("failed.o", 10, None)):
        made = tmp_path / "foo" / name
        made.parent.mkdir(parents=True, exist_ok=True)
        log = made.with_name(made.name + ".log")
        log.touch()
        os.utime(log, (began, began))
        if ended:
            made.touch()
            os.utime(made, (ended, ended))
    assert verdicts.compiled_in(str(tmp_path), "foo") == 5.5


def test_the_log_that_is_kept(tmp_path):
    (tmp_path / "foo").mkdir()
    assert verdicts.kept_log(str(tmp_path), "foo") == ""
    (tmp_path / "foo" / "a.log").write_text("error: x")
    (tmp_path / "foo" / "b.log").touch()
    path = verdicts.kept_log(str(tmp_path), "foo")
    assert path == f"{tmp_path}/port/foo.log" and Path(path).read_text() == "== a.log\nerror: x\n"
