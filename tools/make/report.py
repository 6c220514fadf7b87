"""The end of make's output: run each built layer once, list what failed to build, and name the next command."""

from __future__ import annotations

import glob
import importlib
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

from .backends import BACKENDS, CPU, GPU
from .names import shown


class Outcome:
    """A layer's row of the table, and whether the layer is good."""

    def __init__(self, backends: str, where: str, error: str, seconds: str = "", good: bool = True):
        self.row, self.good = [backends, where, error, seconds], good


def report(job, status: int) -> int:
    """Print the report. Takes the build's exit status, and returns that of make."""
    settings, libraries = job.settings, job.rules.libraries
    backends = " and ".join(settings.backends)
    failed = [key for key, path in libraries.items() if status and not is_made(job, path)]
    built = [name for name in job.names if any(os.path.exists(libraries[name, b]) for b in settings.backends)]
    stamp = Path(settings.build, "report")
    inside = [os.path.abspath(path) for path in [*libraries.values(), *texts(job)] if os.path.exists(path)]
    if not status and stamp.exists() and stamp.read_text() == state(inside):
        print(f"Nothing to do: {len(built)} layers are built for {backends}. Next: {settings.suite()}")
        return 0
    stamp.unlink(missing_ok=True)
    good = not built or show(settings.layers_dir, built, settings)
    count = len(job.names) - len({name for name, _ in failed})
    print(f"{count} of {len(job.names)} layers built for {backends}.")
    for backend in settings.missing:
        print(
            f"Left out: the {backend.name.upper()} backend, because no {backend.compiler.lower()} was found "
            "(the top of the Makefile says where it is looked for)."
        )
    for name, backend in failed:
        place = place_of_logs(os.path.join(settings.build, name), backend)
        refused = job.folder(name).refused
        print(f"FAILED: {name} for {backend}: {'; '.join(refused) or f'see the logs in {place}'}")
    for name in dict.fromkeys(name for name, _ in failed):
        for message, field in missing_fields(Path(settings.build, name)):
            print(
                f"{name}: {message} has no {field}: put the fork's caffe.proto into {job.folder(name).path}, "
                "or a .proto with that message alone (docs/port-a-caffe-layer.md, section 1)."
            )
    if status or not good:
        return status or 1
    stamp.write_text(state(inside))
    print(f"Next: {settings.suite()}")
    return 0


def place_of_logs(objects: str, backend: str) -> str:
    """The folder of a backend's logs; or that above it, if headers or messages for all backends failed."""
    stamps = glob.glob("*.stamp.log", root_dir=objects)
    failed = [log for log in stamps if not os.path.exists(os.path.join(objects, log.removesuffix(".log")))]
    return objects if failed else os.path.join(objects, backend)


def texts(job) -> list[str]:
    """The Python files on which a layer's result depends."""
    return [
        os.path.join(folder.path, file)
        for folder in job.folders
        for file in sorted(os.listdir(folder.path))
        if file.endswith(".py")
    ]


def state(paths: list[str]) -> str:
    """A text that changes when one of the files changes."""
    return "".join(f"{os.stat(path).st_mtime_ns} {path}\n" for path in paths)


def is_made(job, library: str) -> bool:
    """Is the library up to date?"""
    if not os.path.exists(library):
        return False
    if os.stat(library).st_mtime_ns >= job.started:
        return True
    command = ["make", "-q", "-f", job.makefile, library]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def missing_fields(objects: Path) -> list[tuple[str, str]]:
    """For a Caffe layer that did not compile: messages, and fields that its files use and the messages do not have."""
    lacking = re.compile(r"class \W?caffe::(\w+Parameter)\W+has no member\W+(?:named\W+)?(\w+)")
    found = (log.read_text(errors="replace") for log in sorted(objects.rglob("*.log")))
    return list(dict.fromkeys(field for text in found for field in lacking.findall(text)))


# ------------------------------------------------------------------------------------------------ the table


def show(layers_dir: str, names: list[str], settings) -> bool:
    """Print the table of the layers. Are all of them good?"""
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
    return all(outcome.good for outcome in outcomes.values())


def outcomes_of(layers_dir: str, names: list[str], settings) -> dict[str, Outcome]:
    """The outcome of each layer. Child processes run the layers, so that one that dies does not end the others."""
    found: dict[str, Outcome] = {}
    while left := [name for name in names if name not in found]:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _answer(writing, layers_dir, left, settings)
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as answers:
            for line in answers:
                name, *fields, good = line.rstrip("\n").split("\t")
                found[name] = Outcome(*fields, good=good == "1")
        _, status = os.waitpid(child, 0)
        dead = next((name for name in left if name not in found), None)
        if dead:
            code = os.waitstatus_to_exitcode(status)
            how = f"signal {-code}" if code < 0 else f"status {code}"
            error = f"its process died ({how}): remove its _*.abi3.so, {cell(settings.hint(LAYERS=dead))}"
            found[dead] = Outcome("", "[red]failed", error, good=False)
    return {name: found[name] for name in names}


def _answer(pipe: int, layers_dir: str, names: list[str], settings) -> None:
    """In the child process: write a line for each layer, and exit."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8") as answers:
            for name in names:
                outcome = outcome_of(Path(layers_dir), name, settings)
                fields = [re.sub(r"\s+", " ", field) for field in outcome.row]
                print(name, *fields, int(outcome.good), sep="\t", file=answers, flush=True)
    finally:
        os._exit(0)


def cell(text: str) -> str:
    """A text from outside as a cell of the table, with rich's brackets and control characters escaped."""
    from rich.markup import escape

    return escape(shown(re.sub(r"\s+", " ", text)))


def words_of(error: BaseException) -> str:
    """The text of an exception, if it has one that can be made."""
    try:
        return str(error)
    except Exception as another:
        return f"its message raises {type(another).__name__}"


def outcome_of(layers_dir: Path, name: str, settings) -> Outcome:
    """Import the layer and run its first case."""
    import torch

    from layers._runtime.cases import layer_of, load_package

    built = " ".join(b for b in settings.backends if (layers_dir / name / BACKENDS[b].library).exists())
    # Or Python would import the folder as an empty package.
    if not (layers_dir / name / "__init__.py").exists():
        return Outcome(built, "", "no __init__.py yet: it says what Python calls")
    try:
        package = load_package(layers_dir)
        module = importlib.import_module(f"{package}.{name}")
        if not (layers_dir / name / "cases.py").exists():
            native = (layers_dir / name / f"{name}.h").exists()
            what = "no cases yet: write cases.py" if native else settings.hint("verify", LAYER=name)
            return Outcome(built, "", what)
        cases = importlib.import_module(f"{package}.{name}.cases").CASES
        layer = layer_of(module)
        for_gpu = any(not BACKENDS[name].on_host for name in layer.backends())
        device = GPU if for_gpu and torch.cuda.is_available() else CPU
        error, limit, seconds = run_once(cases[0], device)
    except (Exception, SystemExit) as error:
        said = words_of(error)
        if "not filled in" in said:  # `make new FROM=` made it, and nobody has filled it in; it only builds
            return Outcome("", "[yellow]not filled in", cell(said))
        return Outcome("", "[red]failed", cell(f"{type(error).__name__}: {said}"), good=False)
    where = torch.cuda.get_device_name() if device == GPU else device
    good = bool(error <= limit)
    text = f"{error:.1e}" if good else f"[red]{error:.1e} > {limit:.1e}"
    return Outcome(" ".join(layer.backends()), where, text, f"{seconds * 1e6:.0f} us", good)


def run_once(case, device: str) -> tuple[float, float, float]:
    """(largest error, tolerance, seconds of the second call), in float32 on the case's first input."""
    import torch

    from layers._runtime.cases import Draw, cast, largest_error

    arguments = cast(next(iter(case.inputs.values()))(Draw()), torch.float32, device)
    result = case.function(*arguments)
    reference = case.reference(*cast(arguments, torch.float64))
    wait = torch.cuda.synchronize if device == GPU else lambda: None
    wait()
    start = time.perf_counter()
    case.function(*arguments)
    wait()
    seconds = time.perf_counter() - start
    relative, absolute = case.tolerance_for(torch.float32)
    first = reference if isinstance(reference, torch.Tensor) else reference[0]
    scale = first.abs().max().item() if first.numel() else 0.0
    return largest_error(result, reference), absolute + relative * scale, seconds
