"""mbarrier, and Hopper's copies of bytes, by the rules of the PTX ISA. An H200 prints these numbers, too."""

import pytest
from conftest import ROOT

from cuffi import judge, run

PROGRAMS = ROOT / "tests" / "fixtures" / "ptx"


def test_phases(capfd):
    """The phase before counts as ended; arrivals and bytes end one; a drop makes the next one smaller."""
    assert run.main([str(PROGRAMS / "mbarrier.cu")]) == 0
    assert capfd.readouterr().out.split() == list("1030211000101211")


def test_bulk_copies(capfd):
    assert run.main([str(PROGRAMS / "bulk_copies.cu")]) == 0
    assert capfd.readouterr().out.startswith("0 wrong")


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("", "", "ok"),
        ("wait(shared_of(&full[s]), (j / kStages) & 1);", ";", "race"),
        ("(j / kStages) & 1)", "((j / kStages) & 1) ^ 1)", "race"),
        ("sizeof tile[s], shared_of", "sizeof tile[s] - 16, shared_of", "hang"),
        (
            "sizeof tile[s], shared_of",
            "sizeof tile[s] - 8, shared_of",
            "crash\n  crash: ended by signal 6: inline PTX: a bulk copy of a size",
        ),
    ],
    ids=["right", "no wait", "the other parity", "fewer bytes", "an odd size"],
)
def test_the_judge(right, wrong, kind, tmp_path, capsys):
    file = tmp_path / "k.cu"
    text = (PROGRAMS / "bulk_copies.cu").read_text()
    assert right in text
    file.write_text(text.replace(right, wrong) if right else text)
    judge.main([str(file), "--seconds=5"])
    assert f"{file}: {kind}" in capsys.readouterr().out
