"""Requests of a resident judge: what each may ask for, and an answer whatever becomes of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from .limits import Limits

# What a request may have, and its types.
KNOWN = {
    "id": object,
    "files": list,
    "text": str,
    "name": str,
    "arguments": list,
    "reference": (str, type(None)),
    "reference_text": str,
    "limits": dict,
    "options": list,
    "blocks": int,
    "promises": dict,
}
LIMITS = {field.name for field in fields(Limits)}


@dataclass
class Resident:
    """What holds for all requests that do not say otherwise. `judge` is cuffi.judge's."""

    judge: Callable[..., dict]
    limits: Limits
    options: list[str]
    blocks: int

    def answers(self, lines: Iterable[str]):
        """The answer to each line that has a request, as a line."""
        for line in lines:
            if line.strip():
                yield self.answer(line)

    def answer(self, line: str) -> str:
        """The answer to a request, whatever is in it."""
        request: dict = {}
        with tempfile.TemporaryDirectory(prefix="cuffi-judge-") as place:
            try:
                request = json.loads(line)
                said = self._judged(_checked(request), Path(place))
            except (ValueError, OSError) as error:
                said = _nothing("usage", 2, str(error))
            except Exception as error:  # a fault of the judge's own ends one answer, and not the judge
                said = _nothing("incomplete", 3, f"the judge itself failed: {type(error).__name__}: {error}")
            said |= {"id": request["id"]} if isinstance(request, dict) and "id" in request else {}
            return json.dumps(said).replace(json.dumps(f"{place}/")[1:-1], "")

    def _judged(self, request: dict, place: Path) -> dict:
        files, reference = request.get("files") or [], request.get("reference")
        if "text" in request:
            files = [place / request.get("name", "candidate.cu")]
            files[0].write_text(request["text"])
        if "reference_text" in request:
            reference = place / "reference" / "reference.py"
            reference.parent.mkdir()
            reference.write_text(request["reference_text"])
        for file in filter(None, [*files, reference]):
            if not Path(file).is_file():
                raise ValueError(f"no file {file}")
        return self.judge(
            files,
            request.get("arguments", ()),
            replace(self.limits, **request.get("limits", {})),
            [*self.options, *request.get("options", [])],
            request.get("blocks", self.blocks),
            reference,
            request.get("promises"),
        )


def _checked(request) -> dict:
    """The request.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    if not request.get("files") and "text" not in request:
        raise ValueError('a request needs "files" or "text"')
    for name, value in request.items():
        if name not in KNOWN:
            raise ValueError(f'a request has no "{name}"; it may have {", ".join(KNOWN)}')
        if not isinstance(value, KNOWN[name]):
            raise ValueError(f'"{name}" of a request: {value!r}'[:200])
    if wrong := [name for name in request.get("limits", {}) if name not in LIMITS]:
        raise ValueError(f'there is no limit "{wrong[0]}"; there are {", ".join(sorted(LIMITS))}')
    if any(not isinstance(limit, (int, float)) for limit in request.get("limits", {}).values()):
        raise ValueError("a limit is a number")
    if wrong := [word for word in request.get("options", []) if not str(word).startswith(("-D", "-I"))]:
        raise ValueError(f"an option begins with -D or -I: {wrong[0]}")
    name = request.get("name", "candidate.cu")
    if Path(name).name != name or Path(name).suffix not in (".cu", ".py"):
        raise ValueError(f'"name" is the name of a .cu or a .py file: {name!r}')
    return request


def _nothing(verdict: str, status: int, text: str) -> dict:
    finding = {"kind": verdict, "text": text, "place": "", "kernel": "", "is_warning": False}
    return {"verdict": verdict, "status": status, "findings": [finding]}
