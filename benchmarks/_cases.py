"""The layers' own cases as the benchmarks use them: found, checked once, with their bytes counted."""

import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from layers._runtime import serving
from layers._runtime.cases import Case, cast, largest_error, results

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = ROOT / "layers"
FOLDERS = [(ROOT / folder).resolve() for folder in os.environ.get("LAYERS_DIR", "").split(":") if folder] or [
    BUNDLED
]


def layers_here() -> list[Path]:
    """The folders of the layers to measure: of two with one name the first, which `layers.<name>` means."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for file in sorted(folder.glob("*/cases.py")):
            found.setdefault(file.parent.name, file.parent)
    return list(found.values())


def benched(device: str, only: str | None, notes: list[str]) -> Iterator[tuple[str, Case]]:
    """(layer's name, case) of every case with benchmark inputs whose layer is built for a device."""
    library = serving(torch.device(device)).library
    for folder in layers_here():
        if only not in (None, folder.name):
            continue
        if not (folder / library).exists():
            notes.append(f"{folder.name} is not built for {device}.")
            continue
        for case in importlib.import_module(f"layers.{folder.name}.cases").CASES:
            if case.bench:
                yield folder.name, case


def tensors(arguments: tuple) -> list[Tensor]:
    return [a for a in arguments if isinstance(a, Tensor)]


def bytes_of(values) -> int:
    """The bytes of all tensors, one storage counted once."""
    found = {value.untyped_storage().data_ptr(): value.nbytes for value in values if value is not None}
    return sum(found.values())


def forward_backward(arguments: tuple, top_diffs: tuple[Tensor, ...]):
    """A call to time: the result and the gradients of all inputs. `arguments` are leaves that want one."""
    wanting = [a for a in tensors(arguments) if a.requires_grad]

    def call(function):
        tops = results(function(*arguments))
        return tops, torch.autograd.grad(tops, wanting, top_diffs)

    return call


def least_bytes(case: Case, arguments: tuple, backward: bool) -> int:
    """The fewest bytes to move: every tensor in and out once. A case may know better (`bytes_moved`).

    A gradient that is the one given, handed on, moves nothing.
    """
    if own := getattr(case, "bytes_moved", None):
        return own(arguments, backward)
    tops = results(case.function(*arguments))
    moved = bytes_of([*tensors(arguments), *tops])
    if backward:
        wanting = [a for a in tensors(arguments) if a.requires_grad]
        given = [torch.ones_like(top) for top in tops]
        gradients = torch.autograd.grad(tops, wanting, given)
        aliases = {g.data_ptr() for g in gradients} & {g.data_ptr() for g in given}
        moved += bytes_of(t for t in [*gradients, *given] if t.data_ptr() not in aliases)
    return moved


def check(layer: str, case: Case, arguments: tuple) -> None:
    """A fast wrong answer is no result: compare with the case's reference, in double."""
    result = case.function(*arguments)
    wanted = case.reference(*cast(arguments, torch.float64, tensors(arguments)[0].device))
    relative, absolute = case.tolerance_for(results(result)[0].dtype)
    allowed = absolute + relative * max(w.abs().max().item() for w in results(wanted))
    if not (error := largest_error(result, wanted)) <= allowed:
        raise RuntimeError(f"{layer}.{case.name}: an error of {error:.2e} where {allowed:.2e} is allowed")


def check_passes(layer: str, case: Case, arguments: tuple, exact: tuple, backward: bool) -> None:
    """The same for results and gradients, compared where they lie: megabytes take no trip to the CPU.

    Args:
        arguments: as the function gets them; leaves that want a gradient if backward.
        exact: the same values in double, for the reference.
    """
    with torch.no_grad():
        given = tuple(torch.randn_like(top) for top in results(case.function(*arguments)))
    got, wanted = (
        (*tops, *gradients)
        for tops, gradients in (
            both_passes(case.function, arguments, given, backward),
            both_passes(case.reference, exact, tuple(g.double() for g in given), backward),
        )
    )
    relative, absolute = case.tolerance_for(got[0].dtype)
    for ours, reference in zip(got, wanted, strict=True):
        error = (ours.detach().double() - reference.detach()).abs().max().item()
        allowed = absolute + relative * reference.detach().abs().max().item()
        if ours.shape != reference.shape or not error <= allowed:
            raise RuntimeError(f"{layer}.{case.name}: an error of {error:.2e} where {allowed:.2e} is allowed")


def both_passes(function: Callable, arguments: tuple, top_diffs: tuple, backward: bool) -> tuple:
    """(results, gradients), the latter empty without backward."""
    if backward:
        return forward_backward(arguments, top_diffs)(function)
    return results(function(*arguments)), ()


_copies = itertools.count()


def compiled(function: Callable, dynamic: bool | None = False) -> Callable:
    """torch.compile of a copy of a plain function, for one shape unless `dynamic` says otherwise.

    A copy, because dynamo counts recompilations by code object and gives up after a few; so each shape gets
    code of its own and no shapes that vary, the best that torch.compile has.
    """
    code = function.__code__.replace(co_name=f"{function.__name__}_{next(_copies)}")
    copy = type(function)(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    return torch.compile(copy, dynamic=dynamic)
