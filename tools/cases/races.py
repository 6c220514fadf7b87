"""Read the log of the race finder (src/host/host_races.h), and describe races: kernel, lines, threads, element.

`python -m tools.cases.races LOG` prints them.

Libraries that were built with SANITIZE=races append lines to the file CAFFE_RACES: one for each kernel that runs, one
for each pair of code lines at which two threads of a launch race, one for each other mistake at one line, and one for
each kernel that was not watched whole.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

from ..cuda.source import Source
from ..files import read

TOOLKIT = Path(__file__).resolve().parents[2]
# Frames in these folders are skipped, to find the kernel's own line.
NOT_THE_KERNELS = (TOOLKIT / "include", TOOLKIT / "src")


@dataclass(frozen=True)
class Race:
    """Two accesses by two threads of one launch.

    Attributes:
        kernel: its name.
        what: the accesses of the first and the second thread.
        space: 'global', 'shared', or 'variable': one of the library's own, such as a __device__ variable.
        places: 'file:line' of the first and of the second access.
        lines: the source's lines at these places.
        threads: both threads as (block, thread in the block).
        element: the index of the element behind the kernel's pointer, or in the variable; -1 in shared memory.
        bytes: the size of the accesses.
        variable: the name of the variable.
    """

    kernel: str
    what: str
    space: str
    places: tuple[str, str]
    lines: tuple[str, str]
    threads: tuple[tuple[int, int], tuple[int, int]]
    element: int
    bytes: int
    variable: str = ""

    @property
    def within_a_warp(self) -> bool:
        """Are both threads of one warp?"""
        (block, thread), (other_block, other) = self.threads
        return block == other_block and thread // 32 == other // 32

    def __str__(self) -> str:
        (one, other), (here, there) = self.threads, self.places
        what = f"element {self.element} of {self.variable}" if self.variable else f"element {self.element}"
        if self.space == "shared":
            what = f"the shared variable {self.variable}" if self.variable else "a shared variable"
        who = "two threads within one warp" if self.within_a_warp else "two threads"
        between = f", by {who} without an atomic or a barrier between"
        if "asynchronous copy" in self.what:  # its own thread may be the second one
            between = ""
        return (
            f"race in kernel {self.kernel}: {what} ({self.bytes} bytes) is {self.what}{between}\n"
            f"    {here}: thread {one[1]} of block {one[0]}: {self.lines[0]}\n"
            f"    {there}: thread {other[1]} of block {other[0]}: {self.lines[1]}"
        )


@dataclass(frozen=True)
class LaneRead:
    """A shuffle that reads from a lane that does not take part: it has returned, does not exist, or is not in the mask.

    Attributes:
        kernel, place, line: as in Race.
        thread: (block, thread in the block).
        lane: the lane that it reads from.
    """

    kernel: str
    place: str
    line: str
    thread: tuple[int, int]
    lane: int

    def __str__(self) -> str:
        block, thread = self.thread
        return (
            f"shuffle in kernel {self.kernel}: a thread reads from lane {self.lane}, which takes no part, so the value"
            f" is undefined\n    {self.place}: thread {thread} of block {block}: {self.line}"
        )


@dataclass(frozen=True)
class Mistake:
    """Another mistake of one thread.

    Attributes:
        kernel, place, line, thread: as in LaneRead.
        kind: 'unset' (a read of memory that nothing has written), 'barrier' (threads of the block have ended before
            it), 'constant' (a write to a __constant__ variable), 'fault' or 'launch' (CUDA refuses it; no place).
        text: what the thread does.
        is_warning: CUDA allows it: a barrier waits for the threads that have not ended.
    """

    kernel: str
    place: str
    line: str
    thread: tuple[int, int]
    kind: str
    text: str
    is_warning: bool = False

    def __str__(self) -> str:
        block, thread = self.thread
        if not self.place:
            return f"{self.kind} of kernel {self.kernel}: {self.text}"
        if self.kind == "launch":
            what, _, after = self.text.partition("\n")
            here = f"\n    {self.place}: the launch: {self.line}"
            return f"launch of kernel {self.kernel}: {what}{here}" + (f"\n{after}" if after else "")
        return (
            f"{self.kind} in kernel {self.kernel}: {self.text}\n"
            f"    {self.place}: thread {thread} of block {block}: {self.line}"
        )


HOST = {
    "host-pointer": (
        "a kernel uses memory of the host's own, which a GPU cannot reach",
        "the launch",
        "thread {thread} of block {block}",
    ),
    "early-read": (
        "the host uses memory that {who} may still write: it has not waited",
        "{who} begins",
        "the host's access",
    ),
}


@dataclass(frozen=True)
class OfHost:
    """A mistake of the host's code around a launch, or an asynchronous copy.

    Attributes:
        kernel: its name; "" for a copy.
        kind: 'host-pointer' or 'early-read'.
        places, lines: of the launch or the copy, and of the access.
        thread: (block, thread in the block) of a kernel's access.
    """

    kernel: str
    kind: str
    places: tuple[str, str]
    lines: tuple[str, str]
    thread: tuple[int, int]

    def __str__(self) -> str:
        block, thread = self.thread
        who = f"kernel {self.kernel}" if self.kernel else "an asynchronous copy"
        text, *rows = (row.format(who=who, thread=thread, block=block) for row in HOST[self.kind])
        text = text.replace("a kernel", who) if self.kind == "host-pointer" else text
        shown = zip(self.places, rows, self.lines, strict=True)
        return text + "".join(f"\n    {at}: {row}: {line}" for at, row, line in shown)


@dataclass
class Watch:
    """The mistakes, the names of the kernels that ran, and why some were not watched whole."""

    races: list[Race | LaneRead | Mistake | OfHost] = field(default_factory=list)
    kernels: set[str] = field(default_factory=set)
    left: list[str] = field(default_factory=list)

    def summary(self, own: list[str]) -> str:
        """One line: how many of a layer's own kernels ran, which did not, and the number of races."""
        ran = [kernel for kernel in own if kernel in self.kernels]
        left = [kernel for kernel in own if kernel not in self.kernels]
        found = {0: "no race", 1: "1 race"}.get(len(self.races), f"{len(self.races)} races")
        if not ran and not self.races:
            return "none of the layer's kernels ran on the host, so races were not checked"
        not_run = f"; not run: {', '.join(left)}" if left else ""
        not_run += "".join(f"; {why}" for why in self.left)
        return f"{len(ran)} of {len(own)} kernels ran, {found}{not_run}"


def kernels_of(folder: Path) -> list[str]:
    """The kernels that a layer's files define."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".cu", ".cuh"))
    sources = [Source(read(str(file)), str(file)) for file in files]
    return list(dict.fromkeys(f.name for source in sources for f in source.functions if f.is_kernel))


@contextlib.contextmanager
def watched() -> Generator[Watch]:
    """Record the kernels and races of this process and its children. The result is complete at the end of the block."""
    found = Watch()
    before = os.environ.get("CAFFE_RACES")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "races"
        os.environ["CAFFE_RACES"] = str(log)
        try:
            yield found
        finally:
            del os.environ["CAFFE_RACES"]
            if before is not None:
                os.environ["CAFFE_RACES"] = before
            if log.exists():
                mistakes, found.kernels, found.left = parse(log.read_text())
                allowed = [m for m in mistakes if isinstance(m, Mistake) and m.is_warning]
                found.races = [one for one in mistakes if one not in allowed]
                found.left += [f"{one.kernel}: {one.text}, at {one.place}" for one in allowed]


LEFT = {
    "memory": "{0}: more memory than the race finder may use ({1} MB, CAFFE_RACES_MEGABYTES), so some was not watched",
    "launch": "{0}: a launch was refused: {1}",
    "blocks": "{0}: up to {1} blocks were not watched (CAFFE_RACES_BLOCKS)",
}


def parse(text: str) -> tuple[list[Race | LaneRead | Mistake | OfHost], set[str], list[str]]:
    """The mistakes of a log, the first for each pair of lines; the kernels that ran; what was not watched, and why."""
    rows = [line.split("\t") for line in text.splitlines()]
    places, variables = Places(), {}
    for word, *said in rows:  # all at once, because each look-up reads the library
        if word in ("race", "lane", "told", "outside"):
            offsets = {"race": said[4:6], "lane": said[2:3], "told": said[3:4], "outside": said[3:5]}[word]
            places.ask(said[0], *(int(n, 0) for n in offsets))
    races: dict[tuple, Race | LaneRead | Mistake | OfHost] = {}
    for word, *said in rows:
        if word == "lane":
            library, kernel, *rest = said
            offset, thread, size, lane = (int(n, 0) for n in rest)
            read = LaneRead(kernel, *places(library, offset), divmod(thread, size), lane)
            races.setdefault((kernel, read.place), read)
        elif word == "told":
            library, kernel, kind, offset, thread, size, what = said
            place, line = places(library, int(offset, 0))
            allowed = kind == "barrier" and returns_before(place, kernel)
            if kind == "barrier":
                what += ", and CUDA's barriers do not wait for it" if allowed else IN_A_CONDITION
            thread = divmod(int(thread), int(size))
            races.setdefault((kernel, kind, place), Mistake(kernel, place, line, thread, kind, what, allowed))
        elif word == "outside":
            of_host = _of_host(said, places)
            races.setdefault((of_host.kernel, of_host.kind, *of_host.places), of_host)
        elif word == "refused":
            races.setdefault((said[0], word), _refused(said, places))
        elif word == "race":
            library, kernel, what, space, *rest = said
            first, second, one, other, size, element, width = (int(n, 0) for n in rest)
            (here, mine), (there, its) = places(library, first), places(library, second)
            threads, name = (divmod(one, size), divmod(other, size)), ""
            if space == "variable":
                if library not in variables:
                    variables[library] = Variables(library)
                name, element = variables[library].at(element, width)
            race = Race(kernel, what, space, (here, there), (mine, its), threads, element, width, name)
            pair = (kernel, *sorted((here, there)))
            before = races.setdefault(pair, race)
            if (
                isinstance(before, Race) and before.within_a_warp and not race.within_a_warp
            ):  # wrong on older GPUs, too
                races[pair] = race
    ran = {said[0] for word, *said in rows if word == "ran"}
    left = [LEFT[said[1]].format(said[0], said[2]) for word, *said in rows if word == "left"]
    return list(races.values()), ran, list(dict.fromkeys(left))


def _of_host(said: list[str], places: Places) -> OfHost:
    library, kernel, kind, *rest = said
    first, second, thread, size = (int(n, 0) for n in rest)
    (here, mine), (there, its) = places(library, first), places(library, second)
    return OfHost(kernel, kind, (here, there), (mine, its), divmod(thread, size))


def _refused(said: list[str], places: Places) -> Mistake:
    kernel, why, library, launch, goes_on = said
    what = f"CUDA refuses it, and the program does not ask for the error: {why}"
    place, line = places(library, int(launch, 0))
    if int(goes_on, 0):
        what += "\n    {}: it goes on: {}".format(*places(library, int(goes_on, 0)))
    return Mistake(kernel, place, line, (0, 0), "launch", what)


IN_A_CONDITION = "; in conditional code all threads must come to it, or none"


def returns_before(place: str, kernel: str) -> bool:
    """Has the kernel a `return` before this place? Threads may have ended there. That is allowed: CUDA's barriers wait
    for all threads that have not ended. A barrier that they passed by is in conditional code, where it is not."""
    file, _, line = place.rpartition(":")
    try:
        source = Source(read(file), file)
        lines = [0, *(m.end() for m in re.finditer("\n", source.text)), len(source.text)]
        at = lines[int(line)]
    except (OSError, ValueError, IndexError):
        return True
    bodies = [(f.body, f.end) for f in source.functions if f.name == kernel]
    returns = [token.start for token in source.lexed.tokens if token.text == "return"]
    return not bodies or any(a < r < (at if a < at < b else b) for a, b in bodies for r in returns)


class Variables:
    """The variables of a library, by their places."""

    def __init__(self, library: str):
        done = subprocess.run(
            ["nm", "-nC", "--defined-only", library], capture_output=True, text=True, check=False
        )
        rows = (line.split(" ", 2) for line in done.stdout.splitlines())
        self.names = [(int(row[0], 16), row[2]) for row in rows if row[1] in "bBdDuVvrR"]

    def at(self, offset: int, width: int) -> tuple[str, int]:
        """The name of the variable that has this byte, and the element of it, which has `width` bytes."""
        start, name = max((v for v in self.names if v[0] <= offset), default=(0, ""))
        return name, (offset - start) // width


class Places:
    """The source lines of places in the code of libraries."""

    def __init__(self):
        self.asked: dict[str, set[int]] = {}
        self.found: dict[tuple[str, int], tuple[str, str]] = {}

    def ask(self, library: str, *offsets: int):
        """These will be looked up."""
        self.asked.setdefault(library, set()).update(offsets)

    def __call__(self, library: str, offset: int) -> tuple[str, str]:
        """('file:line', that line) of the innermost frame that is not the toolkit's."""
        if (library, offset) not in self.found:
            self.ask(library, offset)
            self._look_up(library, sorted(self.asked.pop(library)))
        return self.found[library, offset]

    def _look_up(self, library: str, offsets: list[int]):
        command = ["addr2line", "-a", "-i", "-e", library, *map(hex, offsets)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        frames: dict[int, list[str]] = {offset: [] for offset in offsets}
        now: list[str] = []
        for line in done.stdout.splitlines():
            if line.startswith("0x") and ":" not in line:
                now = frames[int(line, 16)]
            else:
                now.append(line.partition(" (discriminator")[0])
        for offset, found in frames.items():
            self.found[library, offset] = line_of(found, f"{library}+{offset:#x}")


def line_of(frames: list[str], otherwise: str) -> tuple[str, str]:
    """('file:line', that line) of the first frame that is not the toolkit's."""
    own = [f for f in frames if not Path(f).is_relative_to(NOT_THE_KERNELS[0]) and "/include/c++/" not in f]
    found = next(iter(own or frames), otherwise)
    file, _, number = found.rpartition(":")
    with contextlib.suppress(OSError, ValueError, IndexError):
        return found, Path(file).read_text(errors="replace").splitlines()[int(number) - 1].strip()
    return found, "?"


def main() -> int:
    races, _, left = parse(Path(sys.argv[1]).read_text())
    print(*races, *left, sep="\n")
    return any(not (isinstance(one, Mistake) and one.is_warning) for one in races)


if __name__ == "__main__":
    sys.exit(main())
