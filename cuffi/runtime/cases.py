"""Cases: a layer's functions with inputs, references and tolerances.

A layer's cases.py is the source of its tests, its benchmark and its line in make's table.
"""

import importlib.util
import math
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from ..backends import CPU
from ..base.providers import providers
from ..folders import toolkit_folders
from ..packages import adopt
from .library import backend_of


def __getattr__(name: str) -> object:
    """A wing's kind of case, for a cases.py that imports it from here."""
    for module in () if name.startswith("__") else providers("kinds_of_cases"):
        if name in vars(module):
            return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# (relative, absolute): |result - reference| <= absolute + relative * |reference|. The reference is computed in double
# from the same rounded inputs. So the tolerance allows a few roundings in the result's dtype.
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-6),
    torch.float16: (1e-3, 1e-3),
    torch.bfloat16: (8e-3, 8e-3),
}


class Draw:
    """Makes seeded random tensors, in double on the CPU. The tests cast and move them."""

    def __init__(self, seed: int = 1701):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return torch.randn(shape, generator=self.generator, dtype=torch.float64) * scale

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        return torch.rand(shape, generator=self.generator, dtype=torch.float64) * (high - low) + low


class Function(typing.Protocol):
    """A layer's function, with its own arguments."""

    __name__: str

    def __call__(self, *arguments: typing.Any, **named: typing.Any) -> typing.Any: ...


@typing.runtime_checkable
class WithModes(Function, typing.Protocol):
    """A function that is no operator of torch.library, and converts integers.

    Its `mode` "gpu" runs the layer's kernels on CPU tensors, too.
    """

    mode: str | None


@dataclass(frozen=True)
class Bad:
    """Arguments that must be refused, the error's type, and a part of its message."""

    arguments: Callable[[Draw], tuple]
    error: type[Exception]
    message: str


@dataclass(frozen=True)
class Verdict:
    """How far a result is from its reference.

    Attributes:
        error: the largest |result - reference|; infinite if shapes differ, or only one of the two is finite.
        excess: the largest |result - reference| / tolerance. The result is right if it is at most 1.
        words: describes the error; "" if the result is right.
    """

    error: float = 0.0
    excess: float = 0.0
    words: str = ""

    @property
    def right(self) -> bool:
        return not self.words


@dataclass(frozen=True)
class Case:
    """One function of a layer.

    Attributes:
        function: the function that users call: an operator, or a function that calls one.
        reference: the same in plain torch operations, differentiable, independent of the layer's code.
        inputs: by name, functions of a Draw that return the call's arguments: tensors (double, CPU) and parameters.
        module: a function without arguments that makes the layer's module. On the first input the module must give the
            function's result. An argument with the name of a module's parameter becomes that parameter; the other
            tensors are the arguments of the module's call.
        gradient: 'numeric': gradcheck in double, if the layer has double; 'reference': compare only with the
            reference's autograd, for functions whose derivative is not their gradient (straight-through); 'none': not
            differentiable.
        twice: True: a second derivative is right (gradgradcheck). False: it must be refused.
        transforms: True: torch.func and forward mode are right. False: they must be refused.
        kinks: (value, range) pairs. Finite differences are wrong near a kink, so gradcheck's inputs keep this distance.
        tolerance: (relative, absolute) by dtype, if it differs from TOLERANCE. A comment must give the reason.
        empty: makes arguments with 0 elements. By default each tensor is cut to 0 along its first axis.
        bad: arguments that must be refused, by name. Wrong dtypes and devices need no entry; they are always tried.
        autocast: the dtype of the result under autocast from float32 inputs: 'same', or 'lower'.
        stays_float: the function's parameters that autocast leaves in float32.
        elementwise: the result's i-th element depends only on the inputs' i-th. Such a case also runs with more than
            2^31 elements.
        bench: inputs for the benchmark, by name.
        peers: other functions that compute the same, for the benchmark, by name.
    """

    function: Function
    reference: Callable
    inputs: Mapping[str, Callable[[Draw], tuple]]
    module: Callable[[], torch.nn.Module] | None = None
    gradient: str = "numeric"
    twice: bool = False
    transforms: bool = False
    kinks: tuple[tuple[float, float], ...] = ()
    tolerance: Mapping[torch.dtype, tuple[float, float]] = field(default_factory=dict)
    empty: Callable[[Draw], tuple] | None = None
    bad: Mapping[str, Bad] = field(default_factory=dict)
    autocast: str = "same"
    stays_float: tuple[str, ...] = ()
    elementwise: bool = False
    bench: Mapping[str, Callable[[Draw], tuple]] = field(default_factory=dict)
    peers: Mapping[str, Callable] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def has_modes(self) -> bool:
        """Is the function one WithModes? Else it calls an operator of torch.library."""
        return isinstance(self.function, WithModes)

    def tolerance_for(self, dtype: torch.dtype) -> tuple[float, float]:
        return self.tolerance.get(dtype, TOLERANCE[dtype])

    def supports(self, layer, device: str, dtype: torch.dtype, kernels: bool = False) -> bool:
        """Can the layer compute the case there? `kernels`: by kernels on CPU tensors, if it has modes."""
        built = backend_of(torch.device(device)).name in layer.backends()
        return built and dtype in layer.dtypes and (not kernels or (self.has_modes and device == CPU))

    def call(self, *arguments, kernels: bool = False):
        """Call the function. `kernels`: see `supports`."""
        if isinstance(self.function, WithModes):
            self.function.mode = "gpu" if kernels else None
        return self.function(*arguments)

    def check(self, result, reference, dtype: torch.dtype, loose: float = 0) -> Verdict:
        """Compare results, or gradients, with the reference's.

        Each |result - reference| may be absolute + relative * |reference|, by the tolerance for the dtype.

        Args:
            result, reference: a tensor or several. The comparison is on the reference's device, in double.
            loose: for random calls and the long sums of a benchmark. Each error may then be `loose` times the tolerance
                of the reference's largest element, or of 1 if that is larger.
        """
        tolerance, worst = self.tolerance_for(dtype), Verdict()
        for got, wanted in zip(results(result), results(reference), strict=True):
            found = _compared(got.detach(), wanted.detach(), tolerance, loose)
            if found.excess >= worst.excess:
                worst = Verdict(max(worst.error, found.error), found.excess, found.words or worst.words)
        return worst

    def run(self, arguments: tuple, dtype: torch.dtype, device: str = CPU, kernels: bool = False) -> Verdict:
        """Run the function in a dtype on a device, and its backward if it has one, and check both.

        Args:
            arguments: returned by one of `inputs`.
            kernels: see `supports`.
        """
        grad = self.gradient != "none"
        given = cast(arguments, dtype, device, grad)
        exact = cast(cast(given, dtype), torch.float64, grad=grad)
        got, wanted = results(self.call(*given, kernels=kernels)), results(self.reference(*exact))
        verdict = self.check(got, wanted, dtype)
        if not grad or not verdict.right:
            return verdict
        return self.check(_gradients(got, given), _gradients(wanted, exact), dtype)


def _gradients(tops, arguments) -> list[Tensor]:
    """The gradients of the sum of all results with respect to each differentiable argument."""
    tops, wanted = differentiable(tops), differentiable(arguments)
    found = torch.autograd.grad(tops, wanted, [torch.ones_like(top) for top in tops], allow_unused=True)
    return [torch.zeros_like(a) if g is None else g for g, a in zip(found, wanted, strict=True)]


def _compared(got: Tensor, wanted: Tensor, tolerance: tuple[float, float], loose: float) -> Verdict:
    """One tensor of `Case.check`. NaN equals NaN, and an infinity equals itself."""
    if got.shape != wanted.shape:
        return Verdict(math.inf, math.inf, f"shape {list(got.shape)} instead of {list(wanted.shape)}")
    if not got.numel():
        return Verdict()
    got, wanted = got.to(wanted.device, torch.float64), wanted.double()
    error = (got - wanted).abs()
    error[(got == wanted) | (got.isnan() & wanted.isnan())] = 0
    error.nan_to_num_(nan=math.inf, posinf=math.inf)
    relative, absolute = tolerance
    size = wanted.abs().nan_to_num_()
    allowed = loose * (absolute + relative * size.max().clamp(min=1)) if loose else absolute + relative * size
    excess = (error / allowed).nan_to_num_(nan=math.inf, posinf=math.inf)
    at = int(excess.argmax())
    most = excess.flatten()[at].item()
    largest = error.max().item()
    if most <= 1:
        return Verdict(largest, most)
    place = [int(i) for i in torch.unravel_index(torch.tensor(at), got.shape)]
    values = f"{got.flatten()[at].item():.8g} instead of {wanted.flatten()[at].item():.8g}"
    return Verdict(
        largest, most, f"{values} at {place}, {most:.3g} times the tolerance; largest error {largest:.1e}"
    )


def layer_of(module: ModuleType):
    """The Layer that an imported layer package made; None if it made none."""
    values = list(vars(module).values())
    # getattr would load a Layer's library.
    owned = [vars(v).get("layer") for v in values if hasattr(v, "__dict__")]
    made = [v for v in (*values, *owned) if type(v).__name__ == "Layer"]
    return made[0] if made else None


def cast(
    arguments: tuple, dtype: torch.dtype | None = None, device: str | torch.device = "cpu", grad: bool = False
) -> tuple:
    """The arguments with their floating tensors in a dtype, on a device, as leaves with or without requires_grad."""

    def moved(argument):
        if not isinstance(argument, Tensor):
            return argument
        if not argument.is_floating_point():
            return argument.to(device)
        return argument.detach().to(device, dtype).requires_grad_(grad)

    return tuple(moved(a) for a in arguments)


def away_from_kinks(arguments: tuple, kinks: tuple[tuple[float, float], ...]) -> tuple:
    """The arguments without values near a kink: a value within `range` moves to that distance."""

    def moved(x: Tensor) -> Tensor:
        for value, distance in kinks:
            side = torch.where(x >= value, 1.0, -1.0).to(x.dtype)
            x = torch.where((x - value).abs() < distance, value + side * distance, x)
        return x

    return tuple(
        moved(a.detach()).requires_grad_() if isinstance(a, Tensor) and a.is_floating_point() else a
        for a in arguments
    )


def load_package(folder: Path, name: str = "outside_layers") -> str:
    """Import a folder of layers as a package; return the package's name. The folder may be anywhere."""
    folder = Path(folder).resolve()
    if folder in toolkit_folders():
        return __name__.rsplit(".", 2)[0]
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None  # a .py file has a loader
    package = importlib.util.module_from_spec(spec)  # without its __init__.py: a folder of layers needs none
    package.__path__ = [str(folder)]
    sys.modules[name] = package
    adopt(name)
    return name


def results(value) -> tuple[Tensor, ...]:
    """One tensor or several, as a tuple."""
    return (value,) if isinstance(value, Tensor) else tuple(value)


def differentiable(tensors) -> list[Tensor]:
    """A call's arguments or results that can have a gradient. Indices cannot."""
    return [a for a in tensors if isinstance(a, Tensor) and a.is_floating_point()]
