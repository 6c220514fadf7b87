"""The inputs for verifying a layer: its cases, or else given or guessed parameters and shapes."""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

# The most elements of an input that is checked element by element.
MOST_ELEMENTS = 1500
# The most shapes that are tried because a failed CHECK names a size.
MOST_FITTED = 40


@dataclass
class Setting:
    """A module and its inputs, in double on the CPU."""

    name: str
    module: torch.nn.Module
    bottoms: list[Tensor]
    blobs: list[Tensor] | None = None  # None: the layer's fillers fill them
    # For each bottom: may its values be varied? Labels may not.
    smooth: list[bool] = field(default_factory=list)
    guessed: bool = False
    # Were the layer's parameters guessed, too?
    invented: bool = False
    # The shapes of guessed bottoms.
    shapes: list[Shape] = field(default_factory=list)

    @property
    def is_doubtful(self) -> bool:
        """Were parameters guessed, or bottoms of several shapes, whose meaning only the layer knows?"""
        return self.guessed and (self.invented or len({b.shape for b in self.bottoms}) > 1)

    def on(self, shapes: list[Shape]) -> Setting:
        """The same module on other bottoms."""
        varied = [smooth and shape.kind in VARIED for smooth, shape in zip(self.smooth, shapes, strict=True)]
        name = f"{self.module.type_name} on {text_of(shapes)}"
        return replace(self, name=name, bottoms=values_of(shapes), blobs=None, smooth=varied, shapes=shapes)


# ------------------------------------------------------------------------------------------- cases


def settings_of_cases(cases, draw, away_from_kinks) -> Iterator[Setting]:
    """Each case with its first small input, for each number of bottoms. The suite runs the other inputs."""
    for case in cases:
        if not case.is_caffe:
            continue
        inputs = {label: inputs(draw()) for label, inputs in case.inputs.items()}
        sizes = {k: sum(a.numel() for a in v if isinstance(a, Tensor)) for k, v in inputs.items()}
        small = [label for label, size in sizes.items() if size <= MOST_ELEMENTS] or [
            min(sizes, key=sizes.get)
        ]
        by_count = {len(inputs[label]): label for label in reversed(small)}
        for label in reversed(by_count.values()):
            bottoms, blobs = case.function.bottoms_and_blobs(away_from_kinks(inputs[label], case.kinks))
            yield Setting(
                f"{case.name}, {label}",
                case.function.make(),
                [b.detach() for b in bottoms],
                [b.detach() for b in blobs.values()] or None,
                [b.is_floating_point() and case.gradient != "none" for b in bottoms],
            )


# ----------------------------------------------------------------------------------------- guesses

DATA, LABEL, REGIONS, PROBABILITIES, MASK = "", "label", "roi", "prob", "mask"
ONE_HOT, SHARES = "onehot", "shares"
KINDS = (LABEL, REGIONS, PROBABILITIES, MASK, ONE_HOT, SHARES)
# May be labels: bottoms that count as such if Backward gives them no gradient.
LABELS = (ONE_HOT, SHARES)
# The values of the others are not varied.
VARIED = (DATA, PROBABILITIES, *LABELS)
NOT_FINITE = "Forward gives NaN or infinity"


@dataclass(frozen=True)
class Shape:
    """A bottom's shape and the kind of its values.

    Kinds: any numbers; labels; regions (image, x1, y1, x2, y2); numbers in (0, 1); the mask of a 2x2 max pooling, which
    holds positions in a plane of twice the height and width; among the channels a single 1, and zeros; positive
    numbers, which the channels share: they add up to 1.
    """

    sizes: tuple[int, ...]
    kind: str = DATA

    def __str__(self) -> str:
        return ",".join(map(str, self.sizes)) + (f":{self.kind}" if self.kind else "")

    @classmethod
    def parse(cls, text: str) -> Shape:
        sizes, _, kind = text.partition(":")
        if kind and kind not in KINDS:
            raise ValueError(
                f"SHAPES: {text}: after the colon stands one of {', '.join(KINDS)}, not {kind!r}"
            )
        try:
            found = cls(tuple(int(s) for s in sizes.split(",") if s), kind)
        except ValueError:
            raise ValueError(
                f"SHAPES: {text}: expected sizes, as in 2,3,6,5 or 2,1,1,1:label or 5,5:roi"
            ) from None
        if kind == MASK and len(found.sizes) != 4:
            raise ValueError(f"SHAPES: {text}: a pooling's mask has four sizes, as in 2,3,6,5:mask")
        if kind == REGIONS and math.prod(found.sizes[1:]) != 5:
            raise ValueError(
                f"SHAPES: {text}: a region is five numbers, image, x1, y1, x2, y2, as in 4,5:roi"
            )
        return found

    def values(self, generator: torch.Generator, first: Shape) -> Tensor:
        if self.kind == LABEL:
            classes = first.sizes[1] if len(first.sizes) > 1 else 2
            return torch.randint(max(classes, 1), self.sizes, generator=generator).double()
        if self.kind == REGIONS:
            images, height, width = first.sizes[0], *(first.sizes[2:] if len(first.sizes) == 4 else (8, 8))
            count = self.sizes[0]
            corners = torch.rand(count, 2, 2, generator=generator, dtype=torch.float64).sort(1).values
            corners = (corners * torch.tensor([width, height])).floor().view(count, 4)
            image = torch.randint(images, (count, 1), generator=generator).double()
            return torch.cat([image, corners], 1).view(self.sizes)
        if self.kind == MASK:
            height, width = self.sizes[2:]
            corner = torch.randint(2, (2, *self.sizes), generator=generator)
            rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
            return ((2 * rows + corner[0]) * 2 * width + 2 * columns + corner[1]).double()
        values = torch.randn(self.sizes, generator=generator, dtype=torch.float64)
        channels = min(1, values.dim() - 1)
        if self.kind == ONE_HOT:
            return (values == values.amax(channels, keepdim=True)).double()
        if self.kind == SHARES:
            return values.softmax(channels)
        return values.sigmoid() if self.kind == PROBABILITIES else values


SQUARE = Shape((2, 4, 6, 6))
USUAL = Shape((2, 3, 6, 5))
FLAT = Shape((5, 4))


def candidates(count: int, first: str = DATA) -> Iterator[list[Shape]]:
    """Shapes to try for this many bottoms. Those with bottoms of the kind `first` come first."""
    if count == 0:
        yield []
        return
    if first == MASK and count > 1:
        for base in (USUAL, SQUARE):
            yield [base] * (count - 1) + [replace(base, kind=MASK)]
    if first == REGIONS and count > 1:
        for regions in (Shape((5, 5), REGIONS), Shape((5, 5, 1, 1), REGIONS)):
            for base in (USUAL, SQUARE, Shape((2, 18, 9, 9))):
                yield [base] * (count - 1) + [regions]
                if count > 2:
                    yield [base] + [regions] + [base] * (count - 2)
    for base in (USUAL, SQUARE, FLAT):
        yield [base] * count
    for base in (USUAL, SQUARE, FLAT):
        num, dense = base.sizes[0], (base.sizes[0], 1, *base.sizes[2:])
        lasts = [Shape((num,), LABEL), Shape((num, 1, 1, 1), LABEL), Shape((num, 1), LABEL)]
        if len(base.sizes) == 4:
            lasts += [Shape(dense, LABEL), Shape(dense), Shape((5, 5), REGIONS), Shape((5, 5, 1, 1), REGIONS)]
        lasts += [Shape((num,)), Shape((num, base.sizes[1])), Shape((base.sizes[1],)), Shape((1,))]
        for last in lasts:
            if count > 1:
                yield [base] * (count - 1) + [last]
        for last in lasts:
            if count > 2:
                yield [base] + [last] * (count - 1)
    yield [Shape((1, 1))] * count
    yield [Shape((1, 4, 1, 4))] * count


def relatives(shapes: list[Shape]) -> Iterator[list[Shape]]:
    """The bottoms of a loss of probabilities, of one with labels of 0 and 1 or that add up to 1, and of one without a
    plane: for a layer that is not made for arbitrary numbers, or not for these shapes.
    """
    if any(shape.kind not in (DATA, PROBABILITIES) for shape in shapes):
        return
    shapes = [replace(shape, kind=DATA) for shape in shapes]
    yield [replace(shape, kind=PROBABILITIES) for shape in shapes]
    if len(shapes) == 1:
        return
    for first, others in itertools.product((DATA, PROBABILITIES), LABELS):
        yield [replace(shapes[0], kind=first), *(replace(shape, kind=others) for shape in shapes[1:])]
    if all(len(shape.sizes) == 4 for shape in shapes):
        flat = [FLAT] * len(shapes)
        yield flat
        yield from relatives(flat)


def trials(counts: list[int], first: str, refused: list[tuple[list[Shape], str]]) -> Iterator[list[Shape]]:
    """Shapes to try, one after the other. To `refused` the caller adds those that the layer refuses, and why.

    Those that give no number are tried with other values. If all are refused, those with the sizes that the failed
    CHECKs name come next.
    """
    for shapes in itertools.chain.from_iterable(candidates(count, first) for count in counts):
        yield shapes
        if refused and refused[-1] == (shapes, NOT_FINITE):
            yield from relatives(shapes)
    tried: list[list[Shape]] = []
    for shapes, why in refused:  # what is refused in here comes to its turn, too
        better = fitted(shapes, why)
        if better and better not in tried and len(tried) < MOST_FITTED:
            tried.append(better)
            yield better


def fitted(shapes: list[Shape], refusal: str) -> list[Shape] | None:
    """The shapes with the size that a failed CHECK names: bottom[1]->channels() == 2 (3 vs. 2)."""
    failed = re.search(r"Check failed: (.*?) (?:==|>=|<=) (.*?) \((\d+) vs\. (\d+)\)", refusal)
    if not failed:
        return None
    left, right, of_left, of_right = failed.groups()
    for side, wanted in ((right, of_left), (left, of_right)):
        named = re.fullmatch(r"bottom\[(\d+)\]->(\w+)\((\d*)\)", side)
        if named and int(named[1]) < len(shapes):
            bottom = int(named[1])
            sizes = resized(shapes[bottom].sizes, named[2], named[3], int(wanted))
            if sizes and 0 < math.prod(sizes) <= MOST_ELEMENTS:
                return [replace(s, sizes=sizes) if i == bottom else s for i, s in enumerate(shapes)]
    return None


def resized(sizes: tuple[int, ...], function: str, axis: str, wanted: int) -> tuple[int, ...] | None:
    """The sizes for which Blob's function gives what is wanted; None for another function."""
    if function == "num_axes":
        return (*sizes, *[2] * wanted)[:wanted]
    legacy = ["num", "channels", "height", "width"]
    if function in legacy:
        axis = str(legacy.index(function))
    elif function != "shape" or not axis:
        return None
    at = int(axis)
    longer = [*sizes, *[1] * (at + 1 - len(sizes))]
    longer[at] = wanted
    return tuple(longer)


def called_after(type_name: str) -> str:
    """The kind of bottom that a layer's name suggests."""
    for kind, words in ((REGIONS, r"roi|region|rpn|proposal"), (MASK, r"un_?pool|de_?pool|up_?sampl|mask")):
        if re.search(words, type_name, re.IGNORECASE):
            return kind
    return DATA


def counts(facts) -> list[int]:
    """The numbers of bottoms that the layer takes."""
    if facts.exact_num_bottom_blobs >= 0:
        return [facts.exact_num_bottom_blobs]
    least = max(facts.min_bottom_blobs, 0) or 1
    most = facts.max_bottom_blobs if facts.max_bottom_blobs >= 0 else max(least, 2)
    return list(range(least, min(most, least + 3) + 1))


def values_of(shapes: list[Shape]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1701)
    return [shape.values(generator, shapes[0]) for shape in shapes]


def text_of(shapes: list[Shape]) -> str:
    return " ".join(map(str, shapes)) or "no bottoms"


def modules_of(package: str, layer: str) -> dict[str, type]:
    """The Caffe modules of a layer's folder, by type."""
    values = vars(importlib.import_module(f"{package}.{layer}")).values()
    return {v.type_name: v for v in values if inspect.isclass(v) and getattr(v, "type_name", None)}


def given_shapes(text: str) -> list[Shape]:
    """Parse SHAPES, one shape for each bottom. ValueError if one is wrong."""
    return [Shape.parse(word) for word in text.split()]
