"""SARIF: what the standard 2.1.0 says of the parts that we write: required fields, types, limits."""

import re

import pytest

from cuffi.judging.shown import sarif

TEXT = {"type": dict, "required": ["text"], "properties": {"text": {"type": str}}}
REGION = {
    "type": dict,
    "properties": {
        "startLine": {"type": int, "minimum": 1},
        "startColumn": {"type": int, "minimum": 1},
        "snippet": {"type": dict, "properties": {"text": {"type": str}}},
    },
}
# A URI reference (RFC 3986) has no blank, and nothing that is not ASCII.
ARTIFACT = {
    "type": dict,
    "properties": {"uri": {"type": str, "pattern": r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+"}},
}
PHYSICAL = {
    "type": dict,
    "required": ["artifactLocation"],
    "properties": {"artifactLocation": ARTIFACT, "region": REGION},
}
LOCATION = {"type": dict, "properties": {"physicalLocation": PHYSICAL, "message": TEXT}}
RESULT = {
    "type": dict,
    "required": ["message"],
    "properties": {
        "ruleId": {"type": str},
        "ruleIndex": {"type": int, "minimum": -1},
        "level": {"type": str, "enum": ["none", "note", "warning", "error"]},
        "message": TEXT,
        "locations": {"type": list, "items": LOCATION},
        "relatedLocations": {"type": list, "items": LOCATION},
    },
}
RULE = {
    "type": dict,
    "required": ["id"],
    "properties": {"id": {"type": str}, "shortDescription": TEXT, "help": TEXT},
}
DRIVER = {
    "type": dict,
    "required": ["name"],
    "properties": {
        "name": {"type": str},
        "informationUri": {"type": str, "pattern": r"https://\S+"},
        "rules": {"type": list, "items": RULE},
    },
}
RUN = {
    "type": dict,
    "required": ["tool"],
    "properties": {
        "tool": {"type": dict, "required": ["driver"], "properties": {"driver": DRIVER}},
        "results": {"type": list, "items": RESULT},
    },
}
SCHEMA = {
    "type": dict,
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": str, "pattern": r"https://\S+sarif\S+2\.1\.0\S*"},
        "version": {"type": str, "enum": ["2.1.0"]},
        "runs": {"type": list, "items": RUN},
    },
}


def wrong(value, schema: dict, at: str = "") -> list[str]:
    """Where a value is not as the schema says. No further properties are allowed."""
    if type(value) is not schema["type"]:
        return [f"{at}: {type(value).__name__}"]
    found = [f"{at}: {value!r}" for known in [schema.get("enum")] if known and value not in known]
    found += [f"{at}: {value}" for least in [schema.get("minimum")] if least is not None and value < least]
    found += [f"{at}: {value}" for text in [schema.get("pattern")] if text and not re.fullmatch(text, value)]
    if schema["type"] is list:
        found += [one for n, item in enumerate(value) for one in wrong(item, schema["items"], f"{at}[{n}]")]
    if schema["type"] is dict:
        known = schema["properties"]
        found += [f"{at}: no {name}" for name in schema.get("required", []) if name not in value]
        found += [f"{at}: {name}?" for name in value if name not in known]
        found += [
            one for name in value if name in known for one in wrong(value[name], known[name], f"{at}.{name}")
        ]
    return found


def finding(kind: str, place: str, **more) -> dict:
    return {"kind": kind, "text": "words", "place": place, "kernel": "k", "is_warning": False} | more


@pytest.fixture
def said(tmp_path):
    file = tmp_path / "k \u00e4.cu"
    file.write_text("one\n  two\nthree\n")
    accesses = [{"place": f"{file}:2", "thread": 0, "block": 0}, {"place": f"{file}:3"}]
    findings = [
        finding("race", f"{file}:2", accesses=accesses), finding("hang", ""), finding("bounds", f"{file}:99"),
        finding("barrier", f"{file}:1", is_warning=True),
    ]  # fmt: skip
    return {"verdict": "race", "status": 1, "findings": findings, "files": [str(file)]}


def test_it_is_as_the_standard_says(said):
    told = sarif([said, said | {"findings": []}])
    assert not wrong(told, SCHEMA)
    (run,) = told["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (
        all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
        and len(run["results"]) == 4
    )
    first, second = run["results"][0]["relatedLocations"]
    assert (
        first["message"]["text"] == "thread 0 of block 0"
        and first["physicalLocation"]["region"]["startColumn"] == 3
    )
    assert second["physicalLocation"]["region"]["startLine"] == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("version"),
        lambda told: told["runs"][0]["results"][0].pop("message"),
        lambda told: told["runs"][0]["results"][0].update(level="fatal"),
        lambda told: told["runs"][0]["results"][0]["locations"][0].update(place=1),
        lambda told: told["runs"][0]["tool"]["driver"].pop("name"),
    ],
)
def test_the_schema_refuses_what_is_not(said, change):
    told = sarif([said])
    change(told)
    assert wrong(told, SCHEMA)
