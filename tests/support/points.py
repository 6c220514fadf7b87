"""A Point: one case of a layer on one input, device and dtype; and the grids of points for tests.

The points come from the layers' cases.py alone.
"""

import functools
import importlib
import inspect
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from cuffi.backends import DEVICES
from cuffi.folders import candidates, toolkit_folders
from cuffi.runtime.cases import Case, Draw, cast, differentiable, layer_of, load_package, results

ROOT = Path(__file__).resolve().parents[2]
LAYERS_DIR = Path(os.environ.get("LAYERS_DIR") or ROOT / "layers").resolve()
PACKAGE = load_package(LAYERS_DIR)
# The folders of the layers by name: of LAYERS_DIR, or all of the toolkit's own.
FOLDERS = {
    n: place / n
    for place in (toolkit_folders() if LAYERS_DIR in toolkit_folders() else [LAYERS_DIR])
    for n in candidates(place)
    if any(map(list, map((place / n).glob, ("*.cu", "__init__.py"))))
}
LAYERS = list(FOLDERS)


def cases_of(layer: str) -> list[Case]:
    """A layer's cases; none if its cases.py is missing or broken, which test_layer_says_its_cases reports."""
    try:
        return list(importlib.import_module(f"{PACKAGE}.{layer}.cases").CASES)
    except Exception:
        return []


def layer_object(layer: str):
    """The Layer that a layer's module made."""
    made = layer_of(importlib.import_module(f"{PACKAGE}.{layer}"))
    if made is None:
        raise LookupError(f"layer {layer}: its __init__.py says no `layer = Layer(__name__)`")
    return made


@dataclass(frozen=True)
class Point:
    """One case on one input, device and dtype."""

    layer: str
    case: Case
    input: str
    device: str
    dtype: torch.dtype
    kernels: bool = False  # of a Caffe layer, on CPU tensors, where its own CPU code would run

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.layer}-{self.case.name}-{self.input}-{self.device}{'-kernels' * self.kernels}-{dtype}"

    def arguments(self, grad: bool = False, seed: int = 1701) -> tuple:
        """The input's arguments in the point's dtype, on its device."""
        return cast(self.case.inputs[self.input](Draw(seed)), self.dtype, self.device, grad)

    def call(self, *arguments):
        return self.case.call(*arguments, kernels=self.kernels)

    def reference(self, *arguments, grad: bool = False):
        """(the arguments in double on the CPU, the reference's results)."""
        arguments = cast(arguments, torch.float64, "cpu", grad)
        return arguments, self.case.reference(*arguments)

    def assert_close(self, result, reference):
        """Each of the result's tensors lies within the case's tolerance of the reference's."""
        verdict = self.case.check(result, [r.cpu() for r in results(reference)], self.dtype)
        assert verdict.right, verdict.words

    @property
    def layer_object(self):
        return layer_object(self.layer)

    @property
    def reproduction(self) -> str:
        return (
            "from cuffi.runtime.cases import Draw, cast\n"
            f"from {PACKAGE}.{self.layer}.cases import CASES\n"
            f"case = CASES[{cases_of(self.layer).index(self.case)}]  # {self.case.name}\n"
            f"arguments = cast(case.inputs[{self.input!r}](Draw()), {self.dtype}, {self.device!r})\n"
            f"print(case.function(*arguments), case.reference(*cast(arguments, torch.float64)), sep='\\n')"
        )


def random_like(tensors, seed: int = 7) -> list[Tensor]:
    """Seeded normal tensors, for use as top_diff of those that have a gradient."""
    draw = Draw(seed)
    return [draw.normal(*t.shape).to(t.device, t.dtype) for t in differentiable(results(tensors))]


def same_bits(one, other) -> bool:
    """Equal in shape, dtype and every bit (so NaN equals NaN)."""
    pairs = list(zip(results(one), results(other), strict=True))
    return all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a), _bits(b)) for a, b in pairs
    )


def _bits(tensor: Tensor) -> Tensor:
    return (
        tensor.detach()
        .resolve_neg()
        .contiguous()
        .view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.dtype.itemsize])
    )


# --------------------------------------------------------------------------------------------- grids


def kinds_of_inputs(case: Case) -> list[str]:
    """The first input, and the first input of each other combination of optional tensors that are None."""
    kinds = {}
    optional = any("None" in str(p.annotation) for p in inspect.signature(case.function).parameters.values())
    for name in case.inputs if optional else list(case.inputs)[:1]:
        kinds.setdefault(tuple(a is None for a in case.inputs[name](Draw())), name)
    return list(kinds.values())


def points(layers=LAYERS, *, every_input=False, devices=DEVICES, dtypes=(torch.float32,), kernels=False):
    """The points of a grid.

    On the host: each kind of input in each dtype, and the other inputs in the first dtype alone, because a kernel's
    text is the same for each dtype there. On a GPU: each input in each dtype, because dtype and size choose the kernel.

    Args:
        every_input: all inputs of a case, and not only one of each kind.
        dtypes: those to take if the layer has them; None for all it has; its first if it has none of them.
        kernels: a Caffe layer's kernels on the host as well.
    """
    for layer in layers:
        for case in cases_of(layer):
            own = layer_object(layer).dtypes
            wanted = own if dtypes is None else [d for d in dtypes if d in own] or own[:1]
            kinds = kinds_of_inputs(case)
            others = [name for name in case.inputs if every_input and name not in kinds]
            places = [(device, False) for device in devices]
            if kernels and case.has_modes and "cpu" in devices:
                places.append(("cpu", True))
            for device, by_kernels in places:
                of_others = wanted[:1] if device == "cpu" else wanted
                pairs = [*itertools.product(kinds, wanted), *itertools.product(others, of_others)]
                yield from (Point(layer, case, n, device, dtype, by_kernels) for n, dtype in pairs)


GRIDS = {
    "point": dict(every_input=True, dtypes=None, kernels=True),
    "each_way": dict(dtypes=None, kernels=True),
    "each_dtype": dict(dtypes=None),
    "each_device": dict(),
    "double": dict(every_input=True, dtypes=(torch.float64,)),
    "half_type": dict(every_input=True, dtypes=(torch.float16, torch.bfloat16)),
    "on_cpu": dict(devices=("cpu",)),
    "on_cuda": dict(devices=("cuda",)),
}


@functools.cache
def grid(name: str) -> tuple[Point, ...]:
    """The points of GRIDS[name], computed once, because that draws all inputs."""
    return tuple(points(**GRIDS[name]))
