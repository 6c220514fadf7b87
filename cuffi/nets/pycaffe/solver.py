"""caffe.get_solver and the solvers' classes: Caffe's loop on caffe.Net, whose blobs a script can read and write."""

from __future__ import annotations

import torch
from torch import Tensor

from ...base import CaffeValueError
from ..net.phases import State
from ..solver.solver_prototxt import read_settings
from ..solver.training import Training
from ..solver.updates import RULES
from . import mode
from .pycaffe_net import Net


class _Loop(Training):
    """The loop of `make train` on pycaffe's nets, so that a script can read the blobs of each forward."""

    def __init__(self, path, net: Net, test_nets: list[Net]):
        self._net, self._tested = net, test_nets
        super().__init__(path, net.module, _no_batches, [], device=mode.device())

    def _forward_backward(self) -> Tensor:
        self.optimizer.zero_grad()
        total = 0.0
        for _ in range(self.s.iter_size):
            self._net.forward()
            self._net.backward()
            weights = self.net.phase.loss_weights
            total += sum(float(self._net.blobs[name].data.sum()) * w for name, w in weights.items())
        return torch.tensor(total / self.s.iter_size)

    def test(self) -> list[dict[str, Tensor]]:
        results = []
        for number, net in enumerate(self._tested):
            count = self.s.test_iter[number]
            sums: dict[str, Tensor] = {}
            for _ in range(count):
                for name, value in net.forward().items():
                    sums[name] = sums.get(name, 0) + torch.as_tensor(value.copy())
            results.append({name: value / count for name, value in sums.items()})
            self.show_test(number, results[-1])
        return results


def _no_batches(start: int):
    return iter(())


class Solver:
    """A solver of pycaffe: `net`, `test_nets`, `iter`, `step`, `solve`, `snapshot`, `restore`, `param`.

    Python layers of its nets run, as in pycaffe. Inputs that the script fills keep their values.
    """

    type = ""  # the classes below have a type; get_solver uses the file's

    def __init__(self, solver_file):
        settings = read_settings(solver_file)
        if self.type and settings.type != self.type:
            raise CaffeValueError(
                f"{settings.path}: type: {self.type}Solver, but the file says {settings.type!r}"
            )
        self.net = _net(*settings.train_net(), mode.TRAIN)
        self.test_nets = [_net(*one, mode.TEST) for one in settings.test_nets()]
        for net in self.test_nets:
            net.share_with(self.net)
        self._loop = _Loop(settings.path, self.net, self.test_nets)

    @property
    def param(self):
        """The SolverParameter."""
        return self._loop.s

    @property
    def iter(self) -> int:
        """The number of updates so far."""
        return self._loop.iteration

    def step(self, count: int) -> None:
        """Make `count` updates, with the file's display, tests and snapshots."""
        self._loop.step(int(count))

    def solve(self, resume_file=None) -> None:
        """Train up to max_iter, from a .solverstate if one is given."""
        if resume_file:
            self.restore(resume_file)
        self._loop.run()

    def snapshot(self) -> None:
        """Write the .caffemodel and the .solverstate of this iteration."""
        self._loop.snapshot()

    def restore(self, solverstate) -> None:
        """Continue from a .solverstate and the weights beside it."""
        self._loop.resume(solverstate)

    def apply_update(self) -> None:
        """Update the parameters by their diffs."""
        self._loop.update()

    def share_weights(self, net: Net) -> None:
        """Make another net share this solver's parameters."""
        net.share_with(self.net)


def _net(source: str, state: State, phase) -> Net:
    return Net(source, phase, stages=tuple(state.stages), level=state.level)


def get_solver(solver_file) -> Solver:
    """The solver of a solver.prototxt, of the file's type."""
    return Solver(solver_file)


CLASSES = {f"{kind}Solver": type(f"{kind}Solver", (Solver,), {"type": kind}) for kind in RULES}
