"""Find the files of tested layers that no include names, by make port's rules.

These are layers whose class is in a shared header: in trees before 2015-12 vision_layers.hpp and the like, later
fast_rcnn_layers.hpp. They are also the tree's additions to files that the toolkit replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cuffi.caffe_layers.port.cuts import written
from cuffi.caffe_layers.port.names import Names
from cuffi.caffe_layers.port.plan import Closure, Pick
from cuffi.caffe_layers.port.toolkit_headers import Toolkit
from cuffi.caffe_layers.port.tree import Tree
from tools.refused import Refused


class Layers:
    """The files of a Caffe tree, as make port sees them."""

    def __init__(self, root: Path):
        self.root = root
        self.tree = Tree(str(root))
        self.tree.check_interface()
        self.names = Names(self.tree, Toolkit())
        self.types = list(self.tree.types)

    def in_aggregates(self, texts: list[str]) -> list[Path]:
        """The files of the layers that the tests name."""
        headers = (self.root / "include/caffe/layers").glob("*.hpp")
        alone = {
            name for h in headers for name in re.findall(r"\bclass\s+(\w+)", h.read_text(errors="replace"))
        }
        tested = {name for text in texts for name in re.findall(r"\b(\w+Layer)\s*<", text)} - alone
        picks = (self._pick(type_name) for type_name in self.types if type_name + "Layer" in tested)
        return [self.root / file for file in dict.fromkeys(file for one in picks for file in one.files)]

    def additions(self, files: list[Path]) -> dict[str, str]:
        """The texts of files to write beside those of the tree, by name."""
        copied = {str(path.relative_to(self.root)) for path in files if path.is_relative_to(self.root)}
        cuts, seen = {}, {}
        for pick in [*self._made_of(copied), self._tests(copied)]:
            seen |= pick.seen
            for title, one in pick.cuts.items():
                if one.header not in copied:
                    for name in one.names:
                        cuts.setdefault(title, one).take(name)
        return written(cuts.values(), seen, copied)[0]

    def _tests(self, files: set[str]) -> Closure:
        """The tests' needs, and the headers that they share."""
        tests = sorted(file for file in files if "/test/" in file)

        def start(closure: Closure) -> None:
            for file in tests:
                closure.scan(file, self.tree[file].source.lexed.tokens)

        return Closure(self.names, "the tests", start)

    def _made_of(self, files: set[str]) -> Iterator[Pick]:
        """The picks of the layers whose sources are among these files."""
        for type_name in self.types:
            try:
                sources = self.tree.members(self.names.class_of(type_name).name)
            except Refused:  # registered, but defined nowhere
                continue
            if files & set(sources):
                yield self._pick(type_name)

    def _pick(self, type_name: str) -> Pick:
        return Pick(self.names, type_name)
