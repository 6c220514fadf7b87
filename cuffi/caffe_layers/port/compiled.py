"""Build ported layers, and give advice for the compiler's first error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tools.make.backends import BACKENDS
from tools.make.build import build
from tools.make.job import Job
from tools.make.settings import Settings

# (pattern of an error, what to do). docs/port-a-caffe-layer.md has them as rows of its table.
HINTS = [
    (
        r"No such file or directory",
        "Neither the tree nor the toolkit nor the system has this header. If it is a library's, install it, or name "
        "its folder: CPLUS_INCLUDE_PATH=/path/to/headers make ...",
    ),
    (
        r"depend on a template parameter|does not have any field named|.powf. is not a member|template argument",
        "Only Microsoft's compiler accepts this. Rewrite the line in a copy of the file.",
    ),
    (
        r"abstract class|marked .override.|LayerParameter_",
        "The fork's Layer or messages have other functions than Caffe's. Take the layer from another fork.",
    ),
    (
        r"undefined reference",
        "Neither the folder nor the toolkit defines it. Copy the fork's file into the folder.",
    ),
    (
        r"not declared|has no member|no member named|not a member|does not name a type|no declaration matches|"
        r"is not a type|no matching",
        "The source and its header are of two versions, or the file needs its fork's core. Look for another copy.",
    ),
]


def hint(error: str) -> str:
    """Advice for a compiler's error; "" if there is none."""
    return next((text for pattern, text in HINTS if re.search(pattern, error)), "")


def compile(folders: Iterable[str], settings: Settings) -> None:
    os.makedirs(settings.build, exist_ok=True)
    build(Job(settings, only=sorted(folders)), keep_going=True)


def first_error(folder: Path, settings: Settings) -> str | None:
    """The first error in the logs of a layer, if one of its libraries is missing."""
    logs = Path(settings.build) / folder.name
    if all((folder / BACKENDS[backend].library).exists() for backend in settings.backends):
        return None
    lines = []
    for of in (logs, Path(settings.core)):  # the layer's own, then the core's
        for log in sorted(of.rglob("*.log"), key=lambda p: (p.name == "ffi.log", str(p))):
            lines += log.read_text(errors="replace").replace(f"{folder}/", "").splitlines()
    errors = (line for line in lines if re.search(r"\berror\b|undefined reference|is defined twice", line))
    return next(errors, f"see the logs in {logs}")
