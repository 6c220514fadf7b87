"""Read layers that are published without a tree: x_layer.hpp, x_layer.cpp and caffe.proto in one folder.

Each file gets the path that it would have in a Caffe tree. Then the rules for trees apply.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from tools.files import read
from tools.refused import Refused

from ..make.includes import spelled_here
from .tree import HEADER_KINDS, INCLUDE, PROTO, SOURCE_KINDS, Tree, check_folder, is_tree, trees_in

# Files are looked for in the folder, and this many folders below it: caffe_layers/src/x_layer.cpp.
DEPTH = 3
LAYERS = "caffe/layers/"
# protoc's output, which the build makes again.
PROTOCS = "caffe.pb."


def tree_of(root: str) -> Tree:
    """The tree at `root`, or the layers that lie there without one."""
    check_folder(root)
    if not is_tree(Path(root)) and not trees_in(Path(root)):
        flat = FlatFolder(root)
        if flat.registering:
            return flat
    return Tree(root)


class FlatFolder(Tree):
    """A folder of layers. Its files are named by their places in a Caffe tree."""

    def check(self):
        pass

    @cached_property
    def files(self) -> list[str]:
        return sorted(place for place in self._published if place != PROTO)

    def real(self, file: str) -> str:
        return self._published.get(file, file)

    def has(self, file: str) -> bool:
        return file in self._published

    def resolve(self, include: str, includer: str) -> str | None:
        """A header elsewhere is found by its name, because the author had all files in one folder."""
        return super().resolve(include, includer) or self._by_name.get(Path(spelled_here(include)).name)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        return {Path(place).name: place for place in self.files if place.endswith(HEADER_KINDS)}

    @cached_property
    def _published(self) -> dict[str, str]:
        """By place in a Caffe tree, the path of a file. Its header's path in an #include says where a file lies."""
        by_name = self._paths_by_name()
        texts = {name: read(self.root / path) for name, path in by_name.items() if name != Path(PROTO).name}
        includes = {spelled_here(include) for text in texts.values() for include in INCLUDE.findall(text)}
        headers = {Path(i).name: i for i in sorted(includes) if i.startswith("caffe/")}
        folders = {Path(name).stem: f"{Path(include).parent}/" for name, include in headers.items()}
        places = {}
        for name, path in by_name.items():
            if name == Path(PROTO).name:
                places[PROTO] = path
            elif name.endswith(HEADER_KINDS):
                places[f"include/{headers.get(name, LAYERS + name)}"] = path
            else:
                places[f"src/{folders.get(Path(name).stem, LAYERS)}{name}"] = path
        return places

    def _paths_by_name(self) -> dict[str, str]:
        """By name, the path of each header, source and caffe.proto below the root."""
        paths: dict[str, str] = {}
        for folder, folders, names in os.walk(self.root):
            inside = Path(folder).relative_to(self.root)
            folders[:] = sorted(folders) if len(inside.parts) < DEPTH else []
            for name in sorted(names):
                path = (inside / name).as_posix()
                is_source = name.endswith(HEADER_KINDS + SOURCE_KINDS) and not name.startswith(PROTOCS)
                if name != Path(PROTO).name and not is_source:
                    continue
                if name not in paths:
                    paths[name] = path
                elif (self.root / path).read_bytes() != (self.root / paths[name]).read_bytes():
                    raise Refused(
                        f"CAFFE={self.root}: not a Caffe tree, and {paths[name]} and {path} are two files of one name: "
                        "name the folder of one of them"
                    )
        return paths
