"""Problems and notes of a net that is built: one error names all problems."""

from __future__ import annotations

from collections.abc import Iterable

from ...base import CaffeValueError, some
from ...base.shown import command
from ...caffe_files.parameters import Unknown
from .graph import Spec


class Report:
    """What is found out while a net is built: problems by layer, and notes."""

    def __init__(self, path):
        self.path = path
        self.problems: dict[tuple[int, str], tuple[Spec, list[str]]] = {}
        self.always: dict[Spec, list[str]] = {}  # problems that a layer has in every phase
        self.missing: set[str] = set()  # types that nobody has, to be ported
        self.notes: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.problems)

    def add(self, spec: Spec, reason: str, phase: str = "") -> None:
        """Add a problem of a layer, in one phase or in all."""
        _, phases = self.problems.setdefault((spec.line, reason), (spec, []))
        if phase not in phases:
            phases.append(phase)

    def stop(self, spec: Spec, reason: str) -> None:
        """Add a problem that a layer has in every phase. It counts in those that have the layer: `add_always`."""
        self.always.setdefault(spec, []).append(reason)

    def add_always(self, phase: str, specs: Iterable[Spec]) -> None:
        """Add what stops these layers of a phase."""
        for spec in specs:
            for reason in self.always.get(spec, ()):
                self.add(spec, reason, phase)

    def note(self, spec: Spec, what: str, line: int | None = None) -> None:
        self.notes.append(f"line {spec.line if line is None else line}: {spec.name!r}{what}")

    def note_fields(self, spec: Spec, fields: Iterable[Unknown], what: str) -> None:
        for one in fields:
            self.note(spec, f": {one.path} {what}", one.line)

    def of_phase(self, phase: str) -> list[tuple[Spec, str]]:
        """(layer, reason) of those in this phase."""
        return [(spec, reason) for (_, reason), (spec, phases) in self.problems.items() if phase in phases]

    def error(self, phases: int) -> CaffeValueError:
        lines = []
        for (line, reason), (spec, in_phases) in sorted(self.problems.items(), key=lambda item: item[0][0]):
            alone = (
                f" (only in phase {in_phases[0]})" if len(in_phases) < phases and "" not in in_phases else ""
            )
            lines.append(f"  line {line}: {spec.name!r} ({spec.type}): {reason}{alone}")
        text = f"{self.path}: {len(lines)} problem{'s' * (len(lines) > 1)}:\n"
        text += "\n".join(some(lines))
        if self.missing:
            types = " ".join(sorted(self.missing)[:50])  # the next error names the others
            port = command("make", "port", "CAFFE=/path/to/the/fork", f"TYPE={types}")
            text += f"\nTo port what is missing: {port}"
            text += (
                f"\nTo write it with torch: caffe_net(..., types={{{min(self.missing)!r}: your function}})"
            )
        return CaffeValueError(text)


def reason_of(error: Exception, spec: Spec) -> str:
    """A layer's error without the layer's name, which the report shows itself."""
    return str(error).removeprefix(f"{spec.name}: ").strip() or type(error).__name__
