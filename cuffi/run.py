"""Run a CUDA program on the processor, as it is, without checks.

    python -m cuffi.run main.cu [more.cu] [options of its makefile] [-- arguments of its main()]

Of the options -D, -U, -I, -std=c++20, -fopenmp, -l and -L count; those of GPUs, optimisation and warnings do not.

Exit status: the program's own; 2 for usage, 3 if it cannot be built. `python -m cuffi.judge` runs it with checks.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .judging.programs import NotBuilt, program, rewritten
from .loading.flags import Flags

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    if words[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    files, given = _split(words[:at])
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        flags = Flags(given)
    except ValueError as error:
        print(f"cuffi run: {error}", file=sys.stderr)
        return 2
    options = flags.for_compiler()
    with tempfile.TemporaryDirectory(prefix="cuffi-run-") as place:
        try:
            unbuilt = rewritten(files, options)
            if not unbuilt.has_main:
                raise NotBuilt("no-main", [f"{files[0]}: no main(); cuffi judge calls kernels by themselves"])
            built = program(unbuilt, files, "plain", Path(place), options, linked=flags.for_linker())
        except NotBuilt as error:
            print(*error.lines, sep="\n", file=sys.stderr)
            return 3
        except OSError as error:
            step = "TMPDIR=/a/folder/with/room" if error.errno == errno.ENOSPC else ""
            print(
                f"cuffi run: {error.filename or place}: {error.strerror}. {step}".rstrip(" ."),
                file=sys.stderr,
            )
            return 3
        sys.stdout.flush()
        status = subprocess.call([str(built), *words[at + 1 :]], env=os.environ)
    if status > 0 and at == len(words) and any(map(_reads_arguments, files)):
        line = f"{files[0].name} ended with status {status}. Arguments of its main() go behind --"
        print(f"cuffi run: {line}: cuffi run {files[0].name} -- ARGUMENTS", file=sys.stderr)
    return 128 - status if status < 0 else status


def _reads_arguments(file: Path) -> bool:
    """Has the file a main() with parameters?"""
    text = file.read_text(encoding="utf-8", errors="replace")
    return bool(re.search(r"\bmain\s*\(\s*(const\s+)?int\s+\w+\s*,", text))


def _split(words: list[str]) -> tuple[list[Path], list[str]]:
    """The files, and all other words."""
    is_file = [not word.startswith("-") and word.endswith(SOURCES) for word in words]
    files = [Path(word).resolve() for word, own in zip(words, is_file, strict=True) if own]
    return files, [word for word, own in zip(words, is_file, strict=True) if not own]


if __name__ == "__main__":
    sys.exit(main())
