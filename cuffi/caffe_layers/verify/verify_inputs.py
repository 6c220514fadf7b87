"""The inputs for verifying a layer: its cases, or else given or guessed parameters and shapes."""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from ..call import CaffeModule

# The most elements of an input that is checked element by element.
MOST_ELEMENTS = 1500


@dataclass
class Setting:
    """A module and its inputs, in double on the CPU."""

    name: str
    module: CaffeModule
    bottoms: list[Tensor]
    blobs: list[Tensor] | None = None  # None: the layer's fillers fill them
    # May the bottom's values be varied? Those of labels may not.
    smooth: list[bool] = field(default_factory=list)
    guessed: bool = False
    # The shapes of guessed bottoms.
    shapes: list[Shape] = field(default_factory=list)

    @property
    def is_doubtful(self) -> bool:
        """Were several bottoms guessed? Only the layer knows what each means."""
        return self.guessed and len(self.bottoms) > 1

    def on(self, shapes: list[Shape]) -> Setting:
        """The same module on other bottoms."""
        varied = [smooth and shape.kind in VARIED for smooth, shape in zip(self.smooth, shapes, strict=True)]
        name = f"{self.module.type_name} on {text_of(shapes)}"
        return replace(self, name=name, bottoms=values_of(shapes), blobs=None, smooth=varied, shapes=shapes)


# ------------------------------------------------------------------------------------------- cases


def settings_of_cases(cases, draw, away_from_kinks) -> Iterator[Setting]:
    """Each case with its first small input, for each number of bottoms. The suite runs the other inputs."""
    for case in cases:
        if not case.has_modes:
            continue
        inputs = {label: inputs(draw()) for label, inputs in case.inputs.items()}
        sizes = {k: sum(a.numel() for a in v if isinstance(a, Tensor)) for k, v in inputs.items()}
        small = [label for label, size in sizes.items() if size <= MOST_ELEMENTS] or [
            min(sizes, key=sizes.__getitem__)
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

DATA, LABEL, REGIONS, PROBABILITIES = "", "label", "roi", "prob"
KINDS = (LABEL, REGIONS, PROBABILITIES)
# The values of the others are not varied.
VARIED = (DATA, PROBABILITIES)
NOT_FINITE = "Forward gives NaN or infinity"


@dataclass(frozen=True)
class Shape:
    """A bottom's shape and the kind of its values.

    Kinds: any numbers; labels; regions (image, x1, y1, x2, y2); numbers in (0, 1), which are never guessed.
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
                f"SHAPES: {text}: expected one of {', '.join(KINDS)} after the colon, got {kind!r}"
            )
        try:
            found = cls(tuple(int(s) for s in sizes.split(",") if s), kind)
        except ValueError:
            raise ValueError(
                f"SHAPES: {text}: expected sizes, as in 2,3,6,5 or 2,1,1,1:label or 5,5:roi"
            ) from None
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
        values = torch.randn(self.sizes, generator=generator, dtype=torch.float64)
        return values.sigmoid() if self.kind == PROBABILITIES else values


SQUARE = Shape((2, 4, 6, 6))
USUAL = Shape((2, 3, 6, 5))
FLAT = Shape((5, 4))


def candidates(count: int, first: str = DATA) -> Iterator[list[Shape]]:
    """Shapes to try for this many bottoms. Those with a bottom of the kind `first` come first."""
    if count == 0:
        yield []
        return
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
    for sizes in ((1, 1), (1, 4, 1, 4), (2, 3, 4), (2, 3, 4, 3, 4)):
        yield [Shape(sizes)] * count


def called_after(type_name: str) -> str:
    """The kind of bottom that a layer's name suggests."""
    return REGIONS if re.search(r"roi|region|rpn|proposal", type_name, re.IGNORECASE) else DATA


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
