"""Run a CUDA program on the processor, as it is, without checks.

    python -m cuffi.run main.cu [more.cu] [-- arguments of its main()]

Exit status: the program's own; 2 for usage, 3 if it cannot be built. `python -m cuffi.judge` runs it with checks.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .judging.programs import NotBuilt, program, rewritten


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    files = [Path(word).resolve() for word in words[:at]]
    if not files or any(word.startswith("-") for word in words[:at]):
        print(__doc__, file=sys.stdout if words[:1] in (["-h"], ["--help"]) else sys.stderr)
        return 0 if words[:1] in (["-h"], ["--help"]) else 2
    with tempfile.TemporaryDirectory(prefix="cuffi-run-") as place:
        try:
            unbuilt = rewritten(files)
            if not unbuilt.has_main:
                raise NotBuilt("no-main", [f"{files[0]}: no main(); cuffi judge calls kernels by themselves"])
            built = program(unbuilt, files, "plain", Path(place), [])
        except NotBuilt as error:
            print(*error.lines, sep="\n", file=sys.stderr)
            return 3
        sys.stdout.flush()
        status = subprocess.call([str(built), *words[at + 1 :]], env=os.environ)
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main())
