"""The files of a training: snapshots, from which Caffe can resume, and the curve of its losses."""

from __future__ import annotations

import csv
import io
import os
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from ...base import CaffeValueError
from ...base.files import to_read, written_whole
from .random_states import random_states, set_random_states
from .solver_prototxt import Settings
from .solverstate import load_solverstate, save_solverstate

if TYPE_CHECKING:
    from .training import Training

# What torch.load and what takes the values apart raise for a file of another kind.
_NOT_SAVED = (
    pickle.UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, EOFError, AttributeError, IndexError,
    OSError
)  # fmt: skip


def prefix_of(settings: Settings) -> str:
    """snapshot_prefix, relative to the working directory. If it is a folder, the solver file's name is added."""
    prefix = settings.s.snapshot_prefix or str(Path(settings.path).with_suffix(""))
    return f"{prefix.rstrip('/')}/{Path(settings.path).stem}" if os.path.isdir(prefix) else prefix


def write(training: Training) -> Path:
    """Write the three files of a snapshot. Each is complete or absent. Returns the path of the .solverstate."""
    path = Path(f"{training.prefix}_iter_{training.iteration}.solverstate")
    path.parent.mkdir(parents=True, exist_ok=True)
    weights, random = path.with_suffix(".caffemodel"), path.with_suffix(".random")
    new = [file for file in (weights, random, path) if not file.exists()]
    training.log(f"Snapshotting to binary proto file {weights}")
    try:
        training.net.save_caffemodel(weights)
        with written_whole(random) as file:
            file.write(_random_file(training))
        training.log(f"Snapshotting solver state to binary proto file {path}")
        save_solverstate(path, training.net, training.optimizer, training.iteration, weights)
    except BaseException:  # such as a full disk: no weights without their state
        for file in new:
            file.unlink(missing_ok=True)
        raise
    return path


def _random_file(training: Training) -> bytes:
    states = {"seed": training.seed, "scaler": training.scaler.state_dict()} | random_states(training.device)
    content = io.BytesIO()
    torch.save(states, content)
    return content.getvalue()


def read(training: Training, path: Path) -> None:
    """Continue from the snapshot with this .solverstate.

    Raises:
        CaffeValueError: the file is damaged, or belongs to another net or solver.
    """
    state = load_solverstate(path, training.net, training.optimizer, training.schedule)
    weights = path.with_suffix(".caffemodel")
    try:
        training.net.load_caffemodel(weights if weights.exists() else state.learned_net)
    except OSError as error:
        raise CaffeValueError(f"{path}: its weights: {error}") from None
    training.iteration = state.iteration
    random = path.with_suffix(".random")
    if random.exists():
        read_random(training, random)


def read_random(training: Training, path: Path) -> None:
    """The random numbers' states of a snapshot. CaffeValueError with the file's name if it is not one."""
    with to_read(path) as file:
        content = io.BytesIO(file.read())
    try:
        saved = torch.load(content, weights_only=True)
        training.seed = saved["seed"]
        set_random_states(saved, training.device)
        training.scaler.load_state_dict(saved["scaler"])
    except _NOT_SAVED as error:
        said = str(error).partition("\n")[0]
        raise CaffeValueError(
            f"{path}: not the random state of a snapshot: {type(error).__name__}: {said}. Without the file, "
            "training goes on with other random numbers"
        ) from None


def write_curve(path: Path, title: str, losses: Iterable[tuple[int, float, float]]) -> Path:
    """Write a .csv (iteration, lr, loss) and, if matplotlib is installed, an .svg beside it: the path of the last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    losses = list(losses)
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("iteration", "lr", "loss"), *losses])
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return path
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot([row[0] for row in losses], [row[2] for row in losses])
    axes.set(xlabel="iteration", ylabel="loss", title=title)
    figure.savefig(path.with_suffix(".svg"))
    return path.with_suffix(".svg")
