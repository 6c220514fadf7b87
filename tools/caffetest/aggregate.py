"""The layers that tests name and that no header under caffe/layers has: those of trees before 2015-12, whose classes
stand in vision_layers.hpp and its like, and later ones' fast_rcnn_layers.hpp. What they consist of is make port's to
find.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "port"))

from additions import written
from gather import NotATree
from needs import Needs
from toolkit import Toolkit
from tree import PortError, Tree


def layers_in_aggregates(root: Path, texts: list[str]) -> tuple[list[Path], dict[str, str]]:
    """For the tests' texts: files of the tree, and texts of files to be made."""
    headers = (root / "include/caffe/layers").glob("*.hpp")
    alone = {name for h in headers for name in re.findall(r"\bclass\s+(\w+)", h.read_text(errors="replace"))}
    tested = {name for text in texts for name in re.findall(r"\b(\w+Layer)\s*<", text)} - alone
    if not tested:
        return [], {}
    files, additions, seen = {}, {}, {}
    try:
        tree, toolkit = Tree(str(root)), Toolkit()
        for type_name in tree.types:
            if type_name + "Layer" not in tested:
                continue
            needs = Needs(tree, toolkit, type_name)
            files |= needs.files
            seen |= needs.seen
            for header, one in needs.additions.items():
                for name in one.names:
                    additions.setdefault(header, one).take(name)
    except PortError as error:
        raise NotATree(str(error)) from error
    return [root / file for file in files], written(additions.values(), seen, files)[0]
