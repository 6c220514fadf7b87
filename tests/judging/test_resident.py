"""Requests of a resident judge: what they may ask for, and an answer to each."""

import json

import pytest

from cuffi.judging.limits import Limits
from cuffi.judging.resident import Resident


def answer(request, judge=None):
    asked = []

    def says(*given):
        asked.append(given)
        return {"verdict": "ok", "status": 0, "files": [str(file) for file in given[0]]}

    line = request if isinstance(request, str) else json.dumps(request)
    return json.loads(Resident(judge or says, Limits(), ["-DA"], 64).answer(line)), asked


def test_texts_limits_and_options_of_a_request():
    request = {
        "id": 7, "text": "x = 1\n", "name": "k.py", "reference_text": "y = 2\n", "limits": {"seconds": 3},
        "options": ["-DB=2"], "blocks": 8, "arguments": ["a"], "promises": {"k": {}},
    }  # fmt: skip
    texts = []

    def judge(files, arguments, limits, options, blocks, reference, promises):
        texts.extend([files[0].read_text(), reference.read_text(), files[0].name])
        assert (limits.seconds, options, blocks, arguments, promises) == (
            3,
            ["-DA", "-DB=2"],
            8,
            ["a"],
            {"k": {}},
        )
        return {"verdict": "ok", "status": 0, "files": [str(files[0])]}

    said, _ = answer(request, judge)
    assert said == {"verdict": "ok", "status": 0, "files": ["k.py"], "id": 7}  # no temporary folder
    assert texts == ["x = 1\n", "y = 2\n", "k.py"]


@pytest.mark.parametrize(
    "request_, words",
    [
        ("{", "Expecting"),
        ("[]", "a JSON object"),
        ({"id": 1}, '"files" or "text"'),
        ({"text": "", "colour": 1}, 'no "colour"'),
        ({"text": 3}, '"text" of a request'),
        ({"text": "", "limits": {"days": 1}}, 'no limit "days"'),
        ({"text": "", "limits": {"seconds": "1"}}, "a limit is a number"),
        ({"text": "", "options": ["-o"]}, "begins with -D or -I"),
        ({"text": "", "name": "../k.cu"}, "the name of a .cu"),
        ({"files": ["/no.cu"]}, "no file /no.cu"),
    ],
)
def test_what_is_no_request(request_, words):
    said, asked = answer(request_)
    assert said["status"] == 2 and words in said["findings"][0]["text"] and not asked
    assert said.get("id") == (1 if request_ == {"id": 1} else None)


def test_a_fault_of_the_judge_s_own_ends_one_answer():
    def fails(*_):
        raise ZeroDivisionError("division")

    said, _ = answer({"id": 1, "text": ""}, fails)
    assert (said["status"], said["id"]) == (3, 1) and "the judge itself failed" in said["findings"][0]["text"]
