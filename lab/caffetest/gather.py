"""Find the files of a Caffe tree's layer tests: the tests, the layers that they test, gtest.

The layers come from the tree, unedited. All other includes are the toolkit's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cuffi.caffe_layers.make.includes import NOTHING
from cuffi.caffe_layers.make.macros import REGISTER
from cuffi.caffe_layers.port.tree import INCLUDE
from tools.refused import Refused

WING = Path(__file__).resolve().parents[2] / "cuffi" / "caffe_layers"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
NOT_COMPILED = re.compile(r"#ifdef USE_(CUDNN|LMDB).*?#(else|endif)", re.S)
TYPE_NAMED = re.compile(r'set_type\(\s*"(\w+)"\s*\)')
REGISTERED = re.compile(rf"{REGISTER[0]}\(\s*(\w+)\s*\)")
# Parts that the toolkit lacks, by their header. A database may be included without being used.
LACKING = {
    "caffe/util/db.hpp": "a database",
    "caffe/util/hdf5.hpp": "HDF5",
    "hdf5.h": "HDF5",
    "caffe/layers/image_data_layer.hpp": "OpenCV",
    "caffe/layers/memory_data_layer.hpp": "a data source",
    "caffe/layers/dummy_data_layer.hpp": "a data source",
    "caffe/solver.hpp": "a solver",
}


def read(path: Path) -> str:
    return NOT_COMPILED.sub("", COMMENT.sub("", path.read_text(encoding="latin-1")))


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(read(path))


def lacks(test: Path) -> str:
    """A part that the test needs and the toolkit does not have, or ''."""
    reasons = (LACKING[name] for name in includes(test) if name in LACKING)
    return next((reason for reason in reasons if reason != "a database" or "db::" in read(test)), "")


class LayerTests:
    """The files of a Caffe tree: include/caffe, src/caffe, src/gtest."""

    def __init__(self, root: Path):
        self.root = Path(root).resolve()
        self.tests = self.root / "src/caffe/test"
        if not self.tests.is_dir():
            raise Refused(f"{self.root}: not a Caffe tree with tests: it has no src/caffe/test")
        self.gtest = self.root / "src/gtest"
        if not (self.gtest / "gtest-all.cpp").exists():
            raise Refused(
                f"{self.root}: src/gtest/gtest-all.cpp, which Caffe's tests are built with, is missing"
            )
        self.layers = {p.stem: p for p in self.root.glob("src/caffe/layers/*.cpp")}
        self.by_type = {t: p for p in self.layers.values() for t in REGISTERED.findall(read(p))}

    def select(self, names: list[str]) -> tuple[list[Path], dict[str, str]]:
        """The tests of these names ('all': of every layer), and the tests that are left out, with the reason."""
        every = sorted(self.tests.glob("test_*_layer.cpp"))
        if names == ["all"]:
            reasons = {p.name: reason for p in every if (reason := lacks(p))}
            return [p for p in every if p.name not in reasons], reasons
        chosen = []
        for name in names:
            path = self.tests / (name if name.endswith(".cpp") else f"{name}.cpp")
            if not path.exists():
                there = ", ".join(p.name for p in every)
                raise Refused(f"{self.root}: no test {path.name}. There are: {there}")
            chosen.append(path)
        return chosen, {}

    def files(self, tests: list[Path]) -> list[Path]:
        """The files of this tree that these tests need, each once."""
        found: dict[Path, None] = dict.fromkeys([self.gtest / "gtest-all.cpp", self.gtest / "gtest.h"])
        waiting = list(tests)
        while waiting:
            path = waiting.pop()
            if path in found:
                continue
            found[path] = None
            waiting += self._wanted(path)
        return list(found)

    def _wanted(self, path: Path) -> Iterator[Path]:
        for name in includes(path):
            header = self.root / "include" / name
            if not name.startswith("caffe/") or not header.exists() or NOTHING.match(name):
                continue
            own = name.startswith(("caffe/layers/", "caffe/test/"))
            if own or not (WING / "include" / name).exists():
                yield header  # cuDNN's, too: there is nothing in it without USE_CUDNN
                # Of common.cuh the toolkit may have nothing; common.cpp is its own all the same.
                replaced = not own and (WING / "include" / name).with_suffix(".hpp").exists()
                if "cudnn" not in name and not replaced:
                    yield from self._sources(self.root / "src" / name)
        if path.is_relative_to(self.tests):
            return
        for layer_type in TYPE_NAMED.findall(read(path)):  # layers that it makes by name
            if layer_type in self.by_type:
                yield self.by_type[layer_type]
                yield from self._sources(self.by_type[layer_type])

    def _sources(self, path: Path) -> Iterator[Path]:
        """The sources of that name, with any suffix."""
        yield from (source for kind in (".cpp", ".cu") if (source := path.with_suffix(kind)).exists())
