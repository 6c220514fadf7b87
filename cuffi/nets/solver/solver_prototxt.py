"""Read a solver.prototxt: the SolverParameter, checked, and the rate of each iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...base import CaffeValueError, path_of
from ...base.files import named_by
from ...caffe_files.parameters import did_you_mean, read_fields
from ...caffe_files.prototxt import Node, parse, read_text, render
from ..net.messages import STOCK
from ..net.phases import State
from .updates import POLICIES, RULES

# Fields of SSD's solver for scoring its tests. They do not change the training.
OF_TESTS = ("eval_type", "ap_version", "show_per_class_result")
# solver_type, in files from before 2015.
_OLD_TYPES = {0: "SGD", 1: "Nesterov", 2: "AdaGrad", 3: "RMSProp", 4: "AdaDelta", 5: "Adam"}


@dataclass(frozen=True)
class Settings:
    """A solver's settings. `s` is the SolverParameter, with Caffe's defaults for missing fields."""

    path: str
    s: Any
    type: str
    node: Node = field(repr=False)

    def rate(self, iteration: int) -> float:
        """The learning rate of an iteration, by lr_policy."""
        return POLICIES[self.s.lr_policy][0](self.s, iteration)

    def line(self, name: str) -> str:
        """`solver.prototxt, line 7: gamma`, for messages."""
        line = next((f.line for f in self.node.fields if f.name == name), None)
        return f"{self.path}{f', line {line}' if line else ''}: {name}"

    # ---------------------------------------------------------------------------------------- nets

    def train_net(self) -> tuple[str, State]:
        """(path or text of the net to train, its state). CaffeValueError if there is not exactly one."""
        given = [name for name in ("net", "net_param", "train_net", "train_net_param") if self.node.has(name)]
        if len(given) != 1:
            raise CaffeValueError(
                f"{self.path}: expected one of net, net_param, train_net and train_net_param, "
                f"got {' and '.join(given) or 'none'}"
            )
        return self._net(given[0], 0), _state("TRAIN", self.s.train_state)

    def test_nets(self) -> list[tuple[str, State]]:
        """(path or text, state) of each net to test, in Caffe's order: test_net_param, test_net, then net.

        CaffeValueError if their number is not that of test_iter, or of test_state.
        """
        found = [self._net(name, i) for name in ("test_net_param", "test_net") for i in self._each(name)]
        general = next((name for name in ("net_param", "net") if self.node.has(name)), "")
        if general:
            found += [self._net(general, 0)] * (len(self.s.test_iter) - len(found))
        if len(found) != len(self.s.test_iter):
            raise CaffeValueError(
                f"{self.line('test_iter')}: {len(self.s.test_iter)} for {len(found)} test nets"
            )
        states = list(self.s.test_state)
        if states and len(states) != len(found):
            raise CaffeValueError(f"{self.line('test_state')}: {len(states)} for {len(found)} test nets")
        if found and not self.s.test_interval > 0:
            raise CaffeValueError(
                f"{self.line('test_interval')}: expected more than 0, got {self.s.test_interval}"
            )
        states = states or [STOCK.message("NetState")] * len(found)
        return [(net, _state("TEST", state)) for net, state in zip(found, states, strict=True)]

    def _each(self, name: str) -> range:
        return range(len(getattr(self.s, name)))

    def _net(self, name: str, i: int) -> str:
        if name.endswith("_param"):
            return render(self.node.nodes(name)[i])
        return self.file(self.node.values(name)[i])

    @property
    def weights(self) -> list[str]:
        """The weights files to start from."""
        names = [name.strip() for several in self.s.weights for name in several.split(",")]
        return [self.file(name) for name in names]

    def file(self, name: str) -> str:
        """A path in the file: relative to the working directory, as in Caffe, or to the solver file's folder."""
        return named_by(self.path, name) or name


def _state(phase: str, state) -> State:
    level = state.level if state.HasField("level") else None
    return State(phase, level, frozenset(state.stage))


def read_settings(path, kind: str = "") -> Settings:
    """The settings of a solver file.

    Args:
        kind: the solver's type, in place of the file's.

    Raises:
        CaffeValueError: a field is unknown, a value is wrong, or the policy or the type is unknown or lacks a field.
            The message names the file, the line and the field.
    """
    path = path_of("caffe_solver: path", path)
    node = parse(read_text(path), path)
    message: Any = STOCK.message("SolverParameter")
    try:
        unknown = read_fields(node, message)
    except CaffeValueError as error:
        raise CaffeValueError(f"{path}, {error}") from None
    for one in unknown:
        if one.path not in OF_TESTS and "net_param" not in one.path:
            if any(other.path in ("layer", "layers") for other in unknown):
                wrong = "not a solver's file: it is a net, which a solver's file names: "
                raise CaffeValueError(f'{path}, line {one.line}: {wrong}net: "{Path(path).name}"')
            raise CaffeValueError(f"{path}, line {one.line}: {one.path}: {one.hint}")
    settings = Settings(path, message, kind or _type(message, path), node)
    _check(settings)
    return settings


def _type(message: Any, path: str) -> str:
    if message.HasField("solver_type"):
        if message.HasField("type"):
            raise CaffeValueError(f"{path}: both type and solver_type: remove solver_type")
        return _OLD_TYPES[message.solver_type]
    if message.type not in RULES:
        near = did_you_mean(message.type, RULES)
        raise CaffeValueError(f"{path}: type: expected one of {', '.join(RULES)}, got {message.type!r}{near}")
    return message.type


def _check(settings: Settings) -> None:
    s = settings.s
    if not s.HasField("base_lr"):
        raise CaffeValueError(f"{settings.path}: base_lr is missing")
    if not s.lr_policy:
        raise CaffeValueError(f"{settings.path}: lr_policy is missing: expected one of {', '.join(POLICIES)}")
    if s.lr_policy not in POLICIES:
        near = did_you_mean(s.lr_policy, POLICIES)
        wanted = f"expected one of {', '.join(POLICIES)}, got {s.lr_policy!r}{near}"
        raise CaffeValueError(f"{settings.line('lr_policy')}: {wanted}")
    for name in POLICIES[s.lr_policy][1]:
        if not s.HasField(name):
            raise CaffeValueError(f"{settings.line('lr_policy')}: {s.lr_policy!r} needs {name}")
        if name != "power" and not getattr(s, name) >= (0 if name == "gamma" else 1):
            raise CaffeValueError(f"{settings.line(name)}: {getattr(s, name):g} is out of range")
    if s.regularization_type not in ("L1", "L2"):
        raise CaffeValueError(
            f"{settings.line('regularization_type')}: expected L1 or L2, got {s.regularization_type!r}"
        )
    for name in ("iter_size", "average_loss"):
        if getattr(s, name) < 1:
            raise CaffeValueError(f"{settings.line(name)}: expected 1 or more, got {getattr(s, name)}")
    if settings.type in ("AdaGrad", "RMSProp") and s.momentum:
        raise CaffeValueError(f"{settings.line('momentum')}: {settings.type} takes no momentum")
    if settings.type == "RMSProp" and not 0 <= s.rms_decay < 1:
        raise CaffeValueError(f"{settings.line('rms_decay')}: expected 0 to 1, got {s.rms_decay:g}")
