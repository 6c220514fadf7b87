"""Find the functions of Caffe's Blob, Layer and SyncedMemory that a fork changed.

A port uses the toolkit's own core, which computes what BVLC's does. `bvlc_bodies.txt` has a digest of each body that
one of these functions had in BVLC's history. The digest is of the tokens, without comments and blanks. It was made by

    python -m cuffi.caffe_layers.port.bodies /path/to/BVLC/caffe > cuffi/caffe_layers/port/bvlc_bodies.txt
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.cuda.source import Source

from .declarations import Place
from .tree import DEFINED, Tree

TABLE = Path(__file__).with_name("bvlc_bodies.txt")
CLASSES = {
    "Blob": ("include/caffe/blob.hpp", "src/caffe/blob.cpp"),
    "Layer": ("include/caffe/layer.hpp", "src/caffe/layer.cpp"),
    "SyncedMemory": ("include/caffe/syncedmem.hpp", "src/caffe/syncedmem.cpp"),
}


def bodies(source: Source, of_class: str) -> Iterator[tuple[str, str, int]]:
    """(name, digest, offset) of each function of the class that a file defines. Of overloads, each."""
    ranges = source.classes.get(of_class, [])
    tokens = source.lexed.tokens
    for function in source.functions:
        within = any(tokens[first].start < function.at < tokens[last - 1].end for first, last in ranges)
        if function.scope == of_class or within:
            body = [t.text for t in tokens if function.body <= t.start < function.end]
            yield function.name, hashlib.sha256(" ".join(body).encode()).hexdigest()[:10], function.at


@functools.cache
def bvlc_bodies() -> frozenset[tuple[str, str]]:
    """(Class::function, digest) of all bodies in BVLC's history."""
    lines = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return frozenset((name, digest) for name, *digests in lines for digest in digests)


def changed(tree: Tree) -> dict[str, Place]:
    """By name, such as Blob::Update, the place of each function whose body BVLC's never had.

    A function that BVLC's Caffe never had is not among them. Other checks find it.
    """
    names, found = {name for name, _ in bvlc_bodies()}, {}
    for of_class, files in CLASSES.items():
        for file in filter(tree.has, files):
            for name, digest, at in bodies(tree[file].source, of_class):
                full = f"{of_class}::{name}"
                if full in names and (full, digest) not in bvlc_bodies():
                    found[full] = tree[file].place(at)
    return found


def main(root: str) -> None:
    """Print the table, from the history of a clone of BVLC's Caffe."""
    table: dict[str, dict[str, None]] = {}

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    for of_class, files in CLASSES.items():
        for file in files:
            for commit in git("log", "--format=%H", "--diff-filter=AM", "--", file).split():
                source = Source(git("show", f"{commit}:{file}"), file, DEFINED)
                for name, digest, _ in bodies(source, of_class):
                    table.setdefault(f"{of_class}::{name}", {})[digest] = None
    print("# Made by port/bodies.py: digests of the bodies that functions had in the history of BVLC/caffe.")
    for name in sorted(table):
        print(name, *sorted(table[name]))


if __name__ == "__main__":
    main(sys.argv[1])
