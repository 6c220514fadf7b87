"""Run a layer's code in every way that it has, and compare: one row of the table for each way."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import re
from collections.abc import Iterator

import torch
from torch import Tensor

from ...backends import CPU
from ...base import CaffeError
from ...caffe_files.parameters import Parameters
from ...runtime.cases import Draw, away_from_kinks
from . import unset
from .gradient import Checked, GradientCheck, flat, relative
from .guarded import guarded
from .probe import CODES, FLOATING, NoCode, Probe, facts_of
from .table import CRASHED, FAILED, NO_CODE, NO_GRADIENT, RIGHT, UNSURE, WRONG, Row
from .verify_inputs import (
    NOT_FINITE,
    Setting,
    called_after,
    candidates,
    counts,
    given_shapes,
    modules_of,
    settings_of_cases,
)

# Two ways may differ by this fraction of the largest value, or of 1.
ALIKE = {torch.float32: 1e-4, torch.float64: 1e-8}
# A fault of the layer's own code, which the guard of a call turns into an error (src/host/host_signals.h).
FAULT = re.compile("used memory that is not there|needs more stack than this thread has|divided by zero")
CHANGES = "a second call gives another result, so the gradient cannot be checked"
BY_C = "draws by the C library's rand(), random() or drand48(), whose seed is neither Caffe's nor torch's"
ADDS = "Forward adds to its top. Here the top starts at zero; in Caffe it starts with the previous result"
HELP = (
    "Give parameters as prototxt, PARAM='norm_param { eps: 0.1 }', and a shape for each bottom, several with blanks,"
    " SHAPES='2,3,6,5 2,1,1,1:label' (:label integers below the first bottom's channels,"
    " :roi rows of image, x1, y1, x2, y2; :prob numbers within (0, 1))."
    " propagate_down in PARAM, true or false once for each bottom, says whose gradients count."
)


class Verification:
    """Verifies the layer in one folder.

    Calls `send` with each result: ("row", Row) or ("say", text). Sends ("guessing", text) or ("running", text) before
    each step that may crash.

    Args:
        crashed: the guesses that ended an earlier process, and how it ended.
    """

    def __init__(self, package: str, layer: str, options, send, crashed: dict[str, str]):
        self.package, self.layer, self.options = package, layer, options
        self.send, self.crashed = send, crashed
        self.codes = [c for c in CODES if c.device == CPU or torch.cuda.is_available()]

    def run(self) -> None:
        for setting in self.settings():
            self.check(setting)

    # ------------------------------------------------------------------------------ what to run it on

    def settings(self):
        modules = modules_of(self.package, self.layer)
        if not modules:
            raise LookupError(
                f"{self.layer} is not a Caffe layer: its __init__.py does not call caffe_layer(...)"
            )
        covered = set()
        if not (self.options.param or self.options.shapes) and self.has_cases():
            cases = importlib.import_module(f"{self.package}.{self.layer}.cases").CASES
            for setting in settings_of_cases(cases, Draw, away_from_kinks):
                covered.add(setting.module.type_name)
                yield setting
        for type_name, module in modules.items():
            if type_name not in covered and (not self.options.type or type_name == self.options.type):
                yield from self.guess(type_name, module)

    def has_cases(self) -> bool:
        return importlib.util.find_spec(f"{self.package}.{self.layer}.cases") is not None

    def guess(self, type_name: str, module_class):
        """The first shapes, given or guessed, that SetUp and Forward accept."""
        refusals: dict[str, str] = {}  # the first setting that was refused, by reason
        try:
            module = module_class(self.options.param or None)
            facts, differentiable = facts_of(module)
        except (CaffeError, ValueError) as error:
            refusals[str(error)], shapes_to_try = type_name, []
        else:
            guesses = (candidates(count, called_after(type_name)) for count in counts(facts))
            given = given_shapes(self.options.shapes)
            shapes_to_try = [(module, shapes) for shapes in ([given] if given else itertools.chain(*guesses))]
            in_place = self.in_place(module_class, facts)
            shapes_to_try += [
                (in_place, shapes) for _, shapes in shapes_to_try if in_place and len(shapes) == 1
            ]
        for tried, shapes in shapes_to_try:
            smooth = [i >= len(differentiable) or differentiable[i] for i in range(len(shapes))]
            setting = Setting("", tried, [], None, smooth, not self.options.shapes).on(shapes)
            if tried is not module:
                setting.name += ", in place"
            if self.options.param:
                setting.name += f" with {self.options.param}"
            crash = self.crashed.get(setting.name)
            if crash and self.options.shapes:  # no guess: the user gave these shapes
                self.send("row", Row(type_name, "", "", verdict=CRASHED, remark=crash))
                return
            if not crash:
                self.send("guessing", setting.name)
            refusal = crash or self.why_refused(setting)
            if refusal and self.options.shapes and FAULT.search(refusal):
                self.send("row", Row(type_name, "", "", verdict=CRASHED, remark=refusal))
                return
            if refusal is None:
                if setting.guessed:
                    self.send("say", f"{self.layer}: guessed: {setting.name}")
                yield setting
                return
            refusals.setdefault(refusal, setting.name)
        details = [f"{label}: {text}" for text, label in list(refusals.items())[:4]]
        if fields := Parameters(module_class.layer.folder).describe(type_name):
            details.append(f"its parameters: {' '.join(fields.split())}")
        self.send("row", Row(type_name, "", "", remark="no shapes that it accepts", details=[*details, HELP]))

    def in_place(self, module_class, facts):
        """A module that works in place, for a layer that requires it; None if its numbers of bottoms and tops
        differ.
        """
        if 1 not in counts(facts) or facts.exact_num_top_blobs not in (-1, 1):
            return None
        with contextlib.suppress(CaffeError, ValueError):
            return module_class(self.options.param or None, bottom=("x",), top=("x",))
        return None

    def why_refused(self, setting: Setting) -> str | None:
        """Why the layer cannot run on these; None if it can."""
        reason = None
        for code in self.codes:
            try:
                bottoms = [guarded(b) for b in setting.bottoms]
                tops = Probe(setting.module, code, torch.float64, bottoms).run_forward()
            except NoCode as error:
                reason = reason or str(error)
            except (CaffeError, MemoryError) as error:
                return str(error)
            else:
                return None if flat(tops).isfinite().all() else NOT_FINITE
        return reason

    # ------------------------------------------------------------------------------------ one setting

    def check(self, setting: Setting) -> None:
        """Send the rows of one setting."""
        self.choose_blobs(setting)
        for row in self.rows(setting):
            self.send("row", row)

    def rows(self, setting: Setting) -> Iterator[Row]:
        for dtype in FLOATING:
            first = None
            for code in self.codes:
                row = Row(setting.name, code.label, str(dtype).removeprefix("torch.float"))
                row.dtype = {"32": "float", "64": "double"}[row.dtype]
                label = setting.name if setting.guessed else ""
                self.send("running", (f"{setting.name}: {code.label}, {row.dtype}", label))
                try:
                    first = self.fill_in(row, setting, code, dtype, first)
                except NoCode as error:
                    row.verdict, row.remark = NO_CODE, str(error)
                except (CaffeError, ValueError, RuntimeError) as error:
                    row.verdict, row.remark = FAILED, str(error)
                if row.verdict == WRONG and setting.is_doubtful:
                    row.verdict = UNSURE
                yield row

    def run_kernels_on_host(self, setting: Setting) -> None:
        """Run forward and backward once, in float."""
        self.choose_blobs(setting)
        code = next(c for c in self.codes if c.mode == "gpu" and c.device == CPU)
        with contextlib.suppress(NoCode, CaffeError):
            self.run_once(setting, code, torch.float32)

    def find_unset(self, setting: Setting) -> Iterator[tuple[str, object]]:
        """What to send if the layer reads a member that nothing has set: in other memory it computes another result."""
        self.choose_blobs(setting)
        for code in self.codes:
            if code.device != CPU:
                continue
            yield "running", (f"{setting.name}: {code.label}", "")
            with contextlib.suppress(NoCode, CaffeError):
                clear = self.results(setting, code, 0)
                if not all(self.is_same(clear, setting, code, byte) for byte in unset.OTHER):
                    said = unset.words(setting.module.layer.folder, setting.module.type_name)
                    yield "say", f"{setting.name}: {code.label}: {said}"
                    return

    def is_same(self, clear: list[Tensor], setting: Setting, code, memory: int) -> bool:
        try:
            return same(clear, self.results(setting, code, memory))
        except (NoCode, CaffeError):
            return False

    def results(self, setting: Setting, code, memory: int) -> list[Tensor]:
        """The tops and diffs of an object in memory of this byte."""
        probe = Probe(setting.module, code, torch.float64, setting.bottoms, setting.blobs, memory)
        wanted, _ = self.find_wanted(probe, setting)
        tops = probe.run_forward(wanted)
        diffs = probe.run_backward(random_like(tops), wanted, fill=0.0) if any(wanted) else []
        return [flat(tops), flat([d for d in diffs if d is not None])]

    def run_once(self, setting: Setting, code, dtype: torch.dtype) -> None:
        """Run forward, and backward for the tensors that get gradients."""
        probe = Probe(setting.module, code, dtype, setting.bottoms, setting.blobs)
        wanted, _ = self.find_wanted(probe, setting)
        probe.run_forward(wanted)
        self.run_backward(probe, wanted)

    def choose_blobs(self, setting: Setting) -> None:
        """The blobs for every way: the fillers' values, with noise on constants, which would hide mistakes."""
        if setting.blobs is not None:
            return
        for code in self.codes:
            try:
                blobs = Probe(setting.module, code, torch.float64, setting.bottoms).blobs
            except (NoCode, CaffeError):
                continue
            filled = [b.cpu() for b in blobs]
            generator = torch.Generator().manual_seed(1701)
            setting.blobs = [moved(b, generator) for b in filled]
            if self.refuses_blobs(setting, code):
                setting.blobs = filled
            return

    def refuses_blobs(self, setting: Setting, code) -> bool:
        """Does Forward fail with the setting's blobs, or return NaN or infinity?"""
        try:
            probe = Probe(setting.module, code, torch.float64, setting.bottoms, setting.blobs)
            return not flat(probe.run_forward()).isfinite().all()
        except NoCode:
            return False
        except CaffeError:
            return True

    def fill_in(self, row: Row, setting: Setting, code, dtype: torch.dtype, first):
        """Fill in the row of one way. Returns the result with which other rows of this dtype are compared."""
        probe = Probe(setting.module, code, dtype, setting.bottoms, setting.blobs)
        tops = probe.run_forward()
        found = {"forward": flat(tops)}
        row.details += [BY_C] * probe.draws_by_c
        draws = probe.draws or bool(first and first["draws"])
        if not alike(flat(probe.run_forward()), found["forward"], dtype):
            row.verdict, row.remark = NO_GRADIENT, CHANGES
            self.compare(row, found, first, dtype, draws)
            return first or found | {"draws": draws}
        adds = not alike(flat(probe.run_forward(before=tops)), found["forward"], dtype)
        wanted, refused = self.find_wanted(probe, setting) if tops else ([], ["it has no tops"])
        row.details += refused
        if any(wanted):
            probe.run_forward(wanted)
            diffs = probe.run_backward(random_like(tops), wanted, fill=0.0)
            found["backward"] = flat([d for d in diffs if d is not None])

            def finer():
                return Probe(setting.module, code, torch.float64, probe.bottoms, probe.blobs)

            judge(row, GradientCheck(probe, wanted, finer, self.options.seconds).run(), sum(wanted))
        else:
            row.verdict = NO_GRADIENT
            row.remark = refused[0] if refused else "no tensor that could have one"
            row.details = [BY_C] * probe.draws_by_c
        row.details += [ADDS] * adds
        if first is None:
            return found | {"verdict": row.verdict, "draws": draws}
        self.compare(row, found, first, dtype, draws)
        return first

    def find_wanted(self, probe, setting: Setting) -> tuple[list[bool], list[str]]:
        """The tensors whose gradients Backward computes, and a remark on the others."""
        count = len(probe.bottoms)
        asked = setting.module.propagate_down or [True] * count
        smooth = [*map(all, zip(setting.smooth, asked, strict=True)), *[True] * len(probe.blobs)]
        try:
            self.run_backward(probe, smooth)
            return smooth, []
        except NoCode as error:
            return [False] * len(smooth), [f"Backward: {error}"]
        except CaffeError as error:
            together = str(error)
        alone, refused = list(smooth), []
        for i in range(count):
            if smooth[i]:
                try:
                    self.run_backward(probe, [j == i for j in range(len(smooth))])
                except (NoCode, CaffeError) as error:
                    alone[i] = False
                    refused.append(f"no gradient for bottom {i}: {error}")
        try:
            if any(alone):
                self.run_backward(probe, alone)
            return alone, refused
        except (NoCode, CaffeError):
            return [False] * len(smooth), [together]

    def run_backward(self, probe, wanted: list[bool]) -> None:
        if any(wanted):
            tops = probe.run_forward(wanted)
            probe.run_backward(random_like(tops), wanted)

    def compare(self, row: Row, found: dict, first: dict | None, dtype: torch.dtype, draws: bool) -> None:
        """Write into the row how it differs from the first way, and which of the two is wrong by finite differences."""
        different = []
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
                different.append(column)
                row.details.append(
                    f"{column} differs from the first way's: {getattr(row, column)} > {ALIKE[dtype]:.0e}"
                )

        if first is not None and different and row.verdict != WRONG:
            row.verdict, row.remark = blamed(different, row.verdict, first.get("verdict"))


def blamed(different: list[str], own: str, firsts: str | None) -> tuple[str, str]:
    """The verdict and the remark of a way that differs from the first one, by both gradient checks."""
    differs = "it differs from the first way"
    if "forward" not in different and (own, firsts) == (RIGHT, WRONG):
        return RIGHT, f"{differs}; the first way is wrong"
    if (own, firsts) == (RIGHT, RIGHT) and "forward" in different:
        return WRONG, f"{differs}: two functions, and each Backward fits its own Forward"
    if (own, firsts) == (RIGHT, WRONG):
        return WRONG, f"{differs}: its Backward fits its own Forward, the first way's does not"
    return WRONG, differs


def judge(row: Row, checked: Checked, wanted: int) -> None:
    """Write the result of the gradient check into the row."""
    row.error = f"{checked.error:.1e}" + (" (sampled)" if checked.sampled else "")
    row.verdict, row.zero = WRONG if checked.wrong_count else RIGHT, checked.zero
    row.details += [*checked.notes, *map(str, checked.wrong)]
    if checked.wrong_count:
        row.remark = f"{checked.wrong_count} of {checked.checked} elements of the gradient"
    elif len(checked.without) == wanted:
        row.verdict, row.remark = NO_GRADIENT, "Backward writes no diff, and differences are 0"
    elif checked.zero:
        row.remark = "all zeros on these values"
    elif checked.adds:
        row.remark = "with diffs that start at zero, as in torch; Caffe does not clear them"
    elif checked.without:
        row.remark = f"Backward writes no diff for {' and '.join(checked.without)}, and differences are 0"
    elif checked.coarse:
        row.remark = "only with Caffe's step: it computes partly in float"


def alike(one: Tensor, other: Tensor, dtype: torch.dtype) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, ALIKE[dtype], ALIKE[dtype], equal_nan=True)


def same(ones: list[Tensor], others: list[Tensor]) -> bool:
    """Are these results the same ones, to the bit?"""
    return len(ones) == len(others) and all(
        one.shape == other.shape and torch.allclose(one, other, 0, 0, equal_nan=True)
        for one, other in zip(ones, others, strict=True)
    )


def moved(blob: Tensor, generator) -> Tensor:
    """A constant blob with noise. Signs stay and zeros become positive, as scales and thresholds may need."""
    if not blob.numel() or (blob != blob.flatten()[0]).any():
        return blob
    noise = torch.rand(blob.shape, generator=generator, dtype=torch.float64)
    return torch.where(blob == 0, noise, blob * (0.5 + noise))


def random_like(tops):
    generator = torch.Generator().manual_seed(7)
    return [
        torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device, t.dtype) for t in tops
    ]
