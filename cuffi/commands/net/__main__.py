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
import hashlib
import keyword
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from cuffi.backends import CPU, GPU, HOST
from cuffi.base import CaffeError, CaffeValueError
from cuffi.caffe_files.parameters import Unknown
from cuffi.folders import own
from cuffi.nets.known import known_classes
from cuffi.nets.net import caffe_net
from cuffi.nets.net.builder import Options, check_inputs
from cuffi.nets.net.messages import STOCK
from cuffi.nets.net.needs import Need, needs
from cuffi.nets.net.net import CaffeNet
from cuffi.nets.net.onnx import why
from cuffi.nets.net.phases import TEST, TRAIN, State
from cuffi.nets.net.registry import Folders
from cuffi.nets.stock import blobs_of
from tools.console import console as console_for_names
from tools.make.settings import Settings, full, of_each_folder
from tools.parts import part
from tools.refused import Refused

from ...caffe_layers.make.proto import STOCK as STOCK_PROTO
from ...caffe_layers.make.proto import read, without_comments
from ...caffe_layers.port.loose import tree_of
from ...caffe_layers.port.names import Names
from ...caffe_layers.port.plan import Pick
from ...caffe_layers.port.refusals import refusals
from ...caffe_layers.port.toolkit_headers import Toolkit
from ...caffe_layers.port.write_folder import is_of
from .compare import compare, random_inputs, runs_by, twin_parameters, vary

shell = part("base/shown").command
_LITERAL = r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\""""  # a string of Python
FORWARD, GRADIENT = 1e-4, 1e-3  # relative
USAGE = {
    "show": "make net PROTOTXT=deploy.prototxt [WEIGHTS=x.caffemodel CAFFE=/path/to/fork]",
    "onnx": "make onnx PROTOTXT=deploy.prototxt WEIGHTS=x.caffemodel [ONNX=x.onnx]",
    "verify": "make verify-net PROTOTXT=train_val.prototxt CAFFE=/path/to/fork [WEIGHTS=x.caffemodel]",
}


def main() -> int:
    console = console_for_names(highlight=True)
    try:
        return run(console)
    except (CaffeError, Refused, OSError, ValueError) as error:
        console.print(as_typed(str(error)), style="red", highlight=False, soft_wrap=True)
        return 1


def as_typed(text: str) -> str:
    """An error of caffe_net, with make's names of its arguments."""
    several = []

    def shapes(match: re.Match) -> str:
        several.append(f"{ast.literal_eval(match[1])}=1,3,...")
        return shell(f"SHAPES={several[-1]}")

    text = re.sub(rf"shapes=\{{({_LITERAL}): \(\.\.\.\)\}}", shapes, text)
    if len(dict.fromkeys(several)) > 1:
        text += f"\nTogether: {shell('SHAPES=' + ' '.join(dict.fromkeys(several)))}"
    for name, pattern in (
        ("PYTHON_PATH", rf"python_path=\[({_LITERAL})\]"),
        ("IGNORE", rf"ignore=\(({_LITERAL}),\)"),
    ):
        text = re.sub(pattern, lambda match, name=name: shell(f"{name}={ast.literal_eval(match[1])}"), text)
    return text


def run(console: Console) -> int:
    settings, targets = of_each_folder(sys.argv[1:])
    target = targets[0] if len(targets) == 1 and targets[0] in USAGE else "show"
    if targets != [target] or not os.environ.get("PROTOTXT"):
        console.print(USAGE[target])
        return 2
    asked = Asked(settings, verify=target == "verify")
    torch.manual_seed(1701)
    make_messages(settings[0].core)
    if not port_missing(asked, console):
        return 1
    return {"show": show, "verify": verify, "onnx": convert}[target](asked, console)


class Asked:
    """The options of the command line."""

    def __init__(self, settings: list[Settings], verify: bool):
        environment = os.environ
        self.folders, self.verify = [each.layers_dir for each in settings], verify
        paths = (environment.get(name) for name in ("PROTOTXT", "WEIGHTS", "CAFFE"))
        self.prototxt, self.weights, self.caffe = paths
        if verify and self.caffe:
            self.folders.insert(0, str(place_for(settings[0].build, self.caffe)))
        for name, path in (("PROTOTXT", self.prototxt), ("WEIGHTS", self.weights)):
            if path and not Path(path).exists():
                raise CaffeValueError(f"{name}={path}: there is no {Path(path).absolute()}")
        shapes = pairs("SHAPES", environment.get("SHAPES", ""))
        self.phase = environment.get("PHASE") or None
        self.options = {
            "layers": self.folders,
            "phase": self.phase,
            "shapes": {name: sizes(value) for name, value in shapes},
            "replace": dict(pairs("REPLACE", environment.get("REPLACE", ""))),
            "ignore": tuple(environment.get("IGNORE", "").split()),
            "stages": tuple(environment.get("STAGES", "").split()),
            "python_layers": environment.get("PYTHON_LAYERS", "") not in ("", "0"),
            "python_path": tuple(filter(None, environment.get("PYTHON_PATH", "").split(":"))),
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
        return needs(self.prototxt, options["replace"], options["ignore"], self.states, self._own)

    def _own(self, types: list[str]) -> list[str]:
        """The types without bottoms that the fork's code computes and that are not data layers."""
        folders = Folders([folder for folder in self.folders if Path(folder).is_dir()])
        self.sources = [name for name in types if folders.find(name)]
        if self.caffe and self.sources != types:
            names = Names(tree_of(self.caffe), Toolkit())
            missing = [name for name in types if name in names.tree.types and name not in self.sources]
            self.sources += [
                name for name in missing if not any(p.fatal for p in refusals(Pick(names, name)))
            ]
        return self.sources

    def check_inputs(self) -> None:
        """Raise CaffeValueError for wrong inputs of the net, before anything is built."""
        options = Options(folders=Folders(self.folders), shapes=self.options["shapes"])
        options.ignore, options.types = self.options["ignore"], dict.fromkeys(self.sources)
        options.python = str if self.options["python_layers"] else None
        check_inputs(self.prototxt, self.options["replace"], self.states, options)

    def in_python(self) -> str:
        """The Python call that loads the same net. It finds folders of layers by LAYERS_DIR."""
        words = [repr(self.prototxt), *([repr(self.weights)] if self.weights else [])]
        words += [f"{name}={value!r}" for name, value in self.options.items() if value and name != "layers"]
        return f"caffe_net({', '.join(words)})"


def place_for(build: str, caffe: str) -> Path:
    """The folder for layers that are ported only for the comparison, apart from the user's layers."""
    of_fork = hashlib.sha256(os.path.realpath(caffe).encode()).hexdigest()[:8]
    made = Path(full(build), "verify-net")
    made.mkdir(parents=True, exist_ok=True)
    (made / "made").touch()
    return made / of_fork


def make_messages(core: str) -> None:
    """Make the messages of stock Caffe and of the known types for Python, if they do not exist yet."""
    descriptor = STOCK.path
    protos = STOCK_PROTO, descriptor.with_name("known.proto")
    newest = max(proto.stat().st_mtime for proto in protos)
    if not descriptor.exists() or descriptor.stat().st_mtime < newest:
        command = ["--layer-dir", str(descriptor.parent), "--descriptor", str(descriptor)]
        command += ["--include-dir", f"{core}/net"]
        subprocess.run([sys.executable, "-m", "cuffi.caffe_layers.make.proto", *command], check=True)


def pairs(setting: str, text: str) -> list[tuple[str, str]]:
    """`data=1,3,224,224 label=1` as pairs."""
    words = [word.partition("=") for word in text.split()]
    if any(not sign for _, sign, _ in words):
        raise CaffeValueError(f"{setting}: expected name=value, or several, got {text!r}")
    return [(name, value) for name, _, value in words]


def sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(n) for n in text.split(","))
    except ValueError:
        raise CaffeValueError(f"SHAPES: expected sizes such as 1,3,224,224, got {text!r}") from None


def port_missing(asked: Asked, console: Console) -> bool:
    """Port the types that no folder has, if there is a fork, and build what is not built."""
    # Stock layers are ported only for the comparison.
    types = [name for name, need in asked.needs.items() if asked.verify or need.fields is not None]
    if asked.caffe:  # the folder for ported layers may be new
        Path(asked.folders[0]).mkdir(parents=True, exist_ok=True)
    missing = to_port(types, asked, console) if asked.caffe else []
    if missing or unbuilt_folders(types, asked):
        asked.check_inputs()
    if missing and not port(missing, asked, console):
        return False
    unbuilt = unbuilt_folders(types, asked)
    for parent in dict.fromkeys(folder.parent for folder in unbuilt):
        names = " ".join(folder.name for folder in unbuilt if folder.parent == parent)
        build = ["tools.make.build", "libraries", f"LAYERS_DIR={parent}", f"LAYERS={names}"]
        if subprocess.run([sys.executable, "-m", *build]).returncode:
            return False
    return True


def unbuilt_folders(types: list[str], asked: Asked) -> list[Path]:
    """The folders of these types that have no library."""
    folders = Folders(asked.folders)
    layer_folders = [layer.folder for name in types if (layer := folders.find(name))]
    return [folder for folder in dict.fromkeys(layer_folders) if not (folder / HOST.library).exists()]


def to_port(types: list[str], asked: Asked, console: Console) -> list[str]:
    """The types that no folder has, and the fork's types that a later folder has from another tree."""
    folders = Folders(asked.folders)
    found = {name: folders.find(name) for name in types}
    missing = [name for name, layer in found.items() if layer is None]
    others = {name: x.folder for name, x in found.items() if x and not is_of(x.folder, Path(asked.caffe))}
    of_fork = tree_of(asked.caffe).types if others else {}
    for name, folder in others.items():
        # A folder without ORIGIN is the user's own layer, which runs.
        is_others = folder.parent in own() or (folder / "ORIGIN").exists()
        if name in of_fork and is_others and folder.parent != folders.folders[0]:
            missing.append(name)
        elif name in of_fork:
            said = f"{name}: {folder} runs, not {asked.caffe}'s own. To run that: LAYERS_DIR=/new/folder"
            console.print(said, style="yellow", soft_wrap=True)
    return missing


def port(missing: list[str], asked: Asked, console: Console) -> bool:
    """Port these types. For stock types, print the fields that make it necessary."""
    console.print(f"Porting {', '.join(missing)} from {asked.caffe}")
    of_forks = {name: asked.needs[name].fields or [] for name in missing}
    for said in reasons(of_forks, Path(asked.caffe)):
        console.print(f"  {said}", soft_wrap=True)
    command = ["cuffi.caffe_layers.port", f"--caffe={asked.caffe}", f"--layers-dir={asked.folders[0]}"]
    command += ["--unbuilt", "--", " ".join(missing)]
    if not subprocess.run([sys.executable, "-m", *command]).returncode:
        return True
    folders = Folders(asked.folders)
    failed = [
        name
        for name in missing
        if not (layer := folders.find(name)) or layer.folder.parent != folders.folders[0]
    ]
    console.print(f"Not ported: {', '.join(failed)}. The lines above have the reasons", soft_wrap=True)
    for state in asked.states if len(asked.states) > 1 else ():
        if not any(state.phase in asked.needs[name].phases for name in failed):
            console.print(f"{shell(f'PHASE={state.phase}')} needs none of these")
    if fields := dict.fromkeys(one.path for name in failed for one in of_forks[name]):
        console.print(
            f"If the fork's own fields do not matter: {shell('IGNORE=' + ' '.join(fields))}", soft_wrap=True
        )
    return False


def reasons(missing: dict[str, list[Unknown]], caffe: Path) -> list[str]:
    """Where the prototxt uses each field, and where the fork declares it. CaffeValueError if it does not."""
    uses = sorted((one for strange in missing.values() for one in strange), key=lambda one: -one.line)
    fields = {one.path: one for one in uses}  # the first use of each
    said, nowhere = [], []
    for path, one in fields.items():
        types = [name for name, strange in missing.items() if path in [other.path for other in strange]]
        text = f"line {one.line}: {path} of {', '.join(types)} is a field that stock Caffe does not have"
        if place := declared(one, caffe):
            said.append(f"{text}. It is declared at {place}")
        else:
            nowhere.append(f"{text}, nor has {caffe}{one.near}")
    if nowhere:
        unknown = " ".join(path for path, one in fields.items() if not declared(one, caffe))
        raise CaffeValueError(
            "\n".join(nowhere) + f"\nIf it does not matter: {shell(f'IGNORE={unknown}')}. "
            "If it does, CAFFE must be the fork for which the prototxt was written"
        )
    return said


def declared(field: Unknown, caffe: Path) -> str | None:
    """The file and line that declare a field in a message of the fork."""
    name = field.path.rpartition(".")[2]
    for file in sorted(caffe.rglob("*.proto")):
        inside = False
        for line, text in enumerate(without_comments(read(file)).splitlines(), 1):
            if begins := re.match(r"(?:message|extend|enum)\s+(\w+)", text):
                inside = begins[1] == field.message
            if inside and re.search(rf"\b{name}\s*=\s*\d", text):
                return f"{file}:{line}"
    return None


# ---------------------------------------------------------------------------------------------- show


def show(asked: Asked, console: Console) -> int:
    """Load the net, run it once, and print the table and the Python call that loads it."""
    with warnings.catch_warnings(record=True) as messages, console.status("loading"):
        warnings.simplefilter("always")
        began = time.perf_counter()
        net = caffe_net(asked.prototxt, asked.weights or None, **asked.options)
        load_seconds = time.perf_counter() - began
    if not asked.weights:  # twenty norms with a variance of zero overflow a float
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
        f"from cuffi import caffe_net\nnet = {asked.in_python()}\nout = {call_of(net)}",
    ):
        console.print(text, highlight=False, soft_wrap=True)
    return 0


def convert(asked: Asked, console: Console) -> int:
    """Write the net as ONNX, and print the certificate. Returns 0 if every blob agrees."""
    net = caffe_net(asked.prototxt, asked.weights or None, **asked.options | {"phase": TEST})
    if not asked.weights:
        vary(net)
    path = os.environ.get("ONNX") or str(Path(asked.prototxt).with_suffix(".onnx"))
    certificate = net.to_onnx(path)
    table = Table(title=f"{path}: by {certificate.runtime}, against the net")
    for name in ("blob", "shape", "relative difference"):
        table.add_column(name)
    for blob in certificate.blobs:
        table.add_row(
            blob["name"], " x ".join(map(str, blob["shape"])), f"{blob['difference']:.1e}{why(blob)}"
        )
    console.print(table)
    if certificate.runs:
        console.print(certificate.runs, soft_wrap=True)
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
            values = [None] * schedule.count
            net.bind(schedule, values, (), inputs)
            for call in schedule.calls:
                progress.advance(task)
                began = now(device)
                try:
                    net.run_calls((call,), values)
                except (ValueError, TypeError, RuntimeError) as error:
                    raise net.failed(net.specs[call.key], error) from error
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


def verify(asked: Asked, console: Console) -> int:
    """Compare both nets. Returns 0 if every blob and every gradient agrees."""
    # In double, because in float a ReLU or a maximum near a tie may decide differently in the two runs.
    torch.set_default_dtype(torch.float64)
    ok, found = True, []
    for phase in [asked.phase] if asked.phase else ["TEST", "TRAIN"]:
        options = asked.options | {"phase": phase}
        with console.status(f"{phase}: loading"):
            # The fork's layers would win.
            known = {name: True for name in asked.needs if known_classes(name)}
            native = caffe_net(asked.prototxt, asked.weights or None, native=known, **options)
            unedited = caffe_net(asked.prototxt, None, native=False, **options)
            if not asked.weights:
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
