"""What of an invented run is certain."""

from cuffi.judging.findings import Finding
from cuffi.judging.invented import Invented

RACE = Finding("race", "a race", "k.cu:3", "k")
OTHER = Finding("race", "another race", "k.cu:9", "k")
OUTSIDE = Finding("bounds", "runtime error: index 40 out of bounds", "k.cu:5")


def certain(found: list[Finding], races=lambda **_: [], memory=lambda **_: []) -> list[str]:
    return [one.text for one in Invented(races, memory).certain(found) if one.kind != "incomplete"]


def test_what_is_always_there_is_certain():
    assert certain([RACE, OTHER], lambda **_: [RACE]) == [RACE.text]
    assert certain([RACE], lambda **given: [] if "CAFFE_JUDGE_FIRST" in given else [RACE]) == []
    assert certain([RACE], lambda **given: [] if given.get("CAFFE_JUDGE_BLOCK") == "2" else [RACE]) == []


def test_a_block_that_the_text_refuses_says_nothing():
    def races(**given):
        return [] if given.get("CAFFE_JUDGE_BLOCK") == "2" else [RACE]

    def memory(**given):
        return [OUTSIDE] if given.get("CAFFE_JUDGE_BLOCK") == "2" else []

    assert certain([RACE], races, memory) == [RACE.text]
    assert certain([OUTSIDE], races, memory) == []  # another block has it not
    assert certain([OUTSIDE], races, lambda **_: [OUTSIDE]) == [OUTSIDE.text]


def test_without_a_mistake_nothing_runs_again():
    def runs(**_):
        raise AssertionError

    warning = Finding("barrier", "allowed", is_warning=True)
    hang = Finding("hang", "no end")
    assert Invented(runs, runs).certain([warning, hang]) == [warning, hang]
