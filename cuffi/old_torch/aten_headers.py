"""The headers of an extension: found in the compiler's order, and watched, so that an edit of one builds it again.

The text of the files names most of them. The compiler tells the others, such as that of `#include MACRO`.
"""

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..loading.cache import Entry
from ..loading.load import INCLUDE, places_of

# The list of the headers that only the compiler told, in an entry's folder.
TOLD = "told_headers.json"
# A file name in a depfile, in which a blank has a backslash.
WORD = re.compile(r"(?:\\.|[^\s\\])+")


def beside(path: Path, content: bytes, folders: list[Path], files: Mapping) -> bytes:
    """The content with its includes of headers from other folders by relative paths, which the rewriters follow."""

    def relative(found: re.Match) -> bytes:
        place = next((place for place in places_of(found, path, folders) if place in files), None)
        if place is None or place == Path(os.path.normpath(path.parent / os.fsdecode(found[2]))):
            return found[0]
        return b'#include "' + os.fsencode(os.path.relpath(place, path.parent)) + b'"'

    return INCLUDE.sub(relative, content) if b"\0" not in content else content


def forced(words: list[str], folders: Iterable[Path]) -> list[str]:
    """The words with the whole path of each `-include`'s header that the user has: make runs in another folder."""
    made = list(words)
    for i, (word, name) in enumerate(itertools.pairwise(words)):
        places = (Path(os.path.abspath(os.path.join(folder, name))) for folder in ("", *folders))
        if word == "-include" and (place := next((p for p in places if p.is_file()), None)):
            made[i + 1] = str(place)
    return made


def named_by(words: list[str]) -> list[Path]:
    """The headers of `-include` that forced() has found."""
    return [Path(n) for word, n in itertools.pairwise(words) if word == "-include" and os.path.isabs(n)]


def note_told(entry: Entry, folders: list[Path], files: Iterable[Path]) -> None:
    """Write down the headers in `folders` that the compiler has read beside `files`."""
    read = {
        Path(re.sub(r"\\(.)", r"\1", word))
        for depfile in entry.build.rglob("*.d")
        for word in WORD.findall(depfile.read_text(errors="surrogateescape"))
        if os.path.isabs(word)
    }
    inside = {path for path in read if any(path.is_relative_to(folder) for folder in folders)}
    if found := sorted({os.path.normpath(path) for path in inside} - set(map(str, files))):
        (entry.folder / TOLD).write_text(json.dumps(found))


def told(entry: Entry) -> list[Path]:
    """The headers that note_told has written."""
    path = entry.folder / TOLD
    return list(map(Path, json.loads(path.read_text()))) if path.exists() else []
