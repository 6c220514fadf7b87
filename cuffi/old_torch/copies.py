"""Build an extension from copies of its files, in an entry of load's cache: the toolkit's make runs there."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ..loading import recipe
from ..loading.cache import Entry
from ..loading.run_make import CaffeBuildError, make

LISTS = ("sources", "headers", "local", "flags", "first", "cxx", "cuda")


def build(
    entry: Entry, job: dict, files: Mapping[str, bytes], above: str, settings: dict, progress, lock: int,
) -> None:  # fmt: skip
    """Copy the files, write the job for make/build_library.py or make/torch_library.py, and run make.

    Args:
        job: with the user's paths.
        files: the content of each file, by its path.
        above: the user's folder that the copies replace.

    Raises:
        CaffeBuildError: with the compilers' output, in which the paths are the user's.
    """
    place = entry.for_make(entry.place)
    copies = str(place / "copies")

    def staged(text: str) -> str:
        return re.sub(rf"(?:(?<=^)|(?<=-I)){re.escape(above)}(?=/|$)", copies, text)

    for path, content in files.items():
        copy = Path(staged(path))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
        # Their macros are the extension's own, so no loop becomes a vector loop (tools/cuda/for_nvcc.py).
        copy.with_name("plain_loops").write_text("*\n")
    lists: dict[str, list] = {name: [staged(word) for word in job[name]] for name in LISTS if name in job}
    lists["kernels"] = [
        {"source": staged(k["source"]), "flags": [staged(f) for f in k["flags"]]} for k in job["kernels"]
    ]
    places = {"copies": copies, "above": above, "place": str(entry.for_make(entry.folder))}
    (place / "job.json").write_text(json.dumps(job | lists | places))
    own = {
        "JOB": str(place / "job.json"),
        "BUILD": str(entry.for_make(entry.build)),
        "PYTHON": sys.executable,
    }
    try:
        make(["ffi"], settings | own | {"CORE": recipe.core_in(entry.cache)}, progress, lock)
    except CaffeBuildError as error:
        raise CaffeBuildError(error.output.replace(copies, above)) from None
