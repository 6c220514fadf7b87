"""caffe.get_solver and the solvers' classes: Caffe's loop on caffe.Net, whose blobs a script can read and write."""

from __future__ import annotations

import torch
from torch import Tensor

from ..net.phases import State
from ..solver.solver_prototxt import Settings, read_settings
from ..solver.training import Training
from ..solver.updates import RULES
from . import mode
from .pycaffe_net import Net
from .runtime_errors import as_runtime


class _Loop(Training):
    """The loop of `make train` on pycaffe's nets, so that a script can read the blobs of each forward."""

    def __init__(self, settings: Settings, net: Net, test_nets: list[Net]):
        self._net, self._tested, self.callbacks = net, test_nets, []
        super().__init__(settings, net.module, _no_batches, [], device=mode.device())

    def _seeded(self) -> int:
        """The solver has seeded before it made the nets."""
        return mode.seed()

    def _forward_backward(self) -> Tensor:
        for on_start, _ in self.callbacks:
            on_start()
        self.optimizer.zero_grad()
        total = 0.0
        for _ in range(self.s.iter_size):
            total += float(self._last_loss())
            self._net.backward()
        for _, on_gradients_ready in self.callbacks:
            on_gradients_ready()
        return torch.tensor(total / self.s.iter_size)

    def _last_loss(self) -> Tensor:
        self._outputs = _tensors(self._net.forward())
        weights = self.net.phase.loss_weights
        return torch.tensor(sum(float(self._net.blobs[name].data.sum()) * w for name, w in weights.items()))

    def update(self) -> None:
        for group in self.optimizer.param_groups:  # a script may have set param.base_lr
            group["lr"] = self.settings.rate(self.iteration) * group["lr_mult"]
        super().update()

    def test(self) -> list[dict[str, Tensor]]:
        results = []
        for number, net in enumerate(self._tested):
            count, loss = self.s.test_iter[number], 0.0
            sums: dict[str, Tensor] = {}
            self.log(f"Iteration {self.iteration}, Testing net (#{number})")
            weights = net.module.phase.loss_weights
            for _ in range(count):
                for name, value in _tensors(net.forward()).items():
                    sums[name] = sums.get(name, 0) + value
                loss += sum(float(net.blobs[name].data.sum()) * w for name, w in weights.items()) / count
            results.append({name: value / count for name, value in sums.items()})
            self.show_test(results[-1], weights, loss)
        return results


def _tensors(outputs) -> dict[str, Tensor]:
    return {name: torch.from_numpy(value.copy()) for name, value in outputs.items()}


def _no_batches(start: int):
    return iter(())


class Solver:
    """A solver of pycaffe: `net`, `test_nets`, `iter`, `step`, `solve`, `snapshot`, `restore`, `param`.

    Python layers of its nets run as those of `caffe.Net`. Inputs that the script fills keep their values. A class such
    as SGDSolver uses its own rule, whatever the file's type is, as in pycaffe.
    """

    type = ""  # the classes below have a type; get_solver uses the file's

    @as_runtime
    def __init__(self, solver_file, python_layers: bool = False):
        settings = read_settings(solver_file, self.type)
        if settings.s.random_seed >= 0:  # before the nets, whose fillers draw from it
            mode.set_random_seed(settings.s.random_seed)
        options = {"python_layers": python_layers, "weights": settings.weights}
        self._net = _net(*settings.train_net(), mode.TRAIN, options)
        self._test_nets = [_net(*one, mode.TEST, options) for one in settings.test_nets()]
        for net in self._test_nets:
            net.share_with(self._net)
        self._loop = _Loop(settings, self._net, self._test_nets)

    @property
    def net(self) -> Net:
        """The net that is trained."""
        return self._net

    @property
    def test_nets(self) -> list[Net]:
        """The nets of the file's tests. They share the trained net's parameters."""
        return self._test_nets

    @property
    def param(self):
        """The SolverParameter."""
        return self._loop.s

    @property
    def lr(self) -> float:
        """The learning rate of this iteration."""
        return self._loop.settings.rate(self._loop.iteration)

    @property
    def iter(self) -> int:
        """The number of updates so far."""
        return self._loop.iteration

    @as_runtime
    def step(self, count: int) -> None:
        """Make `count` updates, with the file's display, tests and snapshots."""
        self._loop.step(int(count))

    @as_runtime
    def solve(self, resume_file=None) -> None:
        """Train up to max_iter, from a .solverstate if one is given."""
        if resume_file:
            self.restore(resume_file)
        self._loop.run()

    @as_runtime
    def snapshot(self) -> None:
        """Write the .caffemodel and the .solverstate of this iteration."""
        self._loop.snapshot()

    @as_runtime
    def restore(self, solverstate) -> None:
        """Continue from a .solverstate and the weights beside it."""
        self._loop.resume(solverstate)

    def add_callback(self, on_start, on_gradients_ready) -> None:
        """Call the functions at the start of each iteration, and before each update."""
        self._loop.callbacks.append((on_start, on_gradients_ready))

    def apply_update(self) -> None:
        """Update the parameters by their diffs."""
        self._loop.update()

    def share_weights(self, net: Net) -> None:
        """Make another net share this solver's parameters."""
        net.share_with(self.net)


def _net(source: str, state: State, phase, options: dict) -> Net:
    return Net(source, phase, stages=tuple(state.stages), level=state.level, **options)


def get_solver(solver_file, python_layers: bool = False) -> Solver:
    """The solver of a solver.prototxt, of the file's type."""
    return Solver(solver_file, python_layers)


CLASSES = {f"{kind}Solver": type(f"{kind}Solver", (Solver,), {"type": kind}) for kind in RULES}
