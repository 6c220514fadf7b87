"""Read the log of the race finder (src/host/host_races.h), and describe races: kernel, lines, threads, element.

`python -m tools.cases.races LOG` prints them.

Libraries that were built with SANITIZE=races append lines to the file CAFFE_RACES: one for each kernel that runs, one
for each pair of code lines at which two threads of a launch race, and one for each shuffle that reads from a lane that
does not take part in it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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
        space: 'global' or 'shared'.
        places: 'file:line' of the first and of the second access.
        lines: the source's lines at these places.
        threads: both threads as (block, thread in the block).
        element: the index of the element behind the kernel's pointer; -1 in shared memory.
        bytes: the size of the accesses.
    """

    kernel: str
    what: str
    space: str
    places: tuple[str, str]
    lines: tuple[str, str]
    threads: tuple[tuple[int, int], tuple[int, int]]
    element: int
    bytes: int

    def __str__(self) -> str:
        (one, other), (here, there) = self.threads, self.places
        what = f"element {self.element}" if self.space == "global" else "a shared variable"
        return (
            f"race in kernel {self.kernel}: {what} ({self.bytes} bytes) is {self.what}, by two threads without an"
            f" atomic or a barrier between\n"
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


@dataclass
class Watch:
    """The races, and the names of the kernels that ran."""

    races: list[Race | LaneRead] = field(default_factory=list)
    kernels: set[str] = field(default_factory=set)

    def summary(self, own: list[str]) -> str:
        """One line: how many of a layer's own kernels ran, which did not, and the number of races."""
        ran = [kernel for kernel in own if kernel in self.kernels]
        left = [kernel for kernel in own if kernel not in self.kernels]
        found = {0: "no race", 1: "1 race"}.get(len(self.races), f"{len(self.races)} races")
        if not ran and not self.races:
            return "none of the layer's kernels ran on the host, so races were not checked"
        not_run = f"; not run: {', '.join(left)}" if left else ""
        return f"{len(ran)} of {len(own)} kernels ran, {found}{not_run}"


def kernels_of(folder: Path) -> list[str]:
    """The kernels that a layer's files define."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".cu", ".cuh"))
    sources = [Source(read(str(file)), str(file)) for file in files]
    return list(dict.fromkeys(f.name for source in sources for f in source.functions if f.is_kernel))


@contextlib.contextmanager
def watched() -> Iterator[Watch]:
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
                found.races, found.kernels = parse(log.read_text())


def parse(text: str) -> tuple[list[Race | LaneRead], set[str]]:
    """The races of a log, the first for each pair of lines; and the kernels that ran."""
    races: dict[tuple, Race | LaneRead] = {}
    kernels = set()
    for line in text.splitlines():
        word, *said = line.split("\t")
        if word == "ran":
            kernels.add(said[0])
        if word == "lane":
            library, kernel, *rest = said
            offset, thread, size, lane = (int(n, 0) for n in rest)
            read = LaneRead(kernel, *place(library, offset), divmod(thread, size), lane)
            races.setdefault((kernel, read.place), read)
        if word != "race":
            continue
        library, kernel, what, space, *rest = said
        first, second, one, other, size, element, width = (int(n, 0) for n in rest)
        (here, mine), (there, its) = place(library, first), place(library, second)
        threads = (divmod(one, size), divmod(other, size))
        race = Race(kernel, what, space, (here, there), (mine, its), threads, element, width)
        races.setdefault((kernel, *sorted((here, there))), race)
    return list(races.values()), kernels


def place(library: str, offset: int) -> tuple[str, str]:
    """('file:line', that line) of the innermost frame that is not the toolkit's."""
    done = subprocess.run(
        ["addr2line", "-i", "-e", library, hex(offset)], capture_output=True, text=True, check=False
    )
    frames = [line.partition(" (discriminator")[0] for line in done.stdout.splitlines()]
    own = [f for f in frames if not Path(f).is_relative_to(NOT_THE_KERNELS[0]) and "/include/c++/" not in f]
    found = next(iter(own or frames), f"{library}+{offset:#x}")
    file, _, number = found.rpartition(":")
    with contextlib.suppress(OSError, ValueError, IndexError):
        return found, Path(file).read_text(errors="replace").splitlines()[int(number) - 1].strip()
    return found, "?"


def main() -> int:
    races, _ = parse(Path(sys.argv[1]).read_text())
    print(*races, sep="\n")
    return bool(races)


if __name__ == "__main__":
    sys.exit(main())
