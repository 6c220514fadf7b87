"""Write the launchers of load_inline's string and build it, in one program, which reads CUDA for both.

python -m tools.new_layer.build_inline inline LAYERS_DIR=/staged LAYERS=mine BUILD=/staged/build
"""

from __future__ import annotations

import contextlib
import io
import os
import sys

from ..files import write
from ..make import build
from ..make.settings import Settings
from . import inline

# The line for a step that failed, as in mk/rules.mk.
FAILED = "  FAIL  {}: all of it in {}"


def build_inline(settings: Settings) -> int:
    for name in settings.layers:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = inline.main(os.path.join(settings.layers_dir, name, f"{name}.cu"))
        if status:
            log = f"{settings.build}/{name}.inline.log"
            write(log, os.fsencode(said.getvalue()))
            print(FAILED.format(name, log), flush=True)
            return status
    return build.build_libraries(settings)


if __name__ == "__main__":
    sys.exit(build.main({"inline": build_inline}))
