"""A Python file that builds CUDA, by torch's load_inline or load or by the toolkit's, as a program of two modes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..loading import private, toolkit
from . import kept
from .findings import Finding, of_run
from .limits import OWN, SANITIZERS, Limits, Ran, given, run
from .programs import NotBuilt, compiler, prepared_name
from .worker import Again

CANDIDATE, COMPARE = "cuffi.judging.candidate", "cuffi.judging.compare"
SAID = re.compile(OWN + r" (\S+): (.*)")

BUILDING = 300  # seconds that building may take on top of a run's
PRELOADED = ("libasan.so", "libubsan.so", "libstdc++.so")
COPY = re.compile(r"/[^\s:]+\.(?:cuh?|cpp|h):\d+")
# What is built for each candidate alike. It is built once, of a file of the judge's own.
FIRST = """from torch.utils.cpp_extension import load_inline
text = "__global__ void k(int* x) { *x = 1; }\\nint f() { k<<<1, 1>>>(nullptr); return 1; }"
load_inline("first", "int f();", text, functions=["f"])
"""
# What loading/run_make.py says if make, a compiler or a package is missing.
ABSENT = re.compile(r"Error: load: (there is no '[^\n]*|building a layer needs Python packages[^\n]*)")
KEPT_CACHES = 50
# What old_torch/cpp_extension.py writes behind the string of kernels.
BEHIND = '\n#line 1 "'
CORE = re.compile(r"core-[0-9a-f]{16}$")
MEANT = {
    "different": "different-result",
    "early": "wrong-status",
    "not-the-kernel": "not-the-kernel",
    "incomplete": "incomplete",
}


class Script:
    """`python -m cuffi.ext file.py` without a GPU, or its ModelNew against the Model of a reference.

    Each has a cache of its own, because what lies in a cache is run.
    """

    not_judged: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    is_invented = False
    more_seconds = 60.0  # importing torch is most of it

    def __init__(self, files: list[Path], arguments: list[str], options: list[str], reference: Path | None):
        (self.file,) = files
        self.reference, self.arguments = reference, arguments
        self.drift = ""
        self._results: tuple[Path, Limits] | None = None
        self._has_finder = False
        self._writing = threading.Lock()

    def run(self, mode: str, folder: Path, limits: Limits, **settings) -> Ran:
        """Run it in a mode; and "plain" is without checks."""
        self._has_finder |= mode == "races"
        ran, results = self._run(mode, folder, limits, settings)
        if results and mode != "races":  # those may still run when the others' results are compared
            self._results = (results, limits)
        return ran

    def _run(self, mode: str, folder: Path, limits: Limits, settings: dict) -> tuple[Ran, Path | None]:
        """And where it has left its results."""
        results = None
        words, changes = [str(self.file), "--", *self.arguments], [self._cache(mode)]
        if self.reference:
            inputs, results = (
                self._inputs(folder, limits),
                Path(tempfile.mkdtemp(prefix="results-", dir=folder)),
            )
            words, changes = [str(self.file), str(inputs), str(results)], [*changes, results]
        settings = settings | environment(mode) | {"CUFFI_CACHE": str(changes[0])}
        within = replace(limits, seconds=limits.seconds + BUILDING)
        starts = worker_of(mode).start
        return run(CANDIDATE, words, within, folder, tuple(changes), starts, **settings), results

    def _inputs(self, folder: Path, limits: Limits) -> Path:
        """What the reference gives to both models, written once."""
        to = folder / "inputs"
        with self._writing:
            if not to.exists():
                to.mkdir()
                self.write_inputs(to, limits)
        return to

    def write_inputs(self, to: Path, limits: Limits):
        """Let the reference write what both models get."""
        done = self._compares("--inputs", to, limits, (to,))
        if done.status:
            raise NotBuilt("incomplete", [f"{self.reference}: {_last(done)}"])

    def compared(self, results: Path, limits: Limits, idle: Path | None = None) -> list[tuple[str, str]]:
        """What the reference's process says of these results, and of those without kernels: words and texts."""
        done = self._compares("--compare", results, limits, more=[str(idle)] if idle else [])
        if f"{OWN} compared" not in done.errors:
            return [("incomplete", f"{self.reference}: {_last(done)}")]
        return SAID.findall(done.errors)

    def _compares(
        self, what: str, place: Path, limits: Limits, changes: tuple[Path, ...] = (), more: Sequence[str] = ()
    ) -> Ran:
        words = [what, str(self.reference), str(place), *more]
        within = replace(limits, seconds=limits.seconds + BUILDING)
        starts = worker_of("plain").start
        return run(COMPARE, words, within, place.parent, changes, starts, **environment("plain"))

    def _cache(self, mode: str) -> Path:
        """The cache of this file, which begins as a copy of one that has what each file needs."""
        words = hashlib.sha256(self.file.read_bytes() + mode.encode()).hexdigest()[:32]
        first = _first_cache(mode)
        own = private.make_private(kept.folder() / "candidates") / f"{first.name}-{words}"
        if not own.exists():
            with tempfile.TemporaryDirectory(dir=own.parent, prefix=".") as partial:
                _copied(first / "cache", Path(partial, "cache"))
                with contextlib.suppress(OSError):  # another process was faster
                    Path(partial, "cache").rename(own)
        os.utime(own)
        for old in sorted(own.parent.glob("[!.]*"), key=lambda one: one.stat().st_mtime)[:-KEPT_CACHES]:
            shutil.rmtree(old, ignore_errors=True)
        return own

    def findings(self, ran: Ran, seconds: float) -> list[Finding]:
        """What the run's output says."""
        copies = {place.rpartition(":")[0] for place in COPY.findall(ran.errors)}
        if "does not build" in ran.errors:
            lines = ran.errors.strip().splitlines()
            errors = [line for line in lines if re.search(r"\berror: |undefined reference", line)]
            return [Finding("not-built", line) for line in (errors or lines)[:3]]
        if absent := ABSENT.search(ran.errors):
            return [Finding("not-built", absent[1])]
        return of_run(ran, [str(self.file), *copies], seconds)

    def result(self, ran: Ran) -> list[Finding]:
        """What its result says, if nothing else does."""
        if not ran.status:
            return self._compared()
        lines = ran.errors.strip().splitlines() or [f"ended with status {ran.status}"]
        places = re.findall(rf'File "{re.escape(str(self.file))}", line (\d+)', ran.errors)
        return [Finding("wrong-status", lines[-1], f"{self.file}:{places[-1]}" if places else "")]

    def _compared(self) -> list[Finding]:
        if not self.reference or not self._results:
            return []
        results, limits = self._results
        idle = None
        if self._has_finder:  # whose launcher can do without kernels
            idle = self._run("races", results.parent, limits, {"CAFFE_JUDGE_IDLE": "1"})[1]
        told = self.compared(results, limits, idle)
        self.drift = next((text for kind, text in told if kind == "drift"), "")
        return [Finding(MEANT[kind], text) for kind, text in told if kind in MEANT]

    def placed(self, one: Finding) -> Finding:
        """Places in a string, which was built as a file of its own, as places in the Python file."""
        text = self.file.read_text(errors="replace")
        for place in {*COPY.findall(one.text), *filter(None, [one.place])}:
            name, _, number = place.rpartition(":")
            copy = Path(name).read_text(errors="replace") if Path(name).is_file() else ""
            copy = copy.partition(BEHIND)[0]
            at = text.find(copy.strip("\n"))
            if copy.strip() and at >= 0:
                before = text.count("\n", 0, at) - (len(copy) - len(copy.lstrip("\n")))
                own = f"{self.file}:{before + int(number)}"
                one.text = one.text.replace(place, own)
                one.place = own if one.place == place else one.place
                for access in one.accesses:
                    access["place"] = own if access["place"] == place else access["place"]
        return one


def _last(ran: Ran) -> str:
    return (ran.errors.strip().splitlines() or [f"ended with status {ran.status}"])[-1]


def environment(mode: str) -> dict[str, str]:
    """The settings of a Python that builds for this mode, without a GPU."""
    root = str(Path(__file__).resolve().parents[2])
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    settings |= {
        "SANITIZE": {"races": "races", "memory": "1"}.get(mode, ""),
        "CUDA_VISIBLE_DEVICES": "",
        "NVCC": "",
    }
    if mode == "memory":  # Python itself must have AddressSanitizer's library, from the start
        settings["LD_PRELOAD"] = _preloaded()
        # What is freed is kept for a while. A fork writes to all that is kept, if importing torch has filled it.
        settings["ASAN_OPTIONS"] = f"{SANITIZERS['ASAN_OPTIONS']}:quarantine_size_mb=16"
    return settings


@functools.cache
def _preloaded() -> str:
    asked = [[*compiler(), f"-print-file-name={name}"] for name in PRELOADED]
    files = [subprocess.run(one, capture_output=True, text=True).stdout.strip() for one in asked]
    # A compiler that has no such file prints the name alone. The loader knows libstdc++ by the name of its version.
    return " ".join("libstdc++.so.6" if file == "libstdc++.so" else file for file in files)


@functools.cache
def worker_of(mode: str) -> Again:
    """The worker that all runs of this mode have. Only AddressSanitizer's needs one of its own."""
    if mode not in ("memory", "plain"):
        return worker_of("plain")
    own = {"SANITIZE": ""}  # a run's
    return Again(given(os.environ) | SANITIZERS | environment(mode) | own)


def _copied(cache: Path, to: Path):
    """A copy of the cache that all begin with. The toolkit's own objects are links: no candidate can change them."""
    shutil.copytree(
        cache, to, symlinks=True, ignore=lambda _, names: [name for name in names if CORE.match(name)]
    )
    for core in cache.glob("core-*"):
        made = private.make_private(to / core.name)
        for part in core.iterdir():
            (made / part.name).symlink_to(part) if part.is_dir() else shutil.copy2(part, made / part.name)


def _first_cache(mode: str) -> Path:
    """A folder with a cache that has what each file needs, made once for this version of the toolkit."""
    version = f"{toolkit.digest().hex()[:16]}-{sys.version_info[1]}"
    made = kept.folder() / f"python-{prepared_name(mode)}-{version}"
    with kept.only_one(made.name):
        if not kept.is_whole(made):
            private.removed(made)
            cache = private.make_private(private.make_private(made) / "cache")
            (made / "first.py").write_text(FIRST)
            words = [sys.executable, "-m", CANDIDATE, str(made / "first.py"), "--"]
            # If it fails, each file builds for itself, and says why it cannot.
            subprocess.run(
                words,
                env=given(os.environ) | SANITIZERS | environment(mode) | {"CUFFI_CACHE": str(cache)},
                capture_output=True,
            )
            names = [str(file.relative_to(made)) for file in cache.rglob("*") if file.is_file()]
            kept.complete(made, ["first.py", *names])
    return made
