"""A judgement as text, as lines for editors, as GitHub's annotations, and as SARIF 2.1.0."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from urllib.parse import quote

from .findings import CLASSES, NO_VERDICT, line_at
from .remedies import USUAL

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def shown(said: dict) -> str:
    """The answer as text. Files below the folder where we are have no more of their paths than that."""
    allowed = ", a warning" if said["findings"] and not said["status"] else ""
    lines = [f"{said['files'][0] if said['files'] else '?'}: {said['verdict']}{allowed}"]
    lines += [f"  {one['kind']}: {one['text']}" + _at(one) + _remedy(one) for one in said["findings"]]
    lines += [f"  not run: {why}" for why in said["not_run"]]
    lines += [_proof(one) for one in said.get("proofs", []) if one["verdict"] == "proved"]
    ran = ", ".join(said["ran"]) or "no kernel"
    text = "\n".join([*lines, f"  ran: {ran}; {said['seconds']} s"])
    return re.sub(rf"(?<![\w./-]){re.escape(str(Path.cwd()))}/", "", text)


def _proof(one: dict) -> str:
    """What is proved of a kernel, and what of that is assumed."""
    names = {"race": "race", "barrier": "divergent barrier"}
    what = [names[word] for word in names if word in one["asked"]]
    arrays = [word.removeprefix("bounds of ") for word in one["asked"] if word.startswith("bounds of ")]
    what += [f"access outside of {', '.join(arrays)}"] if arrays else []
    where = f", if {' and '.join(one['requires'])}" if one["requires"] else ""
    lines = [
        f"  proved: kernel {one['kernel']}: no {', no '.join(what)}, for all numbers, blocks and grids{where}"
    ]
    lines += [f"    assumed: {'; '.join(one['assumed'])}"]
    return "\n".join([*lines, *(f"    not asked: {why}" for why in one["not_asked"])])


def _at(one: dict) -> str:
    return f"\n    {one['place']}" if one["place"] and one["place"] not in one["text"] else ""


def _remedy(one: dict) -> str:
    return f"\n    remedy: {one['remedy']}" if one.get("remedy") else ""


def for_github(said: dict) -> str:
    """The findings as GitHub's workflow commands, which mark lines of a change."""
    lines = []
    for one in said["findings"]:
        named, _, line = one["place"].rpartition(":")
        file = named or said["files"][0]
        with contextlib.suppress(ValueError):
            file = str(Path(file).relative_to(Path.cwd()))
        where = f"file={file},line={line}," if named else f"file={file},"
        text = one["text"].replace("%", "%25").replace("\n", "%0A")
        level = "error" if said["status"] == 1 and not one["is_warning"] else "warning"
        lines.append(f"::{level} {where}title=cuffi judge: {one['kind']}::{text}")
    return "\n".join(lines)


def level(one: dict, status: int) -> str:
    """error or warning."""
    return "error" if status == 1 and not one["is_warning"] and one["kind"] not in NO_VERDICT else "warning"


def place_of(place: str, said: dict) -> tuple[str, int, int]:
    """The file, relative to where we are if it lies below, the line and the column of its first word; 1 if unknown."""
    file, _, number = place.rpartition(":")
    line = int(number) if number.isdigit() else 1
    file = file if number.isdigit() else (said["files"] or ["?"])[0]
    column = 1
    with contextlib.suppress(OSError, IndexError):
        text = Path(file).read_text(errors="replace").splitlines()[line - 1]
        column = len(text) - len(text.lstrip()) + 1
    with contextlib.suppress(ValueError):
        file = str(Path(file).relative_to(Path.cwd()))
    return file, line, column


def lines(said: dict) -> str:
    """A line for each finding, as compilers write them: file:line:column: error: text [class]."""
    rows = []
    for one in said["findings"]:
        file, line, column = place_of(one["place"], said)
        text = one["text"].partition("\n")[0]
        rows.append(f"{file}:{line}:{column}: {level(one, said['status'])}: {text} [{one['kind']}]")
    return "\n".join(rows)


def sarif(all_said: list[dict]) -> dict:
    """The findings of judgements as one run of SARIF 2.1.0, which GitHub's code scanning takes."""
    rules = [
        {"id": kind, "shortDescription": {"text": kind}}
        | ({"help": {"text": USUAL[kind]}} if kind in USUAL else {})
        for kind in CLASSES
    ]
    results = [_result(one, said) for said in all_said for one in said["findings"]]
    driver = {"name": "cuffi judge", "informationUri": "https://pypi.org/project/cuffi/", "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(one: dict, said: dict) -> dict:
    made = {
        "ruleId": one["kind"],
        "ruleIndex": CLASSES.index(one["kind"]),
        "level": level(one, said["status"]),
        "message": {"text": one["text"]},
        "locations": [_location(one["place"], said)],
    }
    if accesses := one.get("accesses"):
        made["relatedLocations"] = [
            _location(its["place"], said)
            | {
                "message": {
                    "text": f"thread {its['thread']} of block {its['block']}" if "thread" in its else "here"
                }
            }
            for its in accesses
        ]
    return made


def _location(place: str, said: dict) -> dict:
    file, line, column = place_of(place, said)
    region: dict = {"startLine": line, "startColumn": column}
    if text := line_at(place):
        region["snippet"] = {"text": text}
    uri = quote(file) if not Path(file).is_absolute() else Path(file).as_uri()
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
