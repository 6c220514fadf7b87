"""Remove targets whose inputs have changed, so that make builds them again.

make compares times: a target is old if an input is newer. But a changed input may be older, after `cp -p`, `mv`,
`rsync -a`, `tar` or a package manager. So each folder of objects has a file `inputs`, with the state and the digest of
every file that its targets were made from. Before make runs, a target is removed if one of its inputs has another
content, or is not recorded. The layer's library is removed with it.

An input whose digest was not taken before a compiler may have read it has the digest UNKNOWN, and counts as changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable

from ..files import content, write

NAME = "inputs"
UNKNOWN = "?"
# The words of a depfile's first rule: `\ ` is a space in a name, `\` at the end of a line goes on.
_WORD = re.compile(r"(?:\\[ #\\]|\\(?!\n)|[^\s\\])+")


def inputs_in(depfile: str) -> list[str]:
    """The prerequisites that a compiler wrote into a depfile."""
    text = os.fsdecode(content(depfile))
    end = re.search(r"(?<!\\)\n", text)
    words = _WORD.findall(text[: end.start()] if end else text)
    after = next((at + 1 for at, word in enumerate(words) if word.endswith(":")), len(words))
    return [re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$") for word in words[after:]]


class Files:
    """The state and the digest of files. Each is asked once in a run of make.

    Args:
        started: when this run began, in nanoseconds.
    """

    def __init__(self, started: int):
        self.started = started
        self._states: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    def state(self, path: str) -> str:
        """The file's state, which changes when the file changes; "-" if it does not exist."""
        if path not in self._states:
            self._states[path] = state_of(path)
        return self._states[path]

    def digest(self, path: str) -> str:
        """The digest of the content that belongs to `state`; UNKNOWN if the file has changed since."""
        if path not in self._digests:
            state, data = self.state(path), content(path)
            found = hashlib.blake2b(data, digest_size=16).hexdigest()
            self._digests[path] = found if state_of(path) == state else UNKNOWN
        return self._digests[path]

    def ask_again(self, path: str) -> None:
        """Forget a file that make writes."""
        self._states.pop(path, None), self._digests.pop(path, None)

    def line(self, path: str, made: bool) -> tuple[str, str]:
        """(state, digest) for the record, after the compilers have run.

        Args:
            made: the file is make's own, so it may be younger than this run.
        """
        seen_before = path in self._states
        state = self.state(path)
        times = [int(time) for time in state.split(".")[:2]] if state != "-" else [0]
        if not made and not seen_before and max(times) >= self.started:
            return state, UNKNOWN
        return state, self.digest(path)


def state_of(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}.{found.st_ctime_ns}.{found.st_size}.{found.st_ino}"


class Record:
    """What the targets in one folder of objects were made from.

    Args:
        place: the folder.
        shared: files on which every target depends: compilers, rules.
        generated: is a path a file that make generates? It has its own rule.

    Attributes:
        targets: the rules' prerequisites, by target.
        depfiles: the compilers' depfiles. A depfile's target has its name without `.d`.
        outputs: targets beside the user's files, which another make may have written.
        libraries: files to remove with a stale target.
    """

    def __init__(self, place: str, files: Files, shared: Iterable[str], generated: Callable[[str], bool]):
        self.path, self.files, self.shared, self.generated = f"{place}/{NAME}", files, set(shared), generated
        self.targets: dict[str, list[str]] = {}
        self.depfiles: set[str] = set()
        self.outputs: set[str] = set()
        self.libraries: list[str] = []
        self._recorded: dict[str, list[str]] | None = None

    @property
    def recorded(self) -> dict[str, list[str]]:
        """(digest, state) by path."""
        if self._recorded is None:
            lines = os.fsdecode(content(self.path)).splitlines()
            self._recorded = {
                path: [digest, state] for digest, state, path in (x.split(" ", 2) for x in lines)
            }
        return self._recorded

    def read_again(self) -> None:
        self._recorded = None
        for path in (*self.depfiles, *self.outputs):
            self.files.ask_again(path)

    def has_inputs(self) -> bool:
        """Is any target made from a file that make does not generate itself?"""
        return bool(self.depfiles) or not all(map(self.generated, self._needs()))

    def _needs(self) -> set[str]:
        return {need for needs in self.targets.values() for need in needs}

    def _expected(self) -> set[str]:
        """The files that are known to be inputs without reading a depfile; and the depfiles."""
        needs = {need for need in self._needs() if not self.generated(need)}
        made = [path for path in (*self.depfiles, *self.outputs) if os.path.exists(path)]
        return {*self.shared, *needs, *made}

    def changed(self) -> set[str]:
        """The inputs that differ from the record, or are not in it."""
        if not self.has_inputs():
            return set()
        differs = {
            path for path, (digest, state) in self.recorded.items() if not self._same(path, digest, state)
        }
        return differs | (self._expected() - self.recorded.keys())

    def _same(self, path: str, digest: str, state: str) -> bool:
        if digest == UNKNOWN:
            return False
        return self.files.state(path) == state or self.files.digest(path) == digest

    def stale(self) -> list[str]:
        """The targets that were made from other inputs, and the libraries made from them."""
        changed = self.changed()
        found = [target for target in self.targets if changed and self._depends(target, changed)]
        return [*found, *(self.libraries if found else [])]

    def _depends(self, target: str, changed: set[str]) -> bool:
        if not os.path.lexists(target) or not self.targets[target]:
            return False
        told = f"{target}.d"
        known = [*self.shared, *self.targets[target], target, *([told] if told in self.depfiles else [])]
        return not changed.isdisjoint(known) or not changed.isdisjoint(inputs_in(told))

    def forget(self) -> None:
        """Remove the stale targets, and record what the next ones are made from.

        An output that no library contains is only made old: another process may be about to read it, and the new one
        replaces it as a whole.
        """
        changed = self.changed()
        if not changed:
            return
        shared = self.outputs - set(self.libraries)
        for target in self.stale():
            with contextlib.suppress(FileNotFoundError):
                os.utime(target, (1, 1)) if target in shared else os.unlink(target)
        kept = {path: line for path, line in self.recorded.items() if path not in changed}
        now = {path: [self.files.digest(path), self.files.state(path)] for path in changed}
        self._write(kept | {path: line for path, line in now.items() if not self._is_made(path)})

    def remember(self) -> None:
        """Record what the targets were made from, if make has made any."""
        if not self.has_inputs():
            return
        for path in (*self.depfiles, *self.outputs):
            self.files.ask_again(path)
        expected = self._expected()
        if all(path in self.recorded for path in expected) and all(
            self.recorded[path][1] == self.files.state(path) for path in expected if self._is_made(path)
        ):
            return
        told = {path for depfile in self.depfiles for path in inputs_in(depfile) if not self.generated(path)}
        found = {path: self.files.line(path, self._is_made(path)) for path in sorted(expected | told)}
        # Another build, such as that for the race finder, may have more targets in this folder.
        kept = {path: line for path, line in self.recorded.items() if line[1] != "-"}
        self._write(kept | {path: [digest, state] for path, (state, digest) in found.items()})

    def _is_made(self, path: str) -> bool:
        return path in self.depfiles or path in self.outputs

    def _write(self, lines: dict[str, list[str]]) -> None:
        self._recorded = lines
        text = "".join(f"{digest} {state} {path}\n" for path, (digest, state) in lines.items())
        if os.path.isdir(os.path.dirname(self.path)):
            write(self.path, os.fsencode(text), if_changed=True)


class Inputs:
    """The records of several folders of objects, which one lock protects.

    Args:
        shared: gives the files on which every target of a backend depends.
        generated: says if a path is a file that make generates.
    """

    def __init__(
        self, files: Files, shared: Callable[[str | None], list[str]], generated: Callable[[str], bool]
    ):
        self.files, self.shared, self.generated = files, shared, generated
        self.records: dict[str, Record] = {}

    def add(self, target: str, needs: list[str], place: str, backend: str | None) -> None:
        """Add a rule's target. `place`: the folder of its record, if the target lies elsewhere."""
        folder = place or os.path.dirname(target)
        if folder not in self.records:
            self.records[folder] = Record(folder, self.files, self.shared(backend), self.generated)
        self.records[folder].targets[target] = needs
        if place and needs:
            self.records[folder].outputs.add(target)

    def told(self, target: str) -> None:
        """Note that a target's recipe writes a depfile."""
        self.records[os.path.dirname(target)].depfiles.add(f"{target}.d")

    def goes_with(self, place: str, library: str) -> None:
        """Note a library to remove if a target in this folder, or below it, is stale."""
        for folder, record in self.records.items():
            if f"{folder}/".startswith(f"{place}/"):
                record.libraries.append(library)

    def read_again(self) -> None:
        """Forget what was read of the records, which another make may have written since."""
        for record in self.records.values():
            record.read_again()

    def changed(self) -> set[str]:
        """The changed inputs of the targets that are stale."""
        return {path for record in self.records.values() if record.stale() for path in record.changed()}

    def forget(self) -> None:
        for record in self.records.values():
            record.forget()

    def remember(self) -> None:
        for record in self.records.values():
            record.remember()
