"""The end of make's output: the table of the layers, the broken layers with reasons, and the next command."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path

from .backends import BACKENDS
from .failures import failed_logs
from .settings import ROOT
from .stale import state_of
from .trial import Outcome, outcomes_of


def report(job, status: int) -> int:
    """Print the report. Takes the build's exit status, and returns that of make."""
    settings, libraries = job.settings, job.rules.libraries
    built = [name for name in job.names if any(os.path.exists(libraries[name, b]) for b in settings.backends)]
    stamp = Path(settings.build, "report")
    inside = [os.path.abspath(path) for path in [*libraries.values(), *texts(job)] if os.path.exists(path)]
    if not status and is_reported(stamp, inside):
        backends = " and ".join(settings.backends)
        print(f"Nothing to do: {len(built)} layers are built for {backends}. Next: {next_command(job)}")
        return 0
    stamp.unlink(missing_ok=True)
    outcomes = show(settings.layers_dir, built, settings) if built else {}
    stopped = len(outcomes) < len(built)
    broken = {name: outcome.failed for name, outcome in outcomes.items() if outcome.failed}
    say_what_is_broken(job, broken)
    if stopped:
        print(f"Stopped: {len(built) - len(outcomes)} layers were not run.")
        return 130
    if status or broken:
        return status or 1
    stamp.write_text(f"{digest(inside)}\n{state(inside)}")
    print(f"Next: {next_command(job)}")
    return 0


def say_what_is_broken(job, broken: dict[str, str]) -> None:
    """The last lines, with a line for each broken layer.

    Args:
        broken: why a built layer failed when it ran, by name.
    """
    settings = job.settings
    failed = [failure for failure in job.failures if not failure.only_host]
    count = len(job.names) - len({failure.name for failure in failed})
    runs = f", {len(broken)} of them failed when they ran" if broken else ""
    print(f"{count} of {len(job.names)} layers built for {' and '.join(settings.backends)}{runs}.")
    for backend in settings.missing:
        print(
            f"{backend.name.upper()}: skipped, because {backend.compiler.lower()} was not found. "
            f"Set {backend.compiler}=/path/to/{backend.compiler.lower()}."
        )
    say_left_out(job)
    for failure in failed:
        print(f"FAILED: {failure}")
    for name, why in broken.items():
        print(f"FAILED: {name}: {why}")
    for name in dict.fromkeys(failure.name for failure in failed):
        logs = [log for backend in settings.backends for log in failed_logs(job, name, backend)]
        for line in job.folder(name).kind.advice(job.folder(name), logs):
            print(line)


def say_left_out(job) -> None:
    """Lines for parts that were not built without a failure: folders that are not layers, kernels for a GPU only."""
    for name, why in job.unfit.items():
        print(f"Left out: {os.path.join(job.settings.layers_dir, name)}: {why}.", flush=True)
    for failure in job.failures:
        if failure.only_host:
            print(f'No host library: {failure}. It can be built only for the GPU: backends="cuda".')


def next_command(job) -> str:
    """The next command. The tests read cases.py; some kinds have a target for a layer without one."""
    untested = [folder for folder in job.folders if folder.kind.tests and not folder.has("cases.py")]
    if not untested:
        return job.settings.suite()
    more = f" (and {len(untested) - 1} more without cases.py)" if untested[1:] else ""
    return job.settings.hint(untested[0].kind.tests, LAYER=untested[0].name) + more


def texts(job) -> list[str]:
    """The Python files on which a layer's result depends."""
    return [
        os.path.join(folder.path, file)
        for folder in job.folders
        for file in sorted(os.listdir(folder.path))
        if file.endswith(".py")
    ]


def is_reported(stamp: Path, paths: list[str]) -> bool:
    """Are these the files of the last report? In a copy of the tree, where the paths differ, the content decides."""
    said, _, states = stamp.read_text().partition("\n") if stamp.exists() else ("", "", "")
    if states == state(paths):
        return True
    here = {line.partition(" ")[2] for line in states.splitlines()}
    if not said or here.intersection(paths) or said != digest(paths):
        return False
    stamp.write_text(f"{said}\n{state(paths)}")
    return True


def digest(paths: list[str]) -> str:
    """The digest of the files: their names in the toolkit, and their content."""
    total = hashlib.sha256()
    for path in paths:
        total.update(os.fsencode(f"{os.path.relpath(path, ROOT)}\n"))
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                total.update(part)
    return total.hexdigest()


def state(paths: list[str]) -> str:
    """A text that changes when one of the files changes."""
    return "".join(f"{state_of(path)} {path}\n" for path in paths)


def show(layers_dir: str, names: list[str], settings) -> dict[str, Outcome]:
    """Run the layers and print their table. Returns their outcomes."""
    # torch warns at its import if there is no NumPy, which no layer needs.
    warnings.filterwarnings("ignore", "Failed to initialize NumPy")
    import torch
    from rich.console import Console
    from rich.table import Table

    table = Table("layer", "backends", "ran on", "largest error", "time", title=None)
    outcomes = outcomes_of(layers_dir, names, settings)
    for name, outcome in outcomes.items():
        table.add_row(name, *outcome.row)
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(table)
    for_gpus = [name.upper() for name in settings.backends if not BACKENDS[name].on_host]
    if for_gpus and not torch.cuda.is_available():
        print(f"No GPU here: the libraries for {' and '.join(for_gpus)} were not run.")
    return outcomes
