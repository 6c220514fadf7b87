"""make net and make verify-net."""

import os
import sys

from tools.parts import part

# Before the package of layers is imported, which refuses a folder that does not exist.
_LISTED = part("folders").split(os.environ.get("LAYERS_DIR", ""))
if _LISTED and os.environ.get("CAFFE"):  # the folder for ported layers may be new
    os.makedirs(os.path.expanduser(_LISTED[0]), exist_ok=True)
for _folder in _LISTED:
    if not os.path.isdir(os.path.expanduser(_folder)):
        sys.exit(f"LAYERS_DIR: there is no folder {part('base/shown').shown(_folder)}")
