"""Find the file of a Caffe layer for an #include.

The files are flat in one folder, and their includes have the paths of the fork. An include names the file whose path in
the folder is the end of the include's path: `caffe/layers/x_layer.hpp` is x_layer.hpp. If the folder has
util/common.hpp and common.hpp, `caffe/util/common.hpp` is the former, because the longest path wins.
"""

from __future__ import annotations

import os
from pathlib import PurePosixPath

from tools.make.folders import HEADERS, SOURCES


class LayerFolder:
    def __init__(self, path: str):
        self.path = os.path.normpath(path)
        self.files = sorted(
            os.path.relpath(os.path.join(parent, name), self.path)
            for parent, _, names in os.walk(self.path)
            for name in names
            if name.endswith(SOURCES + HEADERS)
        )
        self._paths: dict[str, str | None] = {}

    def find(self, include: str) -> str | None:
        """The path of the included file in the folder. None if the file is the toolkit's or the system's."""
        if include not in self._paths:
            parts = PurePosixPath(include).parts
            ends = ["/".join(parts[i:]) for i in range(len(parts))]
            deeper = (file for file in self.files if "/" in include and file.endswith(f"/{include}"))
            self._paths[include] = next((end for end in ends if end in self.files), next(deeper, None))
        return self._paths[include]
