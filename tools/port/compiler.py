"""What the compiler knows of a fork's includes: it is asked, by its preprocessor."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable

from .tree import INCLUDE

# What decides whether an #include is reached, with its continued lines.
DECIDING = re.compile(
    r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|define|undef)\b(?:[^\\\n]|\\\n?)*", re.M
)


class Compiler:
    def __init__(self) -> None:
        self._has: dict[str, bool] = {}  # by header

    def lacks(self, headers: Iterable[str]) -> set[str]:
        """Those of the headers that are not the system's either. Without a compiler, none."""
        new = [header for header in dict.fromkeys(headers) if header not in self._has]
        if new:
            found = preprocessed("".join(asking(header) for header in new))
            self._has |= {header: header not in found for header in new}
        return {header for header in headers if not self._has[header]}

    def reaches(self, text: str, headers: Iterable[str]) -> set[str]:
        """Those of the headers that a file includes with nothing defined, in fact."""
        lines = [(m.start(), m[0] + "\n") for m in DECIDING.finditer(text)]
        lines += [(m.start(), asking(m[1])) for m in INCLUDE.finditer(text) if m[1] in headers]
        return preprocessed("".join(line for _, line in sorted(lines)))


def asking(header: str) -> str:
    return f"#if !__has_include(<{header}>)\n{header}\n#endif\n"


def preprocessed(text: str) -> set[str]:
    """The lines that are left."""
    command = [*shlex.split(os.environ.get("CXX", "") or "g++"), "-E", "-P", "-x", "c++", "-"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, errors="surrogateescape")
    except OSError:
        return set()
    return set(done.stdout.splitlines()) if done.returncode == 0 else set()
