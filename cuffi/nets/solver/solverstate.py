"""Read and write a .solverstate: Caffe's SolverState, with the iteration and the solver's history."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ...base import CaffeRuntimeError, CaffeTypeError, CaffeValueError, describe, path_of
from ...base.files import to_read
from ...caffe_files.caffemodel import HDF5_MAGIC, StoredState, fits, stored_state
from ..net.net import CaffeNet
from ..net.save import save_state
from .optimizer import CaffeOptimizer, learnable, unwrapped
from .updates import RULES


@dataclass(frozen=True)
class SolverState:
    """The content of a .solverstate: the number of updates, and the file of the net's weights."""

    iteration: int
    learned_net: str


def save_solverstate(path, net: nn.Module, optimizer: CaffeOptimizer, iteration: int, learned_net="") -> None:
    """Write a .solverstate, from which Caffe can resume, too.

    Args:
        path: the file. A file of that name is replaced when the new one is complete.
        net, optimizer: the net, and the optimizer by `caffe_solver`.
        iteration: the number of updates.
        learned_net: the path of the .caffemodel that belongs to it.
    """
    path = path_of("save_solverstate: path", path)
    blobs = learnable(_net_of("save_solverstate", net))
    settings = optimizer.settings
    histories = [
        (optimizer.state.get(blob) or {}).get(name, torch.zeros(blob.shape, dtype=blob.dtype))
        for name in ("history", "history2")[: RULES[settings.type][1]]
        for blob in blobs
    ]
    multistep = sum(iteration > value for value in settings.s.stepvalue)
    step = iteration // settings.s.stepsize if settings.s.lr_policy == "step" else multistep
    save_state(path, iteration, str(learned_net), histories, step)


@torch.no_grad()
def load_solverstate(path, net: nn.Module, optimizer: CaffeOptimizer, schedule=None) -> SolverState:
    """Load a .solverstate into an optimizer and its schedule. The weights are not loaded.

    Raises:
        CaffeValueError: the file is not a .solverstate, or belongs to another net or type of solver.
        CaffeRuntimeError: it is an HDF5 file.
        OSError: it cannot be read.
    """
    path = path_of("load_solverstate: path", path)
    with to_read(path) as file:
        if file.read(len(HDF5_MAGIC)) == HDF5_MAGIC:
            raise CaffeRuntimeError(
                f"{path}: it is HDF5: resume from a snapshot of snapshot_format: BINARYPROTO"
            )
        stored = stored_state(path)
        blobs = learnable(_net_of("load_solverstate", net))
        for name, histories in _matched(path, stored, blobs, optimizer.settings.type).items():
            for blob, history in zip(blobs, histories, strict=True):
                if isinstance(blob, nn.Parameter) and blob.requires_grad:
                    value = history.read(file).view(blob.shape).to(blob.device, blob.dtype)
                    optimizer.state[blob][name] = value
    for group in optimizer.param_groups:
        group["step"] = stored.iteration
    if schedule is not None:
        schedule.last_epoch = stored.iteration
        schedule._step_count = stored.iteration + 1
    for group in optimizer.param_groups:
        group["lr"] = optimizer.settings.rate(stored.iteration) * group["lr_mult"]
    return SolverState(stored.iteration, stored.learned_net)


def _matched(path: str, stored: StoredState, blobs: list[Tensor], kind: str) -> dict[str, list]:
    """The file's history of each blob, by the history's name."""
    count = RULES[kind][1]
    if len(stored.history) != count * len(blobs):
        raise CaffeValueError(
            f"{path}: {len(stored.history)} histories; {kind} has {count} for each of the net's {len(blobs)} blobs"
        )
    parts = {}
    for i, name in enumerate(("history", "history2")[:count]):
        parts[name] = stored.history[i * len(blobs) : (i + 1) * len(blobs)]
        for number, (blob, history) in enumerate(zip(blobs, parts[name], strict=True)):
            if not fits(blob.shape, history.shape, legacy=len(history.shape) == 4):
                raise CaffeValueError(
                    f"{path}: history {number} is {list(history.shape)}, its blob in the net {list(blob.shape)}"
                )
    return parts


def _net_of(what: str, net: nn.Module) -> CaffeNet:
    inner = unwrapped(net)
    if not isinstance(inner, CaffeNet):
        raise CaffeTypeError(f"{what}: net: expected a CaffeNet, got {describe(net)}")
    return inner


def newest(prefix: str) -> Path | None:
    """The snapshot `PREFIX_iter_N.solverstate` with the largest N whose files all exist."""
    found = {}
    for path in Path(prefix).parent.glob("*.solverstate"):
        head, _, number = path.name.removesuffix(".solverstate").rpartition("_iter_")
        if head == Path(prefix).name and number.isdigit() and path.with_suffix(".caffemodel").exists():
            found[int(number)] = path
    return found[max(found)] if found else None
