"""Build layers: find them, write the rules, run make on them, and report.

    python -m tools.make.build all                           what `make` does
    python -m tools.make.build libraries LAYERS_DIR=/my/layers BUILD=/my/build LAYERS="foo bar" NVCC=
    python -m tools.make.build loops | clean

Settings (the Makefile lists them) come from the arguments, else from the environment. The exit status is make's. Other
programs may run this, too, in the toolkit's folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from ..files import read
from ..package_module import package_module
from ..refused import Refused
from . import folders, forks, report, requirements
from .backends import BACKENDS, HOST
from .clean import clean
from .failures import failures
from .folders import layers_in
from .job import Job, empty
from .kinds import kinds
from .settings import ROOT, Settings, full, make_command, of_each_folder
from .stale import Inputs

command, locks = package_module("base/shown").command, package_module("loading/locks")

# The separator in MAKEFLAGS between make's options and the settings of the command line.
_OVERRIDES = " -- "
# A disk with fewer free bytes counts as full.
ALMOST_NOTHING = 1 << 20


# ------------------------------------------------------------------------------------------------- running


@contextlib.contextmanager
def locked(path: str, shared: bool = False):
    """A lock against other makes in this folder, whose files would have the same names.

    The lock is an open file that make and its children inherit, so it is free when the last of them has ended.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lock = os.open(path, os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    locks.take(lock, lambda who: print(f"  WAIT  for another make, {who}", flush=True), shared)
    try:
        yield lock
    finally:
        os.close(lock)


def make_flags() -> list[str]:
    """The options of the calling make, without its settings, which make would expand."""
    flags = os.environ.get("MAKEFLAGS", "").partition(_OVERRIDES)[0].split()
    return [flag for flag in flags if flag != "--" and "=" not in flag.partition("-")[0]]


def is_dry(flags: list[str]) -> bool:
    return _has(flags, "n")


def is_asked(flags: list[str]) -> bool:
    """Is it make -n or make -q, which must not remove anything?"""
    return _has(flags, "n") or _has(flags, "q")


def _has(flags: list[str], letter: str) -> bool:
    return bool(flags) and not flags[0].startswith("-") and letter in flags[0]


class HasMakefile(Protocol):
    """A job, or another wing's rules: what make reads, and the settings."""

    settings: Settings
    makefile: str


def run_make(
    job: HasMakefile, *goals: str, keep_going: bool = False, quiet: bool = False, changed: Iterable[str] = ()
) -> int:
    """Run make on the written rules.

    Args:
        quiet: return by the status whether there is something to do, and print nothing.
        changed: files that make must treat as changed.
    """
    flags = [] if quiet else make_flags()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"}
    environment["MAKEFLAGS"] = " ".join(flags)
    if not is_dry(flags):  # make -n has no such folder, and still asks nvcc for its architectures
        environment["TMPDIR"] = full(job.settings.temporary)
    command = ["make", "--no-print-directory", "-f", job.makefile, *goals]
    command += ["-k"] * keep_going + ["-q"] * quiet + [f"--what-if={path}" for path in changed]
    # Suppress make's message that there is nothing to do.
    command += ["-s"] * (not job.settings.verbose and not is_dry(flags))
    if not any(flag.startswith(("-j", "--jobserver")) for flag in flags):
        command.append(f"-j{len(os.sched_getaffinity(0))}")
    # Open files are inherited: the calling make's job server, and the lock, which compilers hold while they run.
    if not quiet and not is_asked(flags) and not job.settings.verbose:  # shown commands are those of a shell
        return forks.call(command, environment)
    silent = subprocess.DEVNULL if quiet else None
    return subprocess.call(command, env=environment, close_fds=False, stdout=silent, stderr=silent)


def build(job: Job, keep_going: bool = False) -> int:
    """Build under locks: first the toolkit's own objects, which other folders share, then the layers."""
    settings = job.settings
    places = settings.build, settings.core, settings.layers_dir
    try:
        with locked(f"{settings.build}/lock"):
            job.write(dry=is_dry(make_flags()))
            if is_asked(make_flags()):
                changed = job.rules.core_inputs.changed() | job.rules.layer_inputs.changed()
                return run_make(job, "libraries", keep_going=keep_going, changed=changed)
            with remembered(job.rules.layer_inputs):
                status = _build_locked(job, f"{settings.core}/lock", keep_going)
            job.failures = failures(job, keep_going) if status else []
    except OSError:  # a write error does not name the file
        say_if_full(*places)
        raise
    if job.failures and all(failure.only_host for failure in job.failures):
        return 0
    if status:
        say_if_full(*places)
    return status


def say_if_full(*places: str) -> None:
    """Report a full disk, because some tools do not: ar prints `Success`."""
    for place in filter(os.path.exists, places):
        if (free := shutil.disk_usage(place).free) < ALMOST_NOTHING:
            print(f"make: {place}: No space left on device ({free >> 10} KB)", flush=True)
            return


@contextlib.contextmanager
def remembered(inputs: Inputs):
    """Around a run of make: remove stale outputs before, and record the new ones after."""
    inputs.forget()
    try:
        yield
    finally:
        inputs.remember()


def _build_locked(job: Job, core: str, keep_going: bool) -> int:
    inputs = job.rules.core_inputs
    with locked(used(core), shared=True):
        if not inputs.changed() and not run_make(job, "core", quiet=True):
            return run_make(job, "libraries", keep_going=keep_going)
    if not job.settings.outside:
        with locked(core), locked(used(core)), remembered(inputs):
            return run_make(job, "libraries", keep_going=keep_going)
    with making_core(job, core, job.rules.needed, inputs), remembered(inputs):
        status = run_make(job, "core", keep_going=keep_going)  # then others need not wait for these layers
    if status and not keep_going:
        return status
    with locked(used(core), shared=True):
        return run_make(job, "libraries", keep_going=keep_going) or status


def used(core: str) -> str:
    """The lock of those who use the toolkit's own objects: shared, but for who replaces one."""
    return f"{core}.used"


@contextlib.contextmanager
def making_core(job: HasMakefile, core: str, files: Iterable[str], inputs: Inputs | None = None):
    """The locks for making the toolkit's own objects.

    What is missing is added while others use the rest. Only who replaces an object waits for those who use it.

    Args:
        core: the lock of those who make them.
        files: the objects.
        inputs: what they are known to be made from.
    """
    with locked(core):
        if inputs:
            inputs.read_again()  # another make may have made them
        there = [path for path in files if os.path.exists(os.path.join(job.settings.root, path))]
        replaces = bool(inputs and inputs.changed()) or any(run_make(job, path, quiet=True) for path in there)
        with locked(used(core)) if replaces else contextlib.nullcontext():
            yield


# -------------------------------------------------------------------------------------------------- targets


def _refuse_empty(settings: Settings) -> None:
    """Refused if a folder of a layer is there, and its source is not."""
    for place in map(Path, full(settings.layers_dir).split(":")):
        own = (
            sorted(p.name for p in place.iterdir() if (p / "__init__.py").is_file()) if place.is_dir() else []
        )
        if own:
            raise Refused(f"LAYERS_DIR: {place / own[0]} has no {own[0]}.cu: write it, or remove the folder")


def build_all(settings: Settings) -> int:
    requirements.need(["build", "run"], f"{settings.build}/packages")
    job = Job(settings)
    if not job.folders:
        _refuse_empty(settings)
        print(f"No layers in {settings.layers_dir}: {settings.hint('new', LAYER='foo')} makes one.")
        return 0
    status = build(job, keep_going=True)
    # make -q: the status says if there is something to do, and is no failure.
    return status if is_asked(make_flags()) else report.report(job, status)


def build_libraries(settings: Settings) -> int:
    requirements.need(["build"], f"{settings.build}/packages.build")
    job = Job(settings)
    status = build(job, keep_going=_has(make_flags(), "k"))
    report.say_left_out(job)
    return status


def build_core(settings: Settings) -> int:
    """Build all of the toolkit's own objects."""
    requirements.need(["build"], f"{settings.build}/packages.build")
    job = Job(settings)
    with locked(f"{settings.build}/lock"), locked(core := f"{settings.core}/lock"), locked(used(core)):
        job.write(dry=False)
        with remembered(job.rules.core_inputs):
            return run_make(job, "whole_core")


def loops(settings: Settings) -> int:
    for_gpus = [name for name in settings.backends if not BACKENDS[name].on_host]
    if not for_gpus:
        print("make loops: the loops are rewritten for nvcc, which was not found. Set NVCC=/path/to/nvcc.")
        return 1
    requirements.need(["build"], f"{settings.build}/packages.build")
    job = Job(settings)
    if status := build(job):
        return status
    for name in job.names:
        place = os.path.join(settings.build, name, for_gpus[0])
        for file in sorted(os.listdir(place)):  # a layer of a wing's kind may have no .cu
            if file.endswith(".cu.loops"):
                print(read(os.path.join(place, file), "utf-8"), end="")
    return 0


def copied(settings: Settings, checker: str, place: str) -> Settings:
    """Copy the layers. Returns the settings that build the copy with SANITIZE."""
    empty(f"{place}/layers")
    ignored = shutil.ignore_patterns("build", "*.so", "__pycache__", ".*")
    for folder in folders.places(settings.layers_dir):
        shutil.copytree(folder, f"{place}/layers", ignore=ignored, dirs_exist_ok=True)
    os.makedirs(f"{place}/made", exist_ok=True)
    own = {
        "BACKENDS": HOST.name,
        "SANITIZE": checker,
        "LAYERS_DIR": f"{place}/layers",
        "BUILD": f"{place}/made",
    }
    return Settings(settings.environment() | own)


def check_writable(settings: Settings) -> None:
    """Refuse a folder that cannot be written. The message says what to do instead."""
    for setting, place in (("LAYERS_DIR", settings.layers_dir), ("BUILD", settings.build)):
        nearest = place
        while not os.path.exists(nearest):
            nearest = os.path.dirname(nearest) or "."
        if not os.path.isdir(nearest) or not os.access(nearest, os.W_OK):
            raise Refused(
                f"{setting}: {full(nearest)} cannot be written. A layer's library goes beside its files, whatever "
                "BUILD is. Copy the layers to a folder of your own, and build there:\n"
                f"    {command('cp', '-r', full(settings.layers_dir))} ~/my_layers\n"
                f"    {command(*make_command())} LAYERS_DIR=~/my_layers"
            )


TARGETS = {
    "all": build_all,
    "libraries": build_libraries,
    "core": build_core,
    "loops": loops,
    "clean": clean,
}


def concerned(several: list[Settings], target: str) -> list[Settings]:
    """The settings of the folders with the wanted layers; for a target of a kind only the first one with its layer."""
    if len(several) == 1:
        return several
    if target == "core":
        return several[:1]
    of_layer = target not in TARGETS
    asked = several[0].arguments.get("LAYER", "").split() if of_layer else several[0].layers
    if not asked:
        return several
    found = {settings: set(asked) & set(layers_in(settings.layers_dir)) for settings in several}
    if strange := set(asked).difference(*found.values()):
        where = " ".join(settings.layers_dir for settings in several)
        setting = "LAYER" if of_layer else "LAYERS"
        raise Refused(f"{setting}: no layer {' '.join(sorted(strange))} in {where}")
    for settings, names_here in found.items():
        settings.layers = sorted(names_here)
    those = [settings for settings, names_here in found.items() if names_here]
    return those[:1] if target in targets_of_kinds() else those


def targets_of_kinds() -> dict[str, Callable[[Settings], int]]:
    return {name: target for kind in kinds() for name, target in kind.targets().items()}


def run(target: Callable[[Settings], int], settings: Settings) -> int:
    if target is not clean:
        if not os.path.isdir(settings.layers_dir):
            raise Refused(
                f"LAYERS_DIR: there is no folder {settings.layers_dir}. "
                f"To begin one: {settings.hint('new', LAYER='foo')}"
            )
        check_writable(settings)
        try:
            os.makedirs(settings.build, exist_ok=True)
        except OSError as error:
            raise Refused(
                f"BUILD={full(settings.build)} cannot be made: {error.strerror}: "
                "give a folder that you may write: BUILD=$PWD/build"
            ) from None
    return target(settings)


def main(
    known: dict[str, Callable[[Settings], int]] | None = None, arguments: list[str] | None = None
) -> int:
    """Run a target: one of `known`, or of the toolkit's and the kinds' own."""
    known = known or TARGETS | targets_of_kinds()
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (a closed stdout means no output)
    os.chdir(ROOT)
    try:
        if _has(make_flags(), "t"):
            raise Refused("-t (--touch) would leave empty libraries, which make would take for built ones")
        several, targets = of_each_folder(sys.argv[1:] if arguments is None else arguments)
        if len(targets) != 1 or targets[0] not in known:
            raise Refused(f"usage: python -m tools.make.build {' | '.join(known)} [SETTING=value ...]")
        return max([run(known[targets[0]], settings) for settings in concerned(several, targets[0])])
    except Refused as error:
        print(f"make: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("make: stopped by Ctrl-C", file=sys.stderr)
        return 130
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"make: {place}{error.strerror}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
