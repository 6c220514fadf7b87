"""`make ffi`. EXT lists folders or build scripts; JOB describes one library (ffi/build_extension.py)."""

from __future__ import annotations

import json
import os
import sys

from tools.files import read
from tools.make.settings import ROOT, called_as, from_environment
from tools.refused import Refused


def main() -> int:
    os.chdir(ROOT)
    try:
        settings, _ = from_environment([])
        if job := os.environ.get("JOB"):
            from .build_library import build
            from .torch_library import TorchRules

            return build(settings, job, TorchRules if "service" in json.loads(read(job)) else None)
        from .scripts import build_all

        return build_all(settings, os.environ.get("EXT", ""))
    except Refused as error:
        print(f"{called_as('make ffi')}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{called_as('make ffi')}: {error.filename}: {error.strerror}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
