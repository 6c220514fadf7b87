"""Find the layers' own cases for the benchmarks, check their results, and count their bytes."""

import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

import torch
from torch import Tensor

from cuffi.folders import split, toolkit_folders, with_file
from cuffi.runtime import backend_of
from cuffi.runtime.cases import Case, differentiable, layer_of, results

ROOT = Path(__file__).resolve().parent.parent
BUNDLED = toolkit_folders()
FOLDERS = [(ROOT / folder).resolve() for folder in split(os.environ.get("LAYERS_DIR", ""))] or BUNDLED


def layers_here() -> list[Path]:
    """The folders of the layers to measure. Of two with the same name the first is used, as for `cuffi.<name>`."""
    by_name: dict[str, Path] = {}
    for folder in FOLDERS:
        for name in with_file(folder, "cases.py"):
            by_name.setdefault(name, folder / name)
    return list(by_name.values())


def benched(device: str, only: str | None, notes: list[str]) -> Iterator[tuple[str, Case]]:
    """Yields (layer's name, case) of every case that has benchmark inputs and whose layer is built for a device."""
    for folder in layers_here():
        if only not in (None, folder.name):
            continue
        layer = layer_of(importlib.import_module(f"cuffi.{folder.name}"))
        if backend_of(torch.device(device)).name not in layer.backends():
            notes.append(f"{folder.name} is not built for {device}.")
            continue
        for case in importlib.import_module(f"cuffi.{folder.name}.cases").CASES:
            if case.bench:
                yield folder.name, case


def tensors(arguments: tuple) -> list[Tensor]:
    return [a for a in arguments if isinstance(a, Tensor)]


def bytes_of(values) -> int:
    """The bytes of all tensors. A storage that several tensors share counts once."""
    by_storage = {value.untyped_storage().data_ptr(): value.nbytes for value in values if value is not None}
    return sum(by_storage.values())


def forward_backward(arguments: tuple, top_diffs: tuple[Tensor, ...]):
    """A function to time, which returns the results and the gradients of all inputs. `arguments` are leaf tensors."""
    wanting = [a for a in tensors(arguments) if a.requires_grad]

    def call(function):
        tops = results(function(*arguments))
        return tops, torch.autograd.grad(differentiable(tops), wanting, top_diffs)

    return call


def least_bytes(case: Case, arguments: tuple, backward: bool) -> int:
    """The fewest bytes to move: every tensor is read or written once. A case may give another number (`bytes_moved`).

    If a gradient is the same tensor as a given gradient, it moves nothing.
    """
    if own := getattr(case, "bytes_moved", None):
        return own(arguments, backward)
    tops = results(case.function(*arguments))
    moved = bytes_of([*tensors(arguments), *tops])
    if backward:
        wanting = [a for a in tensors(arguments) if a.requires_grad]
        given = [torch.ones_like(top) for top in differentiable(tops)]
        gradients = torch.autograd.grad(differentiable(tops), wanting, given)
        aliases = {g.data_ptr() for g in gradients} & {g.data_ptr() for g in given}
        moved += bytes_of(t for t in [*gradients, *given] if t.data_ptr() not in aliases)
    return moved


def check_passes(layer: str, case: Case, arguments: tuple, exact: tuple, backward: bool) -> None:
    """Compare results and gradients with the case's reference, because a time for a wrong result is worthless.

    The comparison is on their own device, because copies to the CPU take long.

    Args:
        arguments: the function's arguments. With backward, they are leaf tensors that require a gradient.
        exact: the same values in double, for the reference.
    """
    given = ()
    if backward:
        with torch.no_grad():
            given = tuple(torch.randn_like(top) for top in differentiable(results(case.function(*arguments))))
    got = both_passes(case.function, arguments, given, backward)
    wanted = both_passes(case.reference, exact, tuple(g.double() for g in given), backward)
    if not (verdict := case.check(got, wanted, got[0].dtype, loose=1)).right:
        raise RuntimeError(f"{layer}.{case.name}: {verdict.words}")


def both_passes(function: Callable, arguments: tuple, top_diffs: tuple, backward: bool) -> tuple[Tensor, ...]:
    """The results and, with backward, the gradients of all inputs."""
    if not backward:
        return results(function(*arguments))
    tops, gradients = forward_backward(arguments, top_diffs)(function)
    return *tops, *gradients


_copies = itertools.count()


def compiled(function: FunctionType, dynamic: bool | None = False) -> Callable:
    """torch.compile of a copy of a plain function. It is for one shape, unless `dynamic` is set.

    dynamo counts recompilations for each code object, and gives up after a few. So each shape gets its own copy, which
    is the fastest code of torch.compile.
    """
    name = function.__name__
    code = function.__code__.replace(co_name=f"{name}_{next(_copies)}")
    copy = FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
    return torch.compile(copy, dynamic=dynamic)
