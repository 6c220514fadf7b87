"""Is a Caffe layer's gradient right? Its code is run in each way that exists, and compared.

    python tools/verify.py --layers-dir layers normalize           (make verify LAYER=normalize)
    python tools/verify.py --param 'norm_param { eps: 0.1 }' --shapes '2,3,6,5' normalize

The ways: the layer's own CPU code, its kernels on the host, its kernels on the GPU; each in float and in double. They
are compared with each other, and each one's Backward with central differences of its Forward, as Caffe's
GradientChecker does (verify_gradient.py says how), so that no reference is needed from anyone. What they are run on
comes from the layer's cases.py; a layer without one is run on shapes that are given (SHAPES) or guessed. Exits with 1
if a gradient is wrong, or two ways differ, or nothing could be run.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import logging
import multiprocessing
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.markup import escape  # noqa: E402
from rich.table import Table  # noqa: E402
from torch import Tensor  # noqa: E402
from verify_gradient import GradientCheck, flat, relative  # noqa: E402
from verify_inputs import (  # noqa: E402
    DATA,
    PROBABILITIES,
    Setting,
    Shape,
    candidates,
    counts,
    modules_of,
    settings_of_cases,
    values_of,
)
from verify_probe import CODES, FLOATING, NoCode, facts_of, probe_class  # noqa: E402

from layers._cases import load_package  # noqa: E402

# Two ways to compute the same may differ by so much of the largest value, or of 1.
ALIKE = {torch.float32: 1e-4, torch.float64: 1e-8}

RIGHT, NO_GRADIENT, NO_CODE, WRONG, FAILED = "right", "no gradient", "no code", "WRONG", "FAILED"
STYLES = {RIGHT: "green", NO_GRADIENT: "yellow", NO_CODE: "dim", WRONG: "bold red", FAILED: "bold red"}


@dataclass
class Row:
    """One line of the table: one setting, one code, one dtype."""

    setting: str
    code: str
    dtype: str
    forward: str = "-"
    backward: str = "-"
    error: str = "-"
    verdict: str = FAILED
    remark: str = ""
    details: list[str] = field(default_factory=list)


# --------------------------------------------------------------------------------------- one layer


class Verification:
    """Of one layer's folder. What comes of it is handed to `send`, line by line: ("row", Row), ("say", text), and
    ("guessing", text) or ("running", text) before anything that may end the process.

    Args:
        crashed: the guesses that ended an earlier process, and how.
    """

    def __init__(self, package: str, layer: str, options, send, crashed: dict[str, str]):
        self.package, self.layer, self.options, self.send, self.crashed = (
            package,
            layer,
            options,
            send,
            crashed,
        )
        self.Probe = probe_class(package)
        self.CaffeError = importlib.import_module(f"{package}._runtime").CaffeError
        self.codes = [c for c in CODES if c.device == "cpu" or torch.cuda.is_available()]

    def run(self) -> None:
        for setting in self.settings():
            self.setting(setting)

    # ------------------------------------------------------------------------------ what to run it on

    def settings(self):
        modules = modules_of(self.package, self.layer)
        if not modules:
            raise LookupError(
                f"{self.layer} is no Caffe layer: its __init__.py makes none by caffe_layer(...)"
            )
        covered = set()
        if not (self.options.param or self.options.shapes) and self.has_cases():
            tools = importlib.import_module(f"{self.package}._cases")
            cases = importlib.import_module(f"{self.package}.{self.layer}.cases").CASES
            for setting in settings_of_cases(cases, tools.Draw, tools.away_from_kinks):
                covered.add(setting.module.type_name)
                yield setting
        for type_name, module in modules.items():
            if type_name not in covered and (not self.options.type or type_name == self.options.type):
                yield from self.guess(type_name, module)

    def has_cases(self) -> bool:
        return importlib.util.find_spec(f"{self.package}.{self.layer}.cases") is not None

    def guess(self, type_name: str, module_class):
        """The first of the given shapes, or of those that are likely, that SetUp and Forward accept."""
        try:
            module = module_class(self.options.param or None)
            facts, differentiable = facts_of(module)
        except self.CaffeError as error:
            self.send("row", Row(type_name, "", "", remark=str(error), details=[HELP]))
            return
        if self.options.shapes:
            trials = [[Shape.parse(text) for text in self.options.shapes.split()]]
        else:
            trials = [shapes for count in counts(facts) for shapes in candidates(count)]
        refusals: dict[str, str] = {}
        for shapes in trials:
            label = f"{type_name} on " + (" ".join(map(str, shapes)) or "no bottoms")
            if label in self.crashed:
                refusals.setdefault(self.crashed[label], label)
                continue
            self.send("guessing", label)
            values = values_of(shapes)
            smooth = [
                shape.kind in (DATA, PROBABILITIES) and (i >= len(differentiable) or differentiable[i])
                for i, shape in enumerate(shapes)
            ]
            setting = Setting(label, module, values, None, smooth)
            refusal = self.refusal(setting)
            if refusal is None:
                if not self.options.shapes:
                    self.send(
                        "say",
                        f"{self.layer}: guessed: {label}" + (f" ({module})" if self.options.param else ""),
                    )
                yield setting
                return
            refusals.setdefault(refusal, label)
        details = [f"{label}: {text}" for text, label in list(refusals.items())[:4]]
        self.send("row", Row(type_name, "", "", remark="no shapes that it takes", details=[*details, HELP]))

    def refusal(self, setting: Setting) -> str | None:
        """Why it cannot be run on these; None if it can."""
        reason = None
        for code in self.codes:
            try:
                tops = self.Probe(setting.module, code, torch.float64, setting.bottoms).run_forward()
            except NoCode as error:
                reason = reason or str(error)
            except (self.CaffeError, MemoryError) as error:
                return str(error)
            else:
                return None if flat(tops).isfinite().all() else "Forward gives NaN or infinity"
        return reason

    # ------------------------------------------------------------------------------------ one setting

    def setting(self, setting: Setting) -> None:
        self.choose_blobs(setting)
        for dtype in FLOATING:
            first = None
            for code in self.codes:
                row = Row(setting.name, code.label, str(dtype).removeprefix("torch.float"))
                row.dtype = {"32": "float", "64": "double"}[row.dtype]
                self.send("running", f"{setting.name}: {code.label}, {row.dtype}")
                try:
                    first = self.code(setting, code, dtype, row, first)
                except NoCode as error:
                    row.verdict, row.remark = NO_CODE, str(error)
                except (self.CaffeError, ValueError, RuntimeError) as error:
                    row.verdict, row.remark = FAILED, str(error)
                self.send("row", row)

    def choose_blobs(self, setting: Setting) -> None:
        """The same for every way: as the fillers left them, but for constants, which hide mistakes."""
        if setting.blobs is not None:
            return
        for code in self.codes:
            try:
                blobs = self.Probe(setting.module, code, torch.float64, setting.bottoms).blobs
            except (NoCode, self.CaffeError):
                continue
            filled = [b.cpu() for b in blobs]
            generator = torch.Generator().manual_seed(1701)
            setting.blobs = [moved(b, generator) for b in filled]
            if self.refusal_of_blobs(setting, code):
                setting.blobs = filled
            return

    def refusal_of_blobs(self, setting: Setting, code) -> bool:
        try:
            probe = self.Probe(setting.module, code, torch.float64, setting.bottoms, setting.blobs)
            return not flat(probe.run_forward()).isfinite().all()
        except NoCode:
            return False
        except self.CaffeError:
            return True

    def code(self, setting: Setting, code, dtype: torch.dtype, row: Row, first):
        """Fill in a row; return what this dtype's other rows are compared with."""
        probe = self.Probe(setting.module, code, dtype, setting.bottoms, setting.blobs)
        tops = probe.run_forward()
        found = {"forward": flat(tops)}
        wanted, refused = self.wanted(probe, setting) if tops else ([], ["it has no tops"])
        row.details += refused
        if any(wanted):
            probe.run_forward(wanted)
            diffs = probe.run_backward(random_like(tops), wanted)
            found["backward"] = flat([d for d in diffs if d is not None])

            def finer():
                return self.Probe(setting.module, code, torch.float64, probe.bottoms, probe.blobs)

            checked = GradientCheck(probe, wanted, finer).run()
            row.error = f"{checked.error:.1e}" + (" (sampled)" if checked.sampled else "")
            row.verdict = WRONG if checked.wrong_count else RIGHT
            row.details += [*checked.notes, *map(str, checked.wrong)]
            if checked.wrong_count:
                row.remark = f"{checked.wrong_count} of {checked.checked} elements of the gradient"
            elif checked.coarse:
                row.remark = "at Caffe's step only: it computes partly in float"
            elif checked.zero:
                row.remark = "all zeros on these values"
        else:
            row.verdict = NO_GRADIENT
            row.remark = refused[0] if refused else "nothing that it could have one for"
            row.details.clear()
        self.compare(row, found, first, dtype, probe.draws)
        return first or found

    def wanted(self, probe, setting: Setting) -> tuple[list[bool], list[str]]:
        """Whose gradients Backward computes, and what it says of the others."""
        count = len(probe.bottoms)
        asked = setting.module.propagate_down or [True] * count
        smooth = [*map(all, zip(setting.smooth, asked, strict=True)), *[True] * len(probe.blobs)]
        try:
            self.backward(probe, smooth)
            return smooth, []
        except NoCode as error:
            return [False] * len(smooth), [f"Backward: {error}"]
        except self.CaffeError as error:
            together = str(error)
        alone, refused = list(smooth), []
        for i in range(count):
            if smooth[i]:
                try:
                    self.backward(probe, [j == i for j in range(len(smooth))])
                except (NoCode, self.CaffeError) as error:
                    alone[i] = False
                    refused.append(f"no gradient for bottom {i}: {error}")
        try:
            if any(alone):
                self.backward(probe, alone)
            return alone, refused
        except (NoCode, self.CaffeError):
            return [False] * len(smooth), [together]

    def backward(self, probe, wanted: list[bool]) -> None:
        if any(wanted):
            tops = probe.run_forward(wanted)
            probe.run_backward(random_like(tops), wanted)

    def compare(self, row: Row, found: dict, first: dict | None, dtype: torch.dtype, draws: bool) -> None:
        for column in ("forward", "backward"):
            if first is None or column not in found or column not in first:
                continue
            if draws:
                setattr(row, column, "random")
                continue
            one, other = found[column], first[column]
            if one.shape != other.shape:
                setattr(row, column, "another shape")
                error = float("inf")
            else:
                scale = max(1.0, other.abs().max().item()) if other.numel() else 1.0
                error = relative(one / scale, other / scale).max().item() if one.numel() else 0.0
                setattr(row, column, f"{error:.1e}")
            if error > ALIKE[dtype]:
                row.verdict = WRONG
                row.details.append(
                    f"{column} differs from the first code's: {getattr(row, column)} > {ALIKE[dtype]:.0e}"
                )


def moved(blob: Tensor, generator) -> Tensor:
    """A constant blob with noise. The sign stays, and zeros become positive: scales and thresholds may need it."""
    if not blob.numel() or (blob != blob.flatten()[0]).any():
        return blob
    noise = torch.rand(blob.shape, generator=generator, dtype=torch.float64)
    return torch.where(blob == 0, noise, blob * (0.5 + noise))


def random_like(tops):
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device, t.dtype) for t in tops
    ]


HELP = (
    "Give parameters as prototxt, PARAM='norm_param { eps: 0.1 }', and a shape for each bottom,"
    " SHAPES='2,3,6,5 2,1,1,1:label' (:label integers below the first bottom's channels,"
    " :roi rows of image, x1, y1, x2, y2; :prob numbers within (0, 1)). propagate_down in PARAM, true or false once for"
    " each bottom, says whose gradients count."
)

# ------------------------------------------------------------------------------------------- processes

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PATIENCE = 30  # seconds for a guess: on what it was not written for, a layer may run in circles


def in_child(pipe, layers_dir: Path, layer: str, options, crashed: dict[str, str]) -> None:
    def send(kind: str, value) -> None:
        pipe.send((kind, value))

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # or a layer's endless loop would outlive us
    logging.getLogger("caffe").setLevel(logging.CRITICAL)
    torch.set_num_threads(1)  # all is tiny
    try:
        Verification(load_package(layers_dir), layer, options, send, crashed).run()
    except Exception as error:
        send("row", Row(layer, "", "", remark=f"{type(error).__name__}: {error}"))
    pipe.close()


def verify(layers_dir: Path, layer: str, options) -> list[Row]:
    """In a process of its own: code that was written for other shapes may crash. Such a guess is then left out."""
    crashed: dict[str, str] = {}
    while True:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=in_child, args=(theirs, layers_dir, layer, options, crashed))
        child.start()
        theirs.close()
        rows, said, doing, what, slow = [], [], "", layer, False
        while True:
            if doing == "guessing" and not ours.poll(PATIENCE):
                slow = True
                child.kill()
                break
            try:
                kind, value = ours.recv()
            except EOFError:
                break
            if kind == "row":
                rows.append(value)
            elif kind == "say":
                said.append(value)
            else:
                doing, what = kind, value
        child.join()
        if child.exitcode == 0 or doing == "running":
            print(*said, sep="\n", end="\n" * bool(said))
        if child.exitcode == 0:
            return rows
        number = -child.exitcode
        end = f"its process ended by {signal.Signals(number).name if number > 0 else f'exit status {child.exitcode}'}"
        if doing != "guessing" or what in crashed:
            return [*rows, Row(what, "", "", remark=end)]
        crashed[what] = f"no end after {PATIENCE} s" if slow else end


# ----------------------------------------------------------------------------------------------- main


def show(console: Console, layer: str, rows: list[Row]) -> None:
    table = Table(title=layer, title_justify="left", title_style="bold")
    for column, style in (("on", "cyan"), ("code", ""), ("dtype", "")):
        table.add_column(column, style=style, overflow="fold")
    for column in ("forward vs first", "backward vs first", "gradient error", "verdict"):
        table.add_column(column)
    before = None
    for row in rows:
        name, before = ("" if row.setting == before else row.setting), row.setting
        verdict = f"[{STYLES[row.verdict]}]{row.verdict}[/]" + (
            f": {escape(row.remark)}" if row.remark else ""
        )
        table.add_row(escape(name), row.code, row.dtype, row.forward, row.backward, row.error, verdict)
    console.print(table)
    for row in rows:
        for detail in row.details:
            console.print(
                f"  {row.setting}: {row.code}, {row.dtype}: {detail}",
                markup=False,
                emoji=False,
                highlight=False,
            )


def closing(layer: str, rows: list[Row]) -> bool:
    """One line; whether all is well."""
    bad = [r for r in rows if r.verdict in (WRONG, FAILED)]
    ran = [r for r in rows if r.verdict != NO_CODE]
    right = [r for r in rows if r.verdict == RIGHT]
    if bad or not ran:
        what = "could not be run in any way"
        if any(r.verdict != FAILED for r in ran):
            what = f"wrong in {len(bad)} of {len(ran)} ways"
        print(f"{layer}: {what}")
        return False
    print(
        f"{layer}: gradient right in {len(right)} ways"
        if right
        else f"{layer}: no gradient to check; the ways agree"
    )
    return True


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers-dir", type=Path, default=ROOT / "layers")
    parser.add_argument("--param", default="", help="the layer's parameters as prototxt")
    parser.add_argument("--shapes", default="", help="one a bottom: '2,3,6,5 2,1,1,1:label'")
    parser.add_argument("--type", default="", help="of several that the folder makes")
    parser.add_argument("layers", nargs="+")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    good = True
    for layer in options.layers:
        rows = verify(options.layers_dir.resolve(), layer, options)
        show(console, layer, rows)
        good &= closing(layer, rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
