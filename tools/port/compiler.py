"""Ask the host's compiler about a fork's includes and names."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from functools import cached_property

from .tree import INCLUDE

# The directives that decide whether an #include is reached, with their continued lines.
DECIDING = re.compile(
    r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif|define|undef)\b(?:[^\\\n]|\\\n?)*", re.M
)

OF_C = ("assert", "float", "limits", "math", "stdint", "stdio", "stdlib", "string", "time")


class Compiler:
    """The host's compiler, asked which headers and names the system has. Each answer is kept."""

    def __init__(self) -> None:
        self._has: dict[str, bool] = {}  # by header
        self._declared: set[str] = set()  # names that the system declares

    def lacks(self, headers: Iterable[str]) -> set[str]:
        """The headers that the system does not have. Without a compiler, none."""
        new = [header for header in dict.fromkeys(headers) if header not in self._has]
        if new:
            missing = preprocessed("".join(asking(header) for header in new))
            self._has |= {header: header not in missing for header in new}
        return {header for header in headers if not self._has[header]}

    def reaches(self, text: str, headers: Iterable[str]) -> set[str]:
        """Those of `headers` that the preprocessor includes from a text, without any macros defined for it."""
        lines = [(m.start(), m[0] + "\n") for m in DECIDING.finditer(text)]
        lines += [(m.start(), asking(m[1])) for m in INCLUDE.finditer(text) if m[1] in headers]
        return preprocessed("".join(line for _, line in sorted(lines)))

    def is_reached(self, text: str, at: int) -> bool:
        """Is the text at this position compiled on this machine? Without a compiler, no."""
        lines = [(m.start(), m[0] + "\n") for m in DECIDING.finditer(text)]
        return "here" in preprocessed("".join(line for _, line in sorted([*lines, (at, "here\n")])))

    def undeclared(self, names: Iterable[str], headers: Iterable[str]) -> set[str]:
        """The names that none of these headers of the system declares or defines. Without a compiler, none."""
        new = set(names) - self._declared - self._of_c
        included = "".join(f"#if __has_include(<{h}>)\n#include <{h}>\n#endif\n" for h in headers)
        written = words("-std=c++17", text=included) if new else set()
        if not written:
            return set()
        # Only names that these headers contain are worth a compilation, which takes five times as long.
        lines = [included, "namespace std {}\nusing namespace std;\n"]
        for name in sorted(new & written):  # the error gives the name as its file
            line = f'#line 1 "{name}"\nnamespace has_{name} {{ using ::{name}; }}\n'
            lines.append(f"#ifndef {name}\n{line}#endif\n")
        done = run("-std=c++17", "-fsyntax-only", text="".join(lines)) if new & written else None
        undeclared = set(re.findall(r"^(\w+):1:\d+: error", done.stderr, re.M)) if done else set()
        undeclared |= new - written
        self._declared |= new - undeclared
        return undeclared

    @cached_property
    def _of_c(self) -> set[str]:
        """The words of C's own headers, which a compiler need not be asked about."""
        return words("-xc", text="".join(f"#include <{header}.h>\n" for header in OF_C))


def words(*options: str, text: str) -> set[str]:
    """The words that the preprocessor leaves of a text, and the macros' names. Without a compiler, none."""
    done = run("-E", "-dD", "-P", *options, text=text)
    return set(re.findall(r"\w+", done.stdout)) if done and done.returncode == 0 else set()


def asking(header: str) -> str:
    """Preprocessor lines that leave the header's name if the system does not have it."""
    return f"#if !__has_include(<{header}>)\n{header}\n#endif\n"


def preprocessed(text: str) -> set[str]:
    """The lines of the preprocessor's output. Without a compiler, none."""
    done = run("-E", "-P", text=text)
    return set(done.stdout.splitlines()) if done and done.returncode == 0 else set()


def run(*options: str, text: str) -> subprocess.CompletedProcess | None:
    """Run the host's compiler on a text. None if there is no compiler."""
    command = [*shlex.split(os.environ.get("CXX", "") or "g++"), "-xc++", *options, "-"]
    try:
        return subprocess.run(command, input=text, capture_output=True, text=True, errors="surrogateescape")
    except OSError:
        return None
