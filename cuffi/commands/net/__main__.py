"""make net, make verify-net, make onnx: run, compare or convert a whole Caffe net from the shell.

make net PROTOTXT=deploy.prototxt [WEIGHTS=x.caffemodel] [CAFFE=/path/to/fork]
    ports and builds what is missing, runs the net once, prints a table

make verify-net PROTOTXT=deploy.prototxt CAFFE=/path/to/fork
    runs the net with torch and with the fork's code, and compares every blob and every gradient

make onnx PROTOTXT=deploy.prototxt WEIGHTS=x.caffemodel [ONNX=x.onnx]
    writes the net as ONNX, and compares every blob with what onnxruntime computes
"""

from __future__ import annotations

import ast
import functools
import keyword
import os
import re
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import nn

from ...backends import CPU, GPU
from ...base import CaffeError, CaffeRuntimeError, CaffeValueError
from ...base.console import console as console_for_names
from ...base.files import nearest
from ...folders import listed
from ...installed import has_kernels, missing
from ...nets.forks import fork_classes
from ...nets.net import caffe_net
from ...nets.net.builder import check_inputs
from ...nets.net.choice import Options
from ...nets.net.graph import Spec
from ...nets.net.needs import Need, needs
from ...nets.net.net import CaffeNet
from ...nets.net.onnx import why
from ...nets.net.phases import TEST, TRAIN, State
from ...nets.net.registry import Folders
from ...nets.net.running import bind, run_named
from ...nets.stock import blobs_of
from ..main import escape_what_cannot_be_shown
from .compare import compare, random_inputs, runs_by, twin_parameters, vary
from .typed import typed

_LITERAL = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""  # a string of Python
FORWARD, GRADIENT = 1e-4, 1e-3  # relative
USAGE = {
    "show": "make net PROTOTXT=deploy.prototxt [WEIGHTS=x.caffemodel CAFFE=/path/to/fork]",
    "onnx": "make onnx PROTOTXT=deploy.prototxt WEIGHTS=x.caffemodel [ONNX=x.onnx]",
    "verify": "make verify-net PROTOTXT=train_val.prototxt CAFFE=/path/to/fork [WEIGHTS=x.caffemodel]",
}


def main() -> int:
    escape_what_cannot_be_shown()
    console = console_for_names(highlight=True)
    try:
        return run(console)
    except (CaffeError, OSError, ValueError, *refusals()) as error:
        console.print(as_typed(str(error)), style="red", highlight=False, soft_wrap=True)
        return 1


def refusals() -> tuple[type[Exception], ...]:
    """The errors of the toolkit's tools."""
    if not has_kernels():
        return ()
    from tools.refused import Refused

    return (Refused,)


def as_typed(text: str) -> str:
    """An error of caffe_net, with the command's names of its arguments."""
    several = []

    def shapes(match: re.Match) -> str:
        several.append(f"{ast.literal_eval(match[1])}=1,3,...")
        return typed("SHAPES", several[-1])

    text = re.sub(rf"shapes=\{{({_LITERAL}): \(\.\.\.\)\}}", shapes, text)
    if len(dict.fromkeys(several)) > 1:
        text += f"\nTogether: {typed('SHAPES', ' '.join(dict.fromkeys(several)))}"
    for name, pattern in (
        ("PYTHON_PATH", rf"python_path=\[({_LITERAL})\]"),
        ("IGNORE", rf"ignore=\(({_LITERAL}),\)"),
    ):
        text = re.sub(pattern, lambda match, name=name: typed(name, ast.literal_eval(match[1])), text)
    return text


def run(console: Console) -> int:
    settings, targets = given(sys.argv[1:])
    target = targets[0] if len(targets) == 1 and targets[0] in USAGE else "show"
    if targets != [target] or not os.environ.get("PROTOTXT"):
        console.print(("" if os.environ.get("PROTOTXT") else "which net? ") + USAGE[target])
        return 2
    command_line = CommandLine(settings, verify=target == "verify")
    torch.manual_seed(1701)
    if has_kernels():
        from . import porting

        porting.make_messages(settings[0].core)
        if not prepare(command_line, console):
            return 1
    elif command_line.caffe or command_line.verify:
        raise CaffeRuntimeError(missing("a port out of CAFFE"))
    return {"show": show, "verify": verify, "onnx": convert}[target](command_line, console)


def prepare(command_line: CommandLine, console: Console) -> bool:
    """Make what the net needs. Wrong inputs are an error before minutes of compiling."""
    from . import porting

    work = porting.work_for(command_line, console)
    if work.missing or work.unbuilt:
        command_line.check_inputs()
    return porting.provide(work, console)


def given(arguments: list[str]) -> tuple[list, list[str]]:
    """make's settings for each folder of layers, none without kernels, and the targets."""
    if not has_kernels():
        return [], arguments
    from tools.make.settings import of_each_folder

    return of_each_folder(arguments)


class Arguments(TypedDict):
    """Those of caffe_net."""

    layers: list[str]
    phase: str | None
    shapes: dict[str, tuple[int, ...]]
    replace: dict[str, str]
    ignore: tuple[str, ...]
    stages: tuple[str, ...]
    python_layers: bool
    python_path: tuple[str, ...]


class CommandLine:
    """The options of the command line."""

    def __init__(self, settings: list, verify: bool):
        environment = os.environ
        folders = [each.layers_dir for each in settings] if settings else map(str, listed())
        self.folders, self.verify = list(folders), verify
        self.prototxt, self.weights = environment.get("PROTOTXT", ""), environment.get("WEIGHTS")
        self.caffe = environment.get("CAFFE", "")
        if verify and self.caffe and settings:
            from .porting import place_for

            self.folders.insert(0, str(place_for(settings[0].build, self.caffe)))
        for name, path in (("PROTOTXT", self.prototxt), ("WEIGHTS", self.weights)):
            if path and not Path(path).exists():
                raise CaffeValueError(f"{name}={path}: there is no such file{nearest(path)}")
        shapes = pairs("SHAPES", environment.get("SHAPES", ""))
        self.phase = environment.get("PHASE") or None
        self.options: Arguments = {
            "layers": self.folders,
            "phase": self.phase,
            "shapes": {name: sizes(value) for name, value in shapes},
            "replace": dict(pairs("REPLACE", environment.get("REPLACE", ""))),
            "ignore": tuple(environment.get("IGNORE", "").split()),
            "stages": tuple(environment.get("STAGES", "").split()),
            "python_layers": environment.get("PYTHON_LAYERS", "") not in ("", "0"),
            "python_path": tuple(filter(None, environment.get("PYTHON_PATH", "").split(os.pathsep))),
        }

    @property
    def states(self) -> list[State]:
        """The states that the net is built for."""
        stages = frozenset(self.options["stages"])
        return [State(phase, stages=stages) for phase in ([self.phase] if self.phase else [TEST, TRAIN])]

    @functools.cached_property
    def needs(self) -> dict[str, Need]:
        """The needs of the net's layers in these states."""
        options = self.options
        return needs(self.prototxt, options["replace"], options["ignore"], self.states, self._inputs_of_fork)

    def _inputs_of_fork(self, types: list[str]) -> list[str]:
        """The types without bottoms that the fork's code computes and that are not data layers."""
        folders = Folders([folder for folder in self.folders if Path(folder).is_dir()])
        self.sources = [name for name in types if folders.find(name)]
        if self.caffe and self.sources != types:
            from .porting import own_of

            self.sources += own_of(self.caffe, [name for name in types if name not in self.sources])
        return self.sources

    def check_inputs(self) -> None:
        """Raise CaffeValueError for wrong inputs of the net, before anything is built."""
        # Nothing is made here: that there are functions for these types is enough.
        own: dict[str, Callable[[Spec], nn.Module]] = dict.fromkeys(self.sources, nn.Identity)
        options = Options(folders=Folders(self.folders), shapes=self.options["shapes"])
        options.ignore, options.types = self.options["ignore"], own
        options.python = str if self.options["python_layers"] else None
        check_inputs(self.prototxt, self.options["replace"], self.states, options)

    def in_python(self) -> str:
        """The Python call that loads the same net. It finds folders of layers by LAYERS_DIR."""
        words = [repr(self.prototxt), *([repr(self.weights)] if self.weights else [])]
        words += [f"{name}={value!r}" for name, value in self.options.items() if value and name != "layers"]
        return f"caffe_net({', '.join(words)})"


def pairs(setting: str, text: str) -> list[tuple[str, str]]:
    """`data=1,3,224,224 label=1` as pairs."""
    words = [word.partition("=") for word in text.split()]
    if any(not sign for _, sign, _ in words):
        raise CaffeValueError(
            f"{setting} (--{setting.lower()}): expected name=value, or several, got {text!r}"
        )
    return [(name, value) for name, _, value in words]


def sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.split(","))
    except ValueError:
        meant = ",".join(re.findall(r"\d+", text))
        near = f"; did you mean {meant}?" if "," in meant else ""
        raise CaffeValueError(
            f"SHAPES (--shapes): expected sizes such as 1,3,224,224, got {text!r}{near}"
        ) from None


# ---------------------------------------------------------------------------------------------- show


def show(command_line: CommandLine, console: Console) -> int:
    """Load the net, run it once, and print the table and the Python call that loads it."""
    with warnings.catch_warnings(record=True) as messages, console.status("loading"):
        warnings.simplefilter("always")
        began = time.perf_counter()
        net = caffe_net(command_line.prototxt, command_line.weights or None, **command_line.options)
        load_seconds = time.perf_counter() - began
    if not command_line.weights:  # twenty norms with a variance of zero overflow a float
        vary(net)
    for note in [*(str(warning.message) for warning in messages), *net.notes]:
        console.print(note, style="yellow", soft_wrap=True)
    device = GPU if torch.cuda.is_available() else CPU
    net.to(device)
    times = timed(net, device, console)
    console.print(table(net, times))
    parameters = sum(p.numel() for p in net.parameters())
    for text in (
        f"{len(net.layers)} layers, {parameters:,} parameters, loaded in {load_seconds:.1f} s; forward "
        f"{1e3 * sum(times.values()):.1f} ms on {device}. Inputs: {', '.join(net.inputs)}. "
        f"Outputs: {', '.join(net.outputs) or 'none, all are silenced'}.",
        f"from cuffi import caffe_net\nnet = {command_line.in_python()}\nout = {call_of(net)}",
    ):
        console.print(text, highlight=False, soft_wrap=True)
    return 0


def convert(command_line: CommandLine, console: Console) -> int:
    """Write the net as ONNX, and print the certificate. Returns 0 if every blob agrees."""
    options: Arguments = {**command_line.options, "phase": TEST}
    net = caffe_net(command_line.prototxt, command_line.weights or None, **options)
    if not command_line.weights:
        vary(net)
    path = os.environ.get("ONNX") or str(Path(command_line.prototxt).with_suffix(".onnx"))
    certificate = net.to_onnx(path)
    table = Table(title=f"{path}: by {certificate.runtime}, against the net")
    for name in ("blob", "shape", "relative difference"):
        table.add_column(name)
    for blob in certificate.blobs:
        table.add_row(
            blob["name"], " x ".join(map(str, blob["shape"])), f"{blob['difference']:.1e}{why(blob)}"
        )
    console.print(table)
    console.print(
        str(certificate).splitlines()[-1], style="green" if certificate.agrees else "red", soft_wrap=True
    )
    return 0 if certificate.agrees else 1


def call_of(net: CaffeNet) -> str:
    """The call of a net in Python. If Silence reads all its outputs, the call asks for them as blobs."""
    can_be_named = all(name.isidentifier() and not keyword.iskeyword(name) for name in net.inputs)
    given = [f"{name}=..." if can_be_named else "..." for name in net.inputs]
    steps = net.phase.graph.steps
    silenced = [blob for step in steps if step.spec.type == "Silence" for blob in step.spec.bottoms]
    return f"net({', '.join(given if net.outputs else [*given, f'blobs={silenced}'])})"


def timed(net: CaffeNet, device: str, console: Console) -> dict[str, float]:
    """The seconds of each submodule in the second run."""
    inputs = {name: value.to(device) for name, value in random_inputs(net, torch.float32).items()}
    times: dict[str, float] = {}
    schedule = net.make_schedule(net.training)
    with torch.no_grad(), Progress(console=console, transient=True) as progress:
        task = progress.add_task("running", total=2 * len(schedule.calls))
        for _ in range(2):
            values = bind(net, schedule, (), inputs)
            for call in schedule.calls:
                progress.advance(task)
                began = now(device)
                run_named(net, (call,), values)
                times[call.key] = now(device) - began
    return times


def now(device: str) -> float:
    if device == GPU:
        torch.cuda.synchronize()
    return time.perf_counter()


def table(net: CaffeNet, times: dict[str, float]) -> Table:
    table_of_layers = Table(title=net.net_name or Path(net.path).name)
    for name in ("layer", "type", "runs by", "tops", "parameters", "ms"):
        justify = "right" if name in ("parameters", "ms") else "left"
        table_of_layers.add_column(name, justify=justify, overflow="fold")
    for step in net.phase.graph.steps:
        if not step.key:
            continue
        module = net.get_layer(step.key)
        shapes = [net.shapes[top] for top in step.spec.tops if top in net.shapes]
        tops = ", ".join(" x ".join(map(str, shape)) or "scalar" for shape in shapes)
        count = sum(blob.numel() for _, blob in blobs_of(module))
        parameters = f"{count:,}" if count else ""
        ms = f"{1e3 * times[step.key]:.2f}" if step.key in times else "with the one above"
        table_of_layers.add_row(step.spec.name, step.spec.type, runs_by(module), tops, parameters, ms)
    return table_of_layers


# -------------------------------------------------------------------------------------------- verify


def verify(command_line: CommandLine, console: Console) -> int:
    """Compare both nets. Returns 0 if every blob and every gradient agrees."""
    # In double, because in float a ReLU or a maximum near a tie may decide differently in the two runs.
    torch.set_default_dtype(torch.float64)
    ok, found = True, []
    for phase in [command_line.phase] if command_line.phase else ["TEST", "TRAIN"]:
        options: Arguments = {**command_line.options, "phase": phase}
        with console.status(f"{phase}: loading"):
            # The fork's layers would win.
            known = {name: True for name in command_line.needs if fork_classes(name)}
            native = caffe_net(command_line.prototxt, command_line.weights or None, native=known, **options)
            unedited = caffe_net(command_line.prototxt, None, native=False, **options)
            if not command_line.weights:
                vary(native)
            twin_parameters(native, unedited)
        with console.status(f"{phase}: running with torch and with the fork's code"):
            inputs = random_inputs(native, torch.float64)
            differences = compare(native, unedited, inputs, gradients=phase == "TRAIN")
        ok = report(differences, phase, console) and ok
        found += differences
    text, style = verdict(ok, found)
    console.print(text, style=style)
    return 0 if ok else 1


def verdict(ok: bool, differences: list) -> tuple[str, str]:
    """The last line and its style. Gradients that are all zero do not check Backward."""
    if not ok:
        return "DIFFER", "red"
    gradients = [d for d in differences if d.what == "gradient"]
    if gradients and all(d.nothing for d in gradients):
        count = len(gradients)
        return f"the blobs agree; all {count} gradients are zero, so Backward was not checked", "yellow"
    return "agree", "green"


def report(differences: list, phase: str, console: Console) -> bool:
    limits = {"blob": FORWARD, "gradient": GRADIENT}
    summary = Table(title=f"phase {phase}: torch compared with the fork's code")
    for name in ("compared", "count", "all zero", "largest relative difference", "where", "allowed"):
        summary.add_column(name)
    for what, limit in limits.items():
        of_kind = [d for d in differences if d.what == what]
        if of_kind:
            worst = max(of_kind, key=lambda d: d.error)
            counts = str(len(of_kind)), str(sum(d.nothing for d in of_kind))
            summary.add_row(f"{what}s", *counts, f"{worst.error:.1e}", worst.name, f"{limit:.0e}")
    console.print(summary)
    too_large = [d for d in differences if not d.error <= limits[d.what]]
    for difference in too_large[:20]:
        console.print(f"{difference.what} {difference.name}: {difference.error:.1e}", style="red")
    return not too_large


if __name__ == "__main__":
    sys.exit(main())
