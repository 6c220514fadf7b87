"""What `cuffi judge --prove` says: a refutation only if the judge has seen it."""

import json

import pytest
from proving.test_proof import SAXPY

from cuffi.judging.findings import Finding
from cuffi.judging.shown import sarif, shown
from cuffi.proving import judged

OK = {"verdict": "ok", "status": 0, "findings": [], "not_run": [], "ran": ["k"], "seconds": 1}


def given(tmp_path, text: str, seen: list[dict]):
    """The judgement of a text, and what was asked of the judge, which then finds this."""
    file, again = tmp_path / "k.cu", []
    file.write_text(text)

    def judge(promises):
        again.append(promises)
        return OK | {"findings": seen}

    return judged.with_proofs(OK | {"files": [str(file)]}, [file], [], None, judge), again


def test_a_proof(tmp_path):
    said, again = given(tmp_path, SAXPY, [])
    assert (said["verdict"], said["status"], again) == ("proved", 0, [])
    assert "no race, no access outside of x, y, for all numbers" in shown(said) and "assumed:" in shown(said)
    assert json.loads(json.dumps(said))["proofs"][0]["verdict"] == "proved"


def test_a_refutation_is_told_if_the_judge_has_seen_it(tmp_path):
    seen = vars(Finding("bounds", "it reads outside", f"{tmp_path}/k.cu:4", "k")) | {"remedy": ""}
    said, again = given(tmp_path, SAXPY.replace("i < n", "i <= n"), [seen])
    assert (said["verdict"], said["status"]) == ("bounds", 1)
    promised = again[0]["k"]
    assert promised["size"] == {"x": "n", "y": "n"}
    assert [one for one in promised["requires"] if one.startswith("n == ")]
    assert [one for one in promised["requires"] if one.startswith("blockDim.x == ")]


@pytest.mark.parametrize(
    "seen", [[], [vars(Finding("race", "r", "", "k"))], [vars(Finding("bounds", "b", "", "other"))]]
)
def test_else_it_is_not_proved(seen, tmp_path):
    said, again = given(tmp_path, SAXPY.replace("i < n", "i <= n"), seen)
    assert (said["verdict"], said["status"]) == ("not-proved", 3) and again
    assert "the judge did not see it" in said["findings"][0]["text"]
    result = sarif([said])["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("not-proved", "warning")


def test_what_the_judge_has_found_is_told_as_it_is(tmp_path):
    wrong = OK | {"verdict": "race", "status": 1}
    assert judged.with_proofs(wrong, ["no.cu"], [], None, lambda promises: OK)["verdict"] == "race"


def test_what_is_not_followed_has_its_line(tmp_path):
    said, _ = given(tmp_path, "__global__ void k(float* y) {\n  other(y);\n}\n", [])
    finding = said["findings"][0]
    assert said["status"] == 3 and finding["place"].endswith("k.cu:2") and "other" in finding["text"]
