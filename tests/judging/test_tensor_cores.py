"""Mistakes in a product by cp.async, ldmatrix and mma.sync: each is told, with its lines, and the right one is not."""

import pytest
from conftest import ROOT

from cuffi import run
from cuffi.judge import judge

PROGRAM = (ROOT / "tests" / "fixtures" / "judge" / "product.cu").read_text()
WAIT, COMMIT = 'asm volatile("cp.async.wait_group 1;");\n', 'asm volatile("cp.async.commit_group;");\n'
UNDER_WAY = "asynchronous copy that nothing has waited for"
READS = "ldmatrix.sync.aligned.m8n8"


def without_last(text):
    head, _, tail = PROGRAM.rpartition(text)
    return head + tail


MISTAKES = {
    "no wait": (PROGRAM.replace(WAIT, ""), UNDER_WAY, READS),
    "one group too many under way": (PROGRAM.replace("wait_group 1", "wait_group 2"), UNDER_WAY, READS),
    "no commit in the loop": (without_last(COMMIT), UNDER_WAY, READS),
    "the wait behind the barrier": (
        PROGRAM.replace(WAIT + "    __syncthreads();\n", "__syncthreads();\n" + WAIT),
        "is written, then read",
        READS,
    ),
    "no barrier before the reads": (
        PROGRAM.replace(WAIT + "    __syncthreads();\n", WAIT),
        "is written, then read",
        READS,
    ),
    "no barrier behind the reads": (
        without_last("__syncthreads();\n"),
        "is read, then written",
        "cp.async.cg",
    ),
    "both halves into one stage": (
        PROGRAM.replace("load(as[1 - stage]", "load(as[stage]"),
        "written",
        "cp.async",
    ),
}


def judged(text, tmp_path):
    (tmp_path / "product.cu").write_text(text)
    said = judge([tmp_path / "product.cu"], arguments=["128"])
    return said["verdict"], [str(finding) for finding in said["findings"] if finding["kind"] == "race"], said


def test_the_right_one(tmp_path):
    verdict, _, said = judged(PROGRAM, tmp_path)
    assert verdict == "ok", said


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake(mistake, tmp_path):
    text, what, line = MISTAKES[mistake]
    assert text != PROGRAM
    verdict, races, said = judged(text, tmp_path)
    assert verdict == "race", said
    assert any(what in race and line in race for race in races), said


def test_an_element_at_another_place(tmp_path):
    """The numbers are wrong, and no two threads meet."""
    verdict, races, said = judged(PROGRAM.replace("i / 2 * 8", "i % 2 * 8"), tmp_path)
    assert verdict == "wrong-status" and not races, said


def test_the_carry_of_one_thread_is_not_anothers():
    """add.cc and addc in two statements: the flag is no variable that threads share."""
    said = judge([ROOT / "tests" / "fixtures" / "judge" / "carry.cu"])
    assert (said["verdict"], said["ran"]) == ("ok", ["add"]), said


def test_flash_attention():
    """By cp.async, ldmatrix with and without .trans, mma.sync and shuffles, against its definition."""
    program = ROOT / "tests" / "fixtures" / "judge" / "attention.cu"
    assert run.main([str(program), "--", "1", "128"]) == 0
