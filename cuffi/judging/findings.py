"""What the runs of a program found, and the gravest of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from .arrays import array_of, kernel_text, shared_by
from .limits import OWN, Ran
from .rewriters import LaneRead, Mistake, OfHost, Race, parse

# From the gravest. The last six are no mistakes of the program.
CLASSES = [
    *(
        "bounds",
        "null",
        "race",
        "lane",
        "unset",
        "barrier",
        "constant",
        "assertion",
        "arithmetic",
        "undefined",
    ),
    *("host-pointer", "early-read"),
    *("different-result", "not-the-kernel", "wrong-status", "crash", "hang", "launch"),
    *("refused", "not-built", "no-kernel", "incomplete", "sampled", "not-proved"),
]
NO_VERDICT = {"refused", "not-built", "no-kernel", "incomplete", "sampled", "hang", "not-proved"}
# What C++ prints of an exception that nobody takes.
THROWN = re.compile(r"^ *what\(\): *(\S.*)$", re.M)
# What the errors' text says, in the order in which it is looked for.
SAID = [
    ("refused", r"a kernel was launched that is not rewritten[^\n]*|[^\n]*what only a GPU runs[^\n]*"),
    ("refused", r"[^\n]*this leaves nothing of the kernel[^\n]*"),
    ("barrier", r"threads of a block wait[^\n]*"),
    ("bounds", r"wrote outside of its dynamic shared memory[^\n]*|used byte \d+ of its dynamic shared[^\n]*"),
    ("memory-limit", r"AddressSanitizer: hard rss limit exhausted[^\n]*|std::bad_alloc[^\n]*"),
    ("bounds", r"ERROR: AddressSanitizer: (?!SEGV|FPE|ABRT|attempting)[^\n]*"),
    ("bounds", r"ERROR: AddressSanitizer: attempting[^\n]*"),
    ("null", r"AddressSanitizer: SEGV on unknown address 0x0000000000[0-9a-f]{2}\b[^\n]*"),
    ("null", r"[^\n]*runtime error: [^\n]*null pointer[^\n]*"),
    ("bounds", r"AddressSanitizer: SEGV[^\n]*|[^\n]*runtime error: index [^\n]*"),
    ("assertion", r"[^\n]*Assertion [^\n]*failed[^\n]*"),
    ("arithmetic", r"an integer was divided by zero[^\n]*|AddressSanitizer: FPE[^\n]*"),
    ("undefined", r"[^\n]*runtime error: [^\n]*"),
    ("null", r"used memory that is not there, at address (0x[0-9a-f]{1,3}\b|\(nil\))[^\n]*"),
    ("bounds", r"used memory that is not there[^\n]*"),
    ("hang", r"its blocks wait for each other[^\n]*|all threads of a block have waited[^\n]*"),
]
# Of kernels without a main() (harness.py) the arguments are invented, and what depends on them is no mistake. CASE
# begins what a call said: its count, its pattern of values, whether it has arrays of whole numbers, which may be
# indices, and what is promised of its arguments (promises.py): then only indices are. Races count if each index is
# there once (pattern 1), bounds if all are 0 (pattern 0), of arrays whose size the code says.
CASE = re.compile(OWN + r" begin: (\d+) (\d) (\d) (\d)\n")
SAMPLED = re.compile(OWN + r" sampled: (.*)\n")
UNMET = re.compile(OWN + r" unmet: (.*)\n")
ENDED = re.compile(OWN + r" case: \S+ \d+ \d+ (-?\d+)\n")
OF_VALUES = {"bounds", "null", "assertion", "arithmetic", "undefined", "crash"}
SIZED = re.compile(r"global-buffer|stack-buffer|runtime error: index")
SIZED_ARRAY, ANY = re.compile(SIZED.pattern + "|heap-buffer"), re.compile("")
FRAME = re.compile(r"#\d+ 0x\w+ in [^\n]*? (/[^\s:]+:\d+)")


# What the launcher says of AddressSanitizer's report: kernel, thread, block, what, bytes, from where in how many.
ACCESS = re.compile(
    OWN + r" access: kernel (.*): thread (\d+) of block (\d+)\t(\w+)\t(\d+)\t(-?\d+)\t(\d+)\n"
)
# Addresses, which are others in each run.
ADDRESSES = re.compile(
    r"( on (unknown )?address 0x| at pc 0x| \(pc 0x|, at address |: attempting free on address).*"
)
ADDRESS = re.compile(r"(?<=\baddress) 0x[0-9a-f]+")


@dataclass
class Finding:
    """One mistake: its class, a text, and 'file:line' and the kernel if they are known.

    Attributes:
        is_warning: it is of what CUDA allows.
        array: the name of the array, if it is known.
        accesses: what is known of each access: its place, thread and block.
    """

    kind: str
    text: str
    place: str = ""
    kernel: str = ""
    is_warning: bool = False
    array: str = ""
    accesses: list[dict] = field(default_factory=list)


def access_at(place: str, block: int, thread: int) -> dict:
    return {"place": place, "thread": thread, "block": block}


def _split(text: str, pattern: str) -> tuple[list[str], str]:
    """What calls said whose arguments fit, by what is promised of them (0, 1, 2); and what the others said."""
    first, *rest = CASE.split(text)
    fit, doubtful = [[first], [], []], []
    for count, own, whole, promised, said in zip(*(iter(rest),) * 5, strict=True):
        if (count == "0" and promised == "0") or (whole == "1" and own != pattern):
            doubtful.append(said)
        else:
            fit[int(promised)].append(said)
    return ["".join(texts) for texts in fit], "".join(doubtful)


def in_doubt(one: Finding) -> Finding:
    """A finding that may be an invented argument's."""
    text = f"an argument that was invented may not fit; with a main() this would be {one.kind}: {one.text}"
    return replace(one, kind="incomplete", text=text)


def of_log(log: str) -> tuple[list[Finding], set[str], list[str]]:
    """The findings of the race finder's log, the kernels that ran, and what did not."""
    (*some, whole), doubtful = _split(log, "1")
    found, kernels, left = _of_rows("".join(some))
    if some[0] == log:
        return found, kernels, left
    found = [in_doubt(one) if one.kind in OF_VALUES else one for one in found]
    for text, change in ((whole, lambda one: one), (doubtful, in_doubt)):
        more, its, why = _of_rows(text)
        told = {(one.kind, one.place) for one in found}
        found += [change(one) for one in more if (one.kind, one.place) not in told]
        kernels, left = kernels | its, left + why
    return found, kernels, list(dict.fromkeys(left))


def _of_rows(log: str) -> tuple[list[Finding], set[str], list[str]]:
    mistakes, ran, left = parse(log)
    found = []
    for one in mistakes:
        if isinstance(one, Race):
            found.append(_of_a_race(one))
        elif isinstance(one, OfHost):
            first, second = one.places
            own = access_at(second, *one.thread) if one.kind == "host-pointer" else {"place": second}
            accesses = [{"place": first}, own]
            place = first if one.kind == "host-pointer" else second  # the host's line
            found.append(Finding(one.kind, str(one), place, one.kernel, accesses=accesses))
        elif isinstance(one, LaneRead):
            found.append(
                Finding("lane", str(one), one.place, one.kernel, accesses=[access_at(one.place, *one.thread)])
            )
        else:
            text = re.sub(r", at address [^\n]*", "", str(one))
            accesses = [access_at(one.place, *one.thread)] if one.place and one.kind != "launch" else []
            found.append(
                Finding(_kind_of(one), text, one.place, one.kernel, one.is_warning, accesses=accesses)
            )
    return found, ran, left


def _of_a_race(one: Race) -> Finding:
    """With the name of the array, as far as the two lines say it."""
    name = one.variable or shared_by(one.lines, one.what, kernel_text(one.places[1]))
    accesses = [access_at(place, *thread) for place, thread in zip(one.places, one.threads, strict=True)]
    text = str(replace(one, variable=name))
    return Finding("race", text, one.places[1], one.kernel, array=name, accesses=accesses)


def _kind_of(mistake: Mistake) -> str:
    if mistake.kind != "fault":
        return mistake.kind
    if "divides" in mistake.text:
        return "arithmetic"
    return "null" if re.search(r"address (0x[0-9a-f]{1,3}|\(nil\))$", mistake.text) else "bounds"


def of_text(errors: str, files: list[str]) -> list[Finding]:
    """The findings that a run's error output tells."""
    frames = [place for place in FRAME.findall(errors) if place.rpartition(":")[0] in files]
    access = ACCESS.search(errors)
    errors = ACCESS.sub("", errors)
    found: dict[str, Finding] = {}
    for kind, pattern in SAID:
        if match := re.search(pattern, errors):
            text = re.sub(r"^==\d+==\s*|^ERROR: ", "", match[0].strip())
            own = re.match(r"(/[^\s:]+:\d+)", text)
            text = ADDRESS.sub("", ADDRESSES.sub("", text))
            one = Finding(kind, text, own[1] if own else next(iter(frames), ""))
            if access and "AddressSanitizer" in text:
                one = _of_access(one, access)
            found.setdefault(kind, one)
            errors = errors.replace(match[0], "")  # one line says one thing
    if "hang" in found:
        return [found["hang"]]
    if "memory-limit" in found:
        return [Finding("incomplete", f"the memory limit was reached: {found['memory-limit'].text}")]
    return list(found.values())


def _of_access(one: Finding, access: re.Match) -> Finding:
    """With kernel, thread, block, and how far it is outside of which memory."""
    kernel, thread, block, what, *rest = access.groups()
    width, at, size = map(int, rest)
    line = line_at(one.place)
    name = array_of(line, what == "writes", kernel_text(one.place))
    memory = f"{name + ', ' if name else ''}memory of {size} bytes"
    if not size:
        where = f"outside of {name}" if name else "that are not there"
    elif at >= size:
        where = f"{at - size} bytes after {memory}"
    else:
        where = f"{-at} bytes before {memory}" if at < 0 else f"in {memory}"
    where += f" (element {at // width})" if size and width else ""
    said = one.text.replace("AddressSanitizer: ", "")
    text = f"{one.kind} in kernel {kernel}: it {what} {width} bytes {where}: {said}"
    if one.place:
        text += f"\n    {one.place}: thread {thread} of block {block}: {line}"
    else:
        text += f", by thread {thread} of block {block}"
    accesses = [access_at(one.place, int(block), int(thread))]
    return Finding(one.kind, text, one.place, kernel, array=name, accesses=accesses)


def line_at(place: str) -> str:
    """The source's line at 'file:line'; "" if it cannot be read."""
    file, _, number = place.rpartition(":")
    try:
        return Path(file).read_text(errors="replace").splitlines()[int(number) - 1].strip()
    except (OSError, ValueError, IndexError):
        return ""


def of_run(ran: Ran, files: list[str], seconds: float) -> list[Finding]:
    """All findings of one run except the log's."""
    (certain, *promised), doubtful = _split(ran.errors, "0")
    found, invented = of_text(certain, files), certain != ran.errors
    cases = [int(n) for n in ENDED.findall(ran.errors)]
    if ran.stopped in ("memory", "processes"):
        return [Finding("incomplete", f"the limit of {ran.stopped} was reached")]
    if ran.status is None or -24 in cases:
        found.append(Finding("hang", f"no end within {seconds:g} s"))
    signals = [n for n in [*cases, ran.status or 0] if n < 0 and n != -24]
    if not found and signals:
        why = THROWN.search(ran.errors)
        found.append(Finding("crash", f"ended by signal {-min(signals)}{f': {why[1]}' if why else ''}"))
    if not invented:
        return found
    found = [in_doubt(one) if one.kind in OF_VALUES and not SIZED.search(one.text) else one for one in found]
    for text, known in zip(promised, (SIZED_ARRAY, ANY), strict=True):
        more = of_text(text, files)
        found += [
            one if one.kind not in OF_VALUES or known.search(one.text) else in_doubt(one) for one in more
        ]
    found += [
        Finding("incomplete", f"no size that was tried is as {name} requires")
        for name in UNMET.findall(ran.errors)
    ]
    return found + [in_doubt(one) for one in of_text(doubtful, files)]


def sampled(found: list[Finding], again: Ran, seconds: float) -> list[Finding]:
    """The findings of a run that was out of time, and what the same by a sample of blocks said, in place of the hang.

    If that did not end, either, its threads may wait for each other.
    """
    told = SAMPLED.search(again.errors)
    if again.status != 0 or not told:
        return found
    text = (
        f"out of time ({seconds:g} s), so only a part ran: {told[1]}; nothing is known of what comes behind"
    )
    return [one for one in found if one.kind != "hang"] + [Finding("sampled", text)]


def difference(output: str, expected: str) -> str:
    """What a program printed instead of its reference, word by word; "" if nothing. Numbers may differ by 1e-4."""
    own, its = output.split(), expected.split()
    for number, (one, other) in enumerate(zip(own, its, strict=False), 1):
        try:
            same = math.isclose(float(one), float(other), rel_tol=1e-4, abs_tol=1e-4) or one == other
        except ValueError:
            same = one == other
        if not same:
            return f"word {number} of the output is {one[:80]}, and of the reference's {other[:80]}"
    return "" if len(own) == len(its) else f"the output has {len(own)} words, the reference's {len(its)}"


def gravest(findings: list[Finding]) -> tuple[str, int]:
    """The gravest class, and the exit status: 0 clean or only warned of, 1 wrong, 3 no verdict."""
    first = min(findings, key=lambda f: (f.is_warning, CLASSES.index(f.kind)), default=None)
    if not first or first.is_warning:
        return first.kind if first else "ok", 0
    return first.kind, 3 if first.kind in NO_VERDICT else 1
