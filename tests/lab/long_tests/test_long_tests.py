"""The tool that chooses long tests: by lines of Python and seconds."""

import sqlite3

import pytest

from lab.long_tests import __main__ as long_tests

LINES = {
    "": 0b1,
    "a::quick": 0b11,
    "a::slow": 0b1111,
    "a::slower": 0b1100,
    "b::x[1]": 0b10000,
    "b::x[2]": 0b10000,
}
SECONDS = {"a::quick": 0.1, "a::slow": 2.0, "a::slower": 3.0, "b::x[1]": 1.0, "b::x[2]": 1.5}


@pytest.mark.parametrize(
    ("total", "out"),
    [
        (1.0, ["a::slow", "a::slower", "b::x[2]"]),
        (2.5, ["a::slow", "a::slower", "b::x[2]"]),
        (9.0, ["a::slower", "b::x[2]"]),
    ],
)
def test_lines_that_no_other_test_runs_come_first(total, out, capsys):
    """The quickest of each file, then two lines in two seconds; what adds no line stays out, whatever time is left."""
    assert long_tests.chosen(SECONDS, LINES, 0.12, total, kept=(), long=()) == out
    assert "100.0% of the lines" in capsys.readouterr().out if total == 9 else True


def test_some_are_kept_and_some_stay_out():
    assert "a::slower" not in long_tests.chosen(SECONDS, LINES, 0.12, 9, kept=["a::slow*r"], long=())
    assert "a::quick" in long_tests.chosen(SECONDS, LINES, 0.12, 9, kept=(), long=["a::q*"])


def test_all_cases_of_a_test_are_one_line():
    assert long_tests.as_text(["b::x[1]", "b::x[2]"], LINES) == "b::x\n"
    assert long_tests.as_text(["a::slow", "b::x[2]"], LINES) == "a::slow\nb::x 1\n"
    many = [f"c::y[{i}]" for i in range(5)]
    assert long_tests.as_text(many[:1], many) == "" and long_tests.as_text(many[:2], many) == "c::y 3\n"


def test_the_time_of_a_test_is_that_of_its_phases():
    log = "1.50s setup    a::b[x y]\n0.25s call     a::b[x y]\n2.00s call     a::c\n3 passed in 4.00s\n"
    assert long_tests.seconds_of(log) == {"a::b[x y]": 1.75, "a::c": 2.0}


def test_lines_of_each_process_and_of_copies(tmp_path):
    """A worker's contexts are its tests; another process has its test beside its data. Cached kernels do not count."""
    files = [
        "/w/cuffi/a.py",
        "/env/cuffi/_toolkit/cuffi/a.py",
        f"/c/cuffi/k-{'0' * 32}/src/k/__init__.py",
        "/w/tests/test_a.py",
    ]
    for name, contexts, test in ("worker", ["", "t::one"], ""), ("child", [""], "t::two"):
        with sqlite3.connect(tmp_path / f"lines.{name}") as base:
            base.execute("create table file (id, path)")
            base.execute("create table context (id, context)")
            base.execute("create table line_bits (file_id, context_id, numbits)")
            base.executemany("insert into file values (?, ?)", enumerate(files))
            base.executemany("insert into context values (?, ?)", enumerate(contexts))
            rows = [
                (file, context, bytes([1 << context + file]))
                for file in range(4)
                for context in range(len(contexts))
            ]
            base.executemany("insert into line_bits values (?, ?, ?)", rows)
        (tmp_path / f"lines.{name}.test").write_text(test)
    assert long_tests.lines_of(tmp_path) == {"": 0b11, "t::one": 0b110, "t::two": 0b11}
