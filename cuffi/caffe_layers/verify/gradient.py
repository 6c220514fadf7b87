"""Caffe's gradient check: compare Backward with central differences of Forward.

There are two kinds of objectives, as in Caffe's GradientChecker: 2 * top[j] for each element of the tops, and half the
sum of the squares of all elements. The factor 2 catches a layer that ignores the top's diff.

The differences for one input element serve all objectives, so Forward runs twice for each input element, and not twice
for each pair of input and output.

Backward may never write a bottom's diff, as for a label or a mask. Torch then gets the gradient 0, which is right if
all differences are exactly 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

# (step, threshold): |computed - estimated| <= threshold * max(|computed|, |estimated|, 1). The first pair is Caffe's;
# those for double are much finer. An input that fails is tried again with the next pairs: a smaller step may avoid a
# kink or a curve, but a wrong gradient is wrong with every step.
STEPS = {
    torch.float32: ((1e-2, 1e-3), (1e-3, 1e-3)),
    torch.float64: ((1e-4, 1e-5), (1e-5, 1e-5), (1e-6, 1e-5)),
}
# The last try in double, for a layer that computes partly in float.
COARSE = (1e-2, 1e-3)

# About how many seconds a check may take; kernels with barriers take milliseconds per call on the host. A check ends
# after twice this time, but not before it has tried one input of each tensor, or found a wrong one.
SECONDS = 2.0
MOST_INPUTS, MOST_OUTPUTS, LEAST = 1500, 400, 16


@dataclass
class Wrong:
    """One element of a gradient that differs from the differences."""

    tensor: str
    index: tuple[int, ...]
    value: float
    objective: str
    computed: float
    estimated: float

    def __str__(self) -> str:
        return (
            f"{self.tensor}{list(self.index)} = {self.value:.6g}: Backward says {self.computed:.6g}, "
            f"differences say {self.estimated:.6g} (objective: {self.objective})"
        )


@dataclass
class Checked:
    """The result of one check."""

    error: float = 0.0  # the largest |computed - estimated| / max(|computed|, |estimated|, 1)
    checked: int = 0
    coarse: bool = False  # right with Caffe's step, wrong with finer ones
    zero: bool = False  # the whole gradient is 0
    sampled: bool = False
    # Backward adds to a bottom's diff, or leaves a part unwritten. Caffe does not clear diffs before, torch does.
    adds: bool = False
    # Tensors whose diffs Backward never writes, and whose differences are 0.
    without: list[str] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    wrong_count: int = 0
    notes: list[str] = field(default_factory=list)


def flat(tensors: list[Tensor]) -> Tensor:
    """All elements of the tensors, as one row of doubles on the CPU."""
    return torch.cat([t.detach().double().cpu().flatten() for t in tensors]) if tensors else torch.zeros(0)


def relative(computed: Tensor, estimated: Tensor) -> Tensor:
    scale = torch.stack([computed.abs(), estimated.abs(), torch.ones_like(computed)]).amax(0)
    error = (computed - estimated).abs() / scale
    return torch.where(error.isfinite(), error, torch.inf)


def sample(count: int, most: int, telling: Tensor) -> list[int]:
    """Up to `most` of `count` positions. The first half are preferred ones, if there are so many."""
    if count <= most:
        return list(range(count))
    generator = torch.Generator().manual_seed(1701)
    order = torch.randperm(count, generator=generator)
    first = order[telling.cpu()[order]][: most // 2]  # no loop, because there may be millions
    return list(dict.fromkeys(first.tolist() + order[:most].tolist()))[:most]


class GradientCheck:
    """The check of one probe.

    Args:
        probe: a layer object; see probe.py.
        wanted: for each bottom, then each blob, whether to check its gradient.
        finer: makes the same probe in double. A check in float, where differences are coarse, tries it last.
        seconds: about how long it may take.
    """

    def __init__(
        self,
        probe,
        wanted: list[bool],
        finer: Callable | None = None,
        seconds: float = SECONDS,
    ):
        self.probe, self.wants_gradient, self.finer, self.seconds = probe, wanted, finer, seconds
        self.end = time.perf_counter() + 2 * seconds
        values = probe.bottoms + probe.blobs
        self.names = [f"bottom {i}" for i in range(len(probe.bottoms))] + [
            f"blob {i}" for i in range(len(probe.blobs))
        ]
        self.values = values
        self.dtype = values[0].dtype if values else torch.float32
        self.shapes = [t.shape for t in probe.run_forward()]
        self.tops = flat(probe.tops)
        total = sum(v.numel() for v, want in zip(values, wanted, strict=True) if want)
        inputs, outputs, least, diffs = self.affordable()
        self.outputs = sample(len(self.tops), outputs, self.tops != 0)
        places = [
            (turn, i, e)
            for i, (v, want) in enumerate(zip(values, wanted, strict=True))
            if want
            for turn, e in enumerate(
                sample(v.numel(), max(least, v.numel() * inputs // max(total, 1)), diffs[i].flatten() != 0)
            )
        ]
        # The tensors take turns, so that each is tried before the time is over.
        self.inputs = [(i, e) for _, i, e in sorted(places)]
        # The bottoms whose diffs were not written so far.
        self.unwritten = {i for i in range(len(probe.bottoms)) if wanted[i]}
        self.sampled = len(self.inputs) < total or len(self.outputs) < len(self.tops)

    def affordable(self) -> tuple[int, int, int, dict[int, Tensor]]:
        """How many inputs to vary, and outputs to go back from, one by one; how many of both at least; the
        wanted diffs of one Backward.
        """
        start = time.perf_counter()
        tops = self.probe.run_forward(self.wants_gradient)
        forward = time.perf_counter() - start
        diffs = self.probe.run_backward(tops, self.wants_gradient)
        both = time.perf_counter() - start
        inputs, outputs = self.seconds / 2 / (2 * forward), self.seconds / 2 / both
        least = round(LEAST * min(1.0, self.seconds / SECONDS))
        least = max(1, min(least, int(self.seconds / both)))  # at least one, even if the layer is slow
        return (
            max(least, min(MOST_INPUTS, int(inputs))),
            max(least, min(MOST_OUTPUTS, int(outputs))),
            least,
            {i: diff for i, diff in enumerate(diffs) if diff is not None},
        )

    # ------------------------------------------------------------------------------- gradients by Backward

    def computed(self, fill: float = 3.0) -> Tensor:
        """A row for each input, a column for each objective; the last one is the sum of squares."""
        columns = []
        for j in self.outputs:
            diff = torch.zeros_like(self.tops)
            diff[j] = 2.0
            columns.append(self.backward(diff, fill))
        columns.append(self.backward(None, fill))
        return torch.stack(columns, 1)

    def backward(self, top_diff: Tensor | None, fill: float) -> Tensor:
        tops = self.probe.run_forward(self.wants_gradient)
        if top_diff is None:
            diffs = [t.clone() for t in tops]
        else:
            pieces = top_diff.split([s.numel() for s in self.shapes])
            diffs = [
                p.view(s).to(t.device, t.dtype) for p, s, t in zip(pieces, self.shapes, tops, strict=True)
            ]
        computed = enumerate(self.probe.run_backward(diffs, self.wants_gradient, fill))
        found = {i: flat([d]) for i, d in computed if d is not None}
        self.unwritten = {i for i in self.unwritten if found[i].eq(fill * (i + 1)).all()}
        return torch.stack([found[i][e] for i, e in self.inputs]) if self.inputs else torch.zeros(0)

    # ---------------------------------------------------------------------------- gradients by differences

    def estimated(self, probe, i: int, e: int, step: float) -> Tensor:
        """The row of one input element."""
        values = (probe.bottoms + probe.blobs)[i].view(-1)
        before = values[e].item()
        rows, places = [], []
        for side in (step, -step):
            values[e] = before + side
            places.append(values[e].item())  # the value after rounding
            rows.append(flat(probe.run_forward()))
        values[e] = before
        width = places[0] - places[1]
        row = 2 * (rows[0] - rows[1])[self.outputs]
        squares = (rows[0].square().sum() - rows[1].square().sum()) / 2
        return torch.cat([row, squares[None]]) / width

    # -------------------------------------------------------------------------------------------- check

    def run(self) -> Checked:
        found = Checked(sampled=self.sampled)
        if not self.inputs or not len(self.tops):
            return found
        computed = self.computed()
        found.adds = self.accumulates(computed)
        if found.adds:
            found.notes.append(
                "adds to a diff, or leaves a part unwritten: torch clears it before, Caffe does not"
            )
            computed = self.computed(fill=0.0)
        for row, (i, _) in enumerate(self.inputs):
            if i in self.unwritten:
                computed[row] = 0
        seen, refuted = set(), set()
        for row, (i, e) in enumerate(self.inputs):
            if time.perf_counter() > self.end and (found.wrong_count or i in seen):
                found.sampled, computed = True, computed[:row]
                break
            seen.add(i)
            if self.check_input(found, i, e, computed[row]):
                refuted.add(i)
        found.without = [self.names[i] for i in sorted(self.unwritten & seen - refuted)]
        found.notes += [
            f"leaves the diff of {self.names[i]} as it was" for i in sorted(self.unwritten & refuted)
        ]
        found.checked, found.zero = computed.numel(), not computed.any()
        return found

    def accumulates(self, computed: Tensor) -> bool:
        """Does the diff after Backward depend on its value before, although Backward writes to it?"""
        other = self.backward(None, -5.0)
        differs = relative(other, computed[:, -1]) > 1e-3
        return any(differs[row] for row, (i, _) in enumerate(self.inputs) if i not in self.unwritten)

    def attempts(self) -> Iterator[tuple]:
        """(probe, step, threshold), one after the other, for an input that failed with the ones before."""
        yield from ((self.probe, *step) for step in STEPS[self.dtype])
        if self.dtype == torch.float64:
            yield self.probe, *COARSE
        elif self.finer:
            if callable(self.finer):
                self.finer = self.finer()
            yield from ((self.finer, step, STEPS[self.dtype][0][1]) for step, _ in STEPS[torch.float64])

    def check_input(self, found: Checked, i: int, e: int, computed: Tensor) -> bool:
        """Is the gradient of this input wrong?"""
        best = None
        for probe, step, threshold in self.attempts():
            threshold = 0.0 if i in self.unwritten else threshold
            estimate = self.estimated(probe, i, e, step)
            errors = relative(computed, estimate)
            if best is None or errors.max() < best[0].max() or errors.max() <= threshold:
                best = errors, estimate, threshold
            if errors.max() <= threshold:
                found.coarse |= self.dtype == torch.float64 and step == COARSE[0]
                break
        assert best is not None  # there is an attempt
        errors, estimate, threshold = best
        found.error = max(found.error, errors.max().item())
        wrong = (errors > threshold).nonzero().flatten().tolist()
        for at in wrong:
            found.wrong_count += 1
            if len(found.wrong) < 3:
                self.note(found, i, e, at, computed[at].item(), estimate[at].item())
        return bool(wrong)

    def note(self, found: Checked, i: int, e: int, at: int, computed: float, estimated: float) -> None:
        value = self.values[i]
        index = (
            tuple(int(n) for n in torch.unravel_index(torch.tensor(e), value.shape)) if value.dim() else ()
        )
        objective = (
            "half the sum of squares"
            if at == len(self.outputs)
            else f"2 * {self.output_name(self.outputs[at])}"
        )
        wrong = Wrong(self.names[i], index, value.flatten()[e].item(), objective, computed, estimated)
        found.wrong.append(wrong)

    def output_name(self, j: int) -> str:
        for number, shape in enumerate(self.shapes):
            if j < shape.numel():
                index = [int(n) for n in torch.unravel_index(torch.tensor(j), shape)] if len(shape) else []
                return f"top {number}{index}"
            j -= shape.numel()
        raise IndexError(j)
