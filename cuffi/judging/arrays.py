"""The names of arrays that a line of a kernel writes or reads, by its text: a parameter of the kernel, if it is one."""

from __future__ import annotations

import re
from pathlib import Path

# a[i] = ..., a[i][j] += ..., *a = ..., a->x = ..., a[i].x = ..., ++a[i], a[i]++
_ELEMENT = r"(?<![\w.>])(\w+)\s*(?:(?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]\s*)+(?:\.\w+\s*)*|->\s*\w+\s*)"
_POINTED = r"(?<![\w)\]])\*\s*\(?\s*(\w+)\b(?:[^=;,()]|\([^()]*\))*?\)?\s*"
_CHANGES = r"(?:[-+*/%|&^]|<<|>>)?=(?!=)"
_WRITTEN = re.compile(
    rf"(?:{_ELEMENT}|{_POINTED})({_CHANGES})|(?:\+\+|--)\s*{_ELEMENT}|{_ELEMENT}(\+\+|--)|\*\s*(\w+)\s*\)\s*(\+\+|--)"
)
_ATOMIC = re.compile(r"\batomic\w+(?:<[^<>]*>)?\s*\(\s*(?:\([^()]*\)\s*)?&?\s*(\w+)")
_USED = re.compile(r"(?<![\w.>])(\w+)\s*(?:\[|->)|(?:^|[-+*/=(,?:<>!&|;{}]|return)\s*\*\s*\(?\s*(\w+)")


def written(line: str) -> set[str]:
    """The arrays that this line writes."""
    found = {
        name
        for match in _WRITTEN.finditer(line)
        for name in match.groups()
        if name and name[0] not in "+-*/%|&^<>="
    }
    inner = {name for index in re.findall(r"\[([^\[\]]+)\]", line) for name in written(index)}
    return found | inner | {match[1] for match in _ATOMIC.finditer(line)}


def read(line: str) -> set[str]:
    """The arrays that this line reads. What it only assigns to is not read."""
    found = {name for match in _USED.finditer(line) for name in match.groups() if name}
    found |= {match[1] for match in _ATOMIC.finditer(line)}
    for match in _WRITTEN.finditer(line):
        name, *_, change = [part for part in match.groups() if part] * 2
        only = change == "=" and len(re.findall(rf"(?<![\w.>]){re.escape(name)}\b", line)) == 1
        found = found - {name} if only else found | {name}
    return found


def kernel_text(place: str) -> str:
    """The text from the kernel's head to the line at 'file:line'; "" if it cannot be read."""
    file, _, number = place.rpartition(":")
    try:
        lines = Path(file).read_text(errors="replace").splitlines()[: int(number)]
    except (OSError, ValueError):
        return ""
    first = max(
        (n for n, line in enumerate(lines) if re.search(r"\b__(global|device)__\b", line)), default=len(lines)
    )
    return "\n".join(lines[first:])


def origin(name: str, text: str) -> str:
    """The parameter or shared array that a name stands for: `float* row = x + i * n;` is of x."""
    for _ in range(4):
        found = re.search(rf"[*&]\s*(?:const\s+|__restrict__\s+)?{re.escape(name)}\s*=\s*([^;,]+)", text)
        names = (
            re.findall(r"[A-Za-z_]\w*", re.sub(r"\([^()]*[*>]\s*\)|\w+_cast<[^<>]*>", " ", found[1]))
            if found
            else []
        )
        if not names:
            return name
        name = names[0]
    return name


def array_of(line: str, is_written: bool, text: str = "") -> str:
    """The array that this line writes, or reads, if it is one alone."""
    found = {origin(name, text) for name in (written(line) if is_written else read(line))}
    return found.pop() if len(found) == 1 else ""


def _by_atomics(line: str) -> set[str]:
    """The arrays that this line uses in atomic operations, and nowhere else."""
    names = [match[1] for match in _ATOMIC.finditer(line)]
    return {
        one for one in names if len(re.findall(rf"(?<![\w.>]){re.escape(one)}\b", line)) == names.count(one)
    }


def shared_by(lines: tuple[str, str], what: str, text: str) -> str:
    """The array that both lines access, of a race: `what` is "written, then read" and the like. "" if unknown.

    What both lines change by atomics alone does not race.
    """
    first, _, second = what.partition(", then ")
    sides = []
    for line, does in zip(lines, (first, second or first), strict=True):
        names = read(line) if does.startswith("read") else written(line)
        sides.append({origin(name, text) for name in names})
    both = (sides[0] & sides[1]) - {origin(name, text) for name in set.intersection(*map(_by_atomics, lines))}
    return both.pop() if len(both) == 1 else ""
