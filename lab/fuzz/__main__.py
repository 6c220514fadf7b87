"""make fuzz: random calls in child processes. Each must give the right result or an error.

    python -m lab.fuzz --minutes 1 --seed 1                    (make fuzz; CI)
    python -m lab.fuzz --minutes 60 --seed 7 --layers round    by hand

The same seed makes the same calls, until the time is over, which the layers share. Prints the number of calls for each
layer, and each finding with the smallest call that shows it. Returns 1 if there is a finding.
"""

from __future__ import annotations

import collections
import functools
import os
import re
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import hypothesis

from cuffi.backends import HOST
from cuffi.caffe_layers.verify.processes import run_child
from cuffi.folders import split
from cuffi.runtime.cases import load_package

from .calls import Finding, Subjects
from .options import parser

MEMORY = 8 << 30  # the memory limit of a child process, so that a large request fails there
PATIENCE = 120  # seconds for one call


class OutOfTime(KeyboardInterrupt):
    """Ends a round. hypothesis treats it like Ctrl-C, not as a finding."""


def work(pipe, place: str, make: Callable, seed: int, examples: int, seconds: float) -> None:
    """One round of calls of the subject that `make` returns, for so many seconds at most. `place`: for files."""
    tempfile.tempdir = place
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # whose shadow is larger than any memory
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(5)
    warnings.simplefilter("ignore")
    subject = make()
    counts = collections.Counter()
    end = time.monotonic() + seconds

    def attempt(call):
        if time.monotonic() > end and counts:
            raise OutOfTime
        pipe.send(("running", (str(call), "")))
        counts[subject.attempt(call)] += 1

    test = hypothesis.given(subject.calls())(attempt)
    test = hypothesis.settings(
        max_examples=examples, database=None, deadline=None, print_blob=False, report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )(hypothesis.seed(seed)(test))  # fmt: skip
    finding = ""
    try:
        test()
    except Finding as found:
        finding = str(found)
    except OutOfTime:
        pass
    pipe.send(("row", (dict(counts), finding)))


def round_of(make: Callable, seed: int, examples: int, seconds: float) -> tuple[dict, str]:
    """(counts of the outcomes, the findings)."""
    with tempfile.TemporaryDirectory() as place:
        report = run_child(work, place, make, seed, examples, seconds, running=PATIENCE)
    if report.rows:
        return report.rows[0]
    return {"before it ended": report.steps}, f"{report.end or 'its process ended'}: {report.what}"


def rounds(subjects: dict[str, Callable], options) -> tuple[dict, dict[str, str]]:
    """(counts of the outcomes by subject, the findings). Each round shares what is left of the time.

    Args:
        subjects: by name, functions that make a subject. It has `calls`, a strategy, and `attempt`, which names the
            outcome of a call.
    """
    totals = {name: collections.Counter() for name in subjects}
    findings: dict[str, str] = {}
    end, number = time.monotonic() + 60 * options.minutes, 0
    while subjects and (number == 0 or time.monotonic() < end):
        for at, (name, make) in enumerate(subjects.items()):
            left = end - time.monotonic()
            if left <= 0:
                break
            share, seed = left / (len(subjects) - at), options.seed * 100_000 + number
            counts, finding = round_of(make, seed, options.examples, share)
            totals[name].update(counts)
            key = f"{name} {re.sub(r'[0-9]+', '0', finding)[:120]}"
            if finding and key not in findings:
                print(f"FOUND  {name}: {finding}", flush=True)
                findings[key] = finding
        number += 1
    return totals, findings


def tell(totals: dict, findings: dict, options) -> int:
    """Print what was tried. Returns the exit status."""
    for name, counts in totals.items():
        said = (
            ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "not tried: the time was over"
        )
        print(f"{name:20} {sum(counts.values()):8}: {said}")
    total = sum(sum(c.values()) for c in totals.values())
    print(f"{total} tried with seed {options.seed}, {len(findings)} findings")
    return bool(findings)


def subject_of(layer: Path) -> Subjects:
    return Subjects(load_package(layer.parent), layer.name)


def main() -> int:
    arguments = parser(__doc__)
    options = arguments.parse_args()
    folders = [Path(folder).resolve() for folder in split(options.layers_dir)]
    built = [library.parent for folder in folders for library in sorted(folder.glob(f"*/{HOST.library}"))]
    built = [layer for layer in built if layer.name in (options.layers or [layer.name])]
    if strange := set(options.layers or []) - {layer.name for layer in built}:
        arguments.error(f"not built for the host: {', '.join(sorted(strange))}")
    # Calls are made from a layer's cases, which a ported layer need not have.
    subjects = {}
    for layer in built:
        if (layer / "cases.py").exists():
            name = layer.name if layer.name not in subjects else str(layer)  # of another folder
            subjects[name] = functools.partial(subject_of, layer)
        else:
            print(f"{layer.name}: no calls, because it has no cases.py", flush=True)
    return tell(*rounds(subjects, options), options)


if __name__ == "__main__":
    sys.exit(main())
