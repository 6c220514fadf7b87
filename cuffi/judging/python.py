"""A Python file that builds CUDA, by torch's load_inline or load or by the toolkit's, as a program of two modes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from .findings import Finding, of_run
from .limits import OWN, Limits, Ran, run
from .programs import compiler

BUILDING = 300  # seconds that building may take on top of a run's
COMPARE = Path(__file__).with_name("compare.py")
PRELOADED = ("libasan.so", "libubsan.so", "libstdc++.so")
COPY = re.compile(r"/[^\s:]+\.(?:cuh?|cpp|h):\d+")


class Script:
    """`python -m cuffi.ext file.py` without a GPU, or its ModelNew against the Model of a reference (compare.py)."""

    not_judged: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    is_invented = False
    more_seconds = 60.0  # importing torch is most of it

    def __init__(self, files: list[Path], arguments: list[str], options: list[str], reference: Path | None):
        (self.file,) = files
        words = [COMPARE, self.file, reference] if reference else [self.file]
        self.compares = reference is not None
        self.words = ["-m", "cuffi.ext", *map(str, words), *arguments]

    def run(self, mode: str, folder: Path, limits: Limits, **settings) -> Ran:
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        settings |= {"SANITIZE": "races" if mode == "races" else "1", "PYTHONPATH": path}
        settings |= {"CUDA_VISIBLE_DEVICES": "", "NVCC": ""}
        if mode == "memory":  # Python itself must have AddressSanitizer's library, from the start
            asked = [[*compiler(), f"-print-file-name={name}"] for name in PRELOADED]
            paths = [subprocess.run(one, capture_output=True, text=True).stdout.strip() for one in asked]
            settings["LD_PRELOAD"] = " ".join(paths)
        within = replace(limits, seconds=limits.seconds + BUILDING)
        return run(Path(sys.executable), self.words, within, folder, **settings)

    def findings(self, ran: Ran, seconds: float) -> list[Finding]:
        """What the run's output says."""
        copies = {place.rpartition(":")[0] for place in COPY.findall(ran.errors)}
        if "does not build" in ran.errors:
            lines = ran.errors.strip().splitlines()
            errors = [line for line in lines if re.search(r"\berror: |undefined reference", line)]
            return [Finding("not-built", line) for line in (errors or lines)[:3]]
        return of_run(ran, [str(self.file), *copies], seconds)

    def result(self, ran: Ran) -> list[Finding]:
        """What its result says, if nothing else does."""
        if told := re.findall(OWN + " different: (.*)", ran.errors):
            return [Finding("different-result", text) for text in told]
        if not ran.status:
            compared = not self.compares or f"{OWN} compared" in ran.errors
            return [] if compared else [Finding("wrong-status", "ended before its results were compared")]
        lines = ran.errors.strip().splitlines() or [f"ended with status {ran.status}"]
        places = re.findall(rf'File "{re.escape(str(self.file))}", line (\d+)', ran.errors)
        return [Finding("wrong-status", lines[-1], f"{self.file}:{places[-1]}" if places else "")]

    def placed(self, one: Finding) -> Finding:
        """Places in a string, which was built as a file of its own, as places in the Python file."""
        text = self.file.read_text(errors="replace")
        for place in {*COPY.findall(one.text), *filter(None, [one.place])}:
            name, _, number = place.rpartition(":")
            copy = Path(name).read_text(errors="replace") if Path(name).is_file() else ""
            at = text.find(copy.strip("\n"))
            if copy.strip() and at >= 0:
                before = text.count("\n", 0, at) - (len(copy) - len(copy.lstrip("\n")))
                own = f"{self.file}:{before + int(number)}"
                one.text = one.text.replace(place, own)
                one.place = own if one.place == place else one.place
        return one
