"""Run each built layer once, on the first input of its first case, for the table at the end of make's output.

Child processes run the layers, so one that crashes does not end the others. One that does not end is stopped after
LIMIT seconds.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .backends import BACKENDS, CPU, GPU
from .folders import layers_in, shown

# The seconds after which make names the layer that it waits for.
PATIENCE = 2


@dataclass(frozen=True)
class Outcome:
    """A layer's row of the table.

    Attributes:
        failed: the reason why the layer is broken; "" if it is not.
    """

    backends: str = ""
    where: str = ""
    error: str = ""
    seconds: str = ""
    failed: str = ""

    @property
    def good(self) -> bool:
        return not self.failed

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of the table."""
        if self.failed:
            return self.backends, "[red]failed", cell(self.failed), self.seconds
        return self.backends, self.where, self.error, self.seconds


def outcomes_of(layers_dir: str, names: list[str], settings) -> dict[str, Outcome]:
    """The outcome of each layer, in the order of `names`. After Ctrl-C, those that have not run are left out."""
    found: dict[str, Outcome] = {}
    while left := [name for name in names if name not in found]:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _answer(writing, layers_dir, left, settings)
        os.close(writing)
        ended = "by Ctrl-C"
        try:
            ended = _collect(reading, left, found, settings.limit)
        except KeyboardInterrupt:
            return found
        finally:
            os.close(reading)
            if ended:
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if late := next((name for name in left if name not in found), None):
            found[late] = Outcome(failed=ended or died(os.waitstatus_to_exitcode(status), settings, late))
    return {name: found[name] for name in names}


def died(code: int, settings, name: str) -> str:
    """How a layer's process ended, and how to find the place."""
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    where = (
        f"{settings.hint('sanitize', LAYERS=name)} finds the place" if code < 0 else "the layer calls exit"
    )
    return f"it ended its process ({how}): {where}"


def _collect(pipe: int, left: list[str], found: dict[str, Outcome], limit: float) -> str:
    """Read the child's answers. Returns why it must be stopped; "" if it has ended."""
    for line in _lines(pipe, left, found, limit):
        if line is None:
            return f"it did not end within {limit:g} s (LIMIT= changes this)"
        name, *fields = line.split("\t")
        found[name] = Outcome(*fields)
    return ""


def _lines(pipe: int, left: list[str], found: dict, limit: float) -> Iterator[str | None]:
    """The lines that come; None, and no more, if nothing comes for `limit` seconds."""
    text, waited = b"", 0.0
    while True:
        wait = min(PATIENCE, limit) if not waited else limit - waited
        if not select.select([pipe], [], [], wait)[0]:
            waited += wait
            if waited >= limit:
                yield None
                return
            running = next((name for name in left if name not in found), "")
            print(f"  RUN   {running}: still running; the limit is {limit:g} s", flush=True)
            continue
        part = os.read(pipe, 1 << 16)
        if not part:
            return
        *lines, text = (text + part).split(b"\n")
        waited = 0.0
        yield from (line.decode() for line in lines)


def _answer(pipe: int, layers_dir: str, names: list[str], settings) -> None:
    """In the child process: write a line for each layer, and exit."""
    try:
        with os.fdopen(pipe, "w", encoding="utf-8") as answers, contextlib.suppress(KeyboardInterrupt):
            folders = layers_in(layers_dir)
            for name in names:
                place = folders[name].path if name in folders else os.path.join(layers_dir, name)
                outcome = outcome_of(Path(place).resolve(), settings)
                fields = outcome.backends, outcome.where, outcome.error, outcome.seconds, outcome.failed
                print(
                    name, *(shown(re.sub(r"\s+", " ", f)) for f in fields), sep="\t", file=answers, flush=True
                )
    finally:
        os._exit(0)


def cell(text: str) -> str:
    """A text from outside as a cell of the table, with rich's brackets and control characters escaped."""
    from rich.markup import escape

    return escape(shown(re.sub(r"\s+", " ", text)))


def words_of(error: BaseException) -> str:
    """The type and the text of an exception, if it has one that can be made."""
    try:
        said = str(error)
        if isinstance(error, SyntaxError):
            said = f"{error.msg} ({error.filename}:{error.lineno})"
    except Exception as another:
        said = f"its message raises {type(another).__name__}"
    return f"{type(error).__name__}: {said}"


def outcome_of(folder: Path, settings) -> Outcome:
    """Import the layer and run its first case."""
    from cuffi.runtime.cases import layer_of, load_package

    name = folder.name
    built = " ".join(b for b in settings.backends if (folder / BACKENDS[b].library).exists())
    # Or Python would import the folder as an empty package.
    if not (folder / "__init__.py").exists():
        return Outcome(built, error="no __init__.py yet: it has the functions for Python")
    try:
        package = load_package(folder.parent)
        module = importlib.import_module(f"{package}.{name}")
        if not (folder / "cases.py").exists():
            native = (folder / f"{name}.h").exists()
            return Outcome(
                built, error="no cases yet: write cases.py" if native else settings.hint("verify", LAYER=name)
            )
        cases = importlib.import_module(f"{package}.{name}.cases").CASES
        return run_once(cases[0], layer_of(module))
    except (Exception, SystemExit) as error:
        return Outcome(built, failed=words_of(error))


def run_once(case, layer) -> Outcome:
    """Check the case's first input in float32 (or the layer's first dtype), and time a second call."""
    import torch

    from cuffi.runtime.cases import Draw, cast

    dtype = torch.float32 if torch.float32 in layer.dtypes else layer.dtypes[0]
    device = GPU if torch.cuda.is_available() and case.supports(layer, GPU, dtype) else CPU
    if device == CPU and not case.supports(layer, CPU, dtype):
        return Outcome(" ".join(layer.backends()), error="not run: it needs a GPU, and there is none here")
    arguments = next(iter(case.inputs.values()))(Draw())
    given = cast(arguments, dtype, device)
    verdict = case.check(case.call(*given), case.reference(*cast(cast(given, dtype), torch.float64)), dtype)
    wait = torch.cuda.synchronize if device == GPU else lambda: None
    wait()
    start = time.perf_counter()
    case.call(*given)
    wait()
    seconds = f"{(time.perf_counter() - start) * 1e6:.0f} us"
    built, where = " ".join(layer.backends()), torch.cuda.get_device_name() if device == GPU else device
    wrong = f"wrong result on {where}: {verdict.words}" if not verdict.right else ""
    return Outcome(built, where, f"{verdict.error:.1e}", seconds, wrong)
