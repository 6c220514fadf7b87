"""Describe a library in a small file beside it, such as `_host.json`.

architectures: sm_90 for a GPU with code in the library, compute_90 for PTX; for the host, HOST_ARCH. compilers: their
version lines. digest: the library's SHA-256. commit: the toolkit's commit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

from .. import files
from .backends import BACKENDS
from .settings import ROOT

# nvcc's container of device code: a header, and for each architecture an entry, PTX or an ELF file.
_FATBIN = struct.pack("<I", 0xBA55ED50)
_KINDS = {1: "compute", 2: "sm"}


def architectures(library: bytes) -> list[str]:
    """The architectures of a library's device code."""
    found, at = set(), library.find(_FATBIN)
    while at >= 0:
        _, header, size = struct.unpack_from("<HHQ", library, at + 4)
        entry, end = at + header, min(at + header + size, len(library) - 32)
        while entry < end:
            kind, _, head, length = struct.unpack_from("<HHIQ", library, entry)
            (number,) = struct.unpack_from("<I", library, entry + 28)
            if kind not in _KINDS or not head:
                break
            found.add((_KINDS[kind], number))
            entry += head + length
        at = library.find(_FATBIN, at + 4)
    return [f"{kind}_{number}" for kind, number in sorted(found, key=lambda f: (f[0] == "compute", f[1]))]


def compilers(library: bytes, nvcc: str) -> list[str]:
    """The versions of the compilers. The host compiler writes its own into the library; nvcc is asked."""
    # Each pattern begins with fixed text, so that searching a hundred MB is fast.
    patterns = rb"GCC: \([^)\0]*\) [\w.+-]+", rb"clang version [^\0\n]+"
    said = dict.fromkeys(text for pattern in patterns for text in re.findall(pattern, library))
    found = [text.decode(errors="replace") for text in said]
    if nvcc:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, errors="replace")
        found += [f"nvcc {version}" for version in re.findall(r"V(\d+\.\d+\.\d+)", done.stdout)[:1]]
    return found


def commit() -> Callable[[], str]:
    """Begin to ask for the toolkit's commit. A call returns it, with a mark if files differ; "" if it is unknown."""
    with contextlib.suppress(OSError):
        return Path(ROOT, "COMMIT").read_text().strip  # an installed toolkit's
    if not os.path.exists(os.path.join(ROOT, ".git")):
        return str
    describe = "git --no-optional-locks describe --always --dirty=+changes --abbrev=40 --exclude=*"
    try:
        asked = subprocess.Popen(
            describe.split(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
    except OSError:
        return str
    return lambda: asked.communicate()[0].strip()


def write(library: Path, output: Path, info: str, nvcc: str, commit: str) -> None:
    """Write the description of the library `output` beside it."""
    content = library.read_bytes()
    backend = next(b for b in BACKENDS.values() if output.name.endswith(b.library))
    described = {
        "layer": output.parent.name,
        "backend": backend.name,
        "architectures": info.split()[1:] if backend.on_host else architectures(content),
        "compilers": compilers(content, nvcc),
        "python": "cp310-abi3",
        "digest": hashlib.sha256(content).hexdigest(),
        "commit": commit,
    }
    files.write(output.with_name(backend.description), os.fsencode(json.dumps(described, indent=2) + "\n"))
