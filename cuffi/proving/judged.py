"""A judgement with proofs. A refutation is told only if the judge has seen it, with a counterexample's sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ..judging.findings import NO_VERDICT, Finding, gravest
from ..judging.promises import Promise
from ..judging.remedies import remedy
from .proof import Proof, proofs
from .questions import Counterexample

NOT_PROVED = "not-proved"
Judge = Callable[[Mapping], dict]  # judges the file again with these promises
MOST_RUNS = 2  # of the judge, for one kernel


def with_proofs(
    said: dict, files: Sequence, options: Sequence[str], promises: Mapping | None, judge: Judge
) -> dict:
    """What the judge has said, and of what it has found nothing in, what is proved."""
    if said["status"] == 1 or said["verdict"] in ("not-built", "no-kernel"):
        return said | {"proofs": []}
    made = [one for file in files for one in proofs(Path(file), options, promises)]
    found: list[dict] = []
    told = []
    for one in made:
        seen = _seen(one, said, judge)
        kind = seen["kind"] if seen else "proved" if one.is_proved else NOT_PROVED
        found += [seen] if seen else [] if one.is_proved else [_finding(one)]
        told.append(_told(one, kind))
    warned = [one | {"is_warning": True} for one in said["findings"]]
    verdict, status = _verdict(found)
    return said | {"verdict": verdict, "status": status, "findings": found + warned, "proofs": told}


def _verdict(found: list[dict]) -> tuple[str, int]:
    if not found:
        return "proved", 0
    return gravest([Finding(one["kind"], one["text"]) for one in found])


def _told(proof: Proof, kind: str) -> dict:
    return {
        "kernel": proof.kernel,
        "verdict": kind,
        "asked": proof.asked,
        "not_asked": proof.not_asked,
        "requires": proof.requires,
        "assumed": proof.assumed,
    }


def _finding(proof: Proof) -> dict:
    """Why it is not proved."""
    if proof.counterexamples:
        first = proof.counterexamples[0]
        text = f"{first.text} cannot be excluded, {_numbers(first)}"
        text += "; the judge did not see it there: a promise may be missing"
        place = str(first.line)
    else:
        text, place = proof.reasons[0]
    more = len(proof.reasons) + len(proof.counterexamples) - 1
    text = f"kernel {proof.kernel}: {text}" if proof.kernel else text
    made = Finding(NOT_PROVED, text + (f" (and {more} more)" if more else ""), place, proof.kernel)
    return asdict(made) | {"remedy": remedy(made)}


def _numbers(one: Counterexample) -> str:
    shown = [f"{name} == {value}" for name, value in one.model.items() if _is_shown(name)]
    return f"with {', '.join(shown[:12])}" if shown else "as far as is known"


def _is_shown(name: str) -> bool:
    return not name.startswith("is ") and not any(sign in name for sign in "!'")


def _seen(proof: Proof, said: dict, judge: Judge) -> dict | None:
    """What the judge finds with a counterexample's block, grid and numbers."""
    for one in proof.counterexamples[:MOST_RUNS]:
        again = judge({proof.kernel: promise(proof, one)})
        for finding in again["findings"]:
            is_certain = not finding["is_warning"] and finding["kind"] not in NO_VERDICT
            if is_certain and finding["kernel"] == proof.kernel and _is_that(finding["kind"], one.kind):
                return finding
    return None


def _is_that(found: str, kind: str) -> bool:
    return found in {"race": ("race",), "bounds": ("bounds", "null"), "barrier": ("barrier",)}[kind]


def promise(proof: Proof, one: Counterexample) -> dict:
    """What is required, and the counterexample's numbers."""
    given: Promise = proof.promise
    sizes = [f"{name} == {value}" for name, value in one.model.items() if name in proof.numbers]
    axes = [f"{name} == {value}" for name, value in one.model.items() if "Dim." in name and "'" not in name]
    return {"requires": [*given.requires, *axes, *sizes], "size": given.size}
