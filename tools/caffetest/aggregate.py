"""What of the layers under test no include leads to; it is make port's to find.

Layers that tests name and that no header under caffe/layers has: those of trees before 2015-12, whose classes stand in
vision_layers.hpp and its like, and later ones' fast_rcnn_layers.hpp. And what the tree added to files of which the
toolkit has its own version.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "port"))

from additions import written
from gather import NotATree
from needs import Needs
from toolkit import Toolkit
from tree import PortError, Tree


class Layers:
    """Those of a Caffe tree, as make port sees them."""

    def __init__(self, root: Path):
        self.root = root
        try:
            self.tree, self.toolkit = Tree(str(root)), Toolkit()
            self.types = list(self.tree.types)
        except PortError as error:
            raise NotATree(str(error)) from error

    def in_aggregates(self, texts: list[str]) -> list[Path]:
        """The files of the layers that the tests' texts name."""
        headers = (self.root / "include/caffe/layers").glob("*.hpp")
        alone = {
            name for h in headers for name in re.findall(r"\bclass\s+(\w+)", h.read_text(errors="replace"))
        }
        tested = {name for text in texts for name in re.findall(r"\b(\w+Layer)\s*<", text)} - alone
        needs = (self._needs(type_name) for type_name in self.types if type_name + "Layer" in tested)
        return [self.root / file for file in dict.fromkeys(file for one in needs for file in one.files)]

    def additions(self, files: list[Path]) -> dict[str, str]:
        """By name, the texts of files to be made beside these of the tree's."""
        copied = {str(path.relative_to(self.root)) for path in files if path.is_relative_to(self.root)}
        additions, seen = {}, {}
        for needs in self._made_of(copied):
            seen |= needs.seen
            for title, one in needs.additions.items():
                if one.header not in copied:
                    for name in one.names:
                        additions.setdefault(title, one).take(name)
        return written(additions.values(), seen, copied)[0]

    def _made_of(self, files: set[str]) -> Iterator[Needs]:
        """Of the layers whose sources are among these files."""
        for type_name in self.types:
            try:
                sources = self.tree.members(self.tree.class_of(type_name).name)
            except PortError:  # registered, and defined nowhere
                continue
            if files & set(sources):
                yield self._needs(type_name)

    def _needs(self, type_name: str) -> Needs:
        return Needs(self.tree, self.toolkit, type_name)
