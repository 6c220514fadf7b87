"""Caffe's training loop: trains by a solver file, as `caffe train` does."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import repeat
from pathlib import Path

import torch
from torch import Tensor, nn

from ...base import CaffeError, CaffeTypeError, CaffeValueError, describe, some
from ..data.dummy import Dummies
from ..data.loader import READ, data_loaders, merged
from ..net import caffe_net
from ..net.graph import Graph
from ..net.net import CaffeNet
from ..net.phases import TEST, TRAIN, State
from . import snapshots
from .caffe_log import formed, scores, to_stderr
from .interrupt import deferred, hang_up_deferred
from .optimizer import caffe_solver, unwrapped
from .random_states import random_states, set_random_states
from .solver_prototxt import OF_TESTS, Settings, read_settings
from .solverstate import newest

# A function that takes a batch number and yields the batches from there on: dicts of tensors, by input blob.
Data = Callable[[int], Iterator[dict[str, Tensor]]]


class Training:
    """A net, its solver and its data. `run` trains to max_iter, `step` some iterations.

    Args:
        path: the solver.prototxt, or its Settings.
        net: the net to train; None: the one that the file names.
        data: a function that takes a batch number and yields the batches from there on, dicts of tensors by blob.
            None: the net's data layers.
        test_data: the same for each test net. None: their data layers.
        device: the net's device: 'cpu', 'cuda:0'. None: by solver_mode, if there is a GPU.
        amp: compute forward and loss under autocast: torch.bfloat16, torch.float16 or None.
        workers: the number of processes that read data.
        log: called with each line of the log, which has Caffe's form. Default: writes to stderr.
        options: further arguments of `caffe_net`.

    Attributes:
        net, test_nets: CaffeNets. Layers of one name share their parameters.
        optimizer, schedule: made by `caffe_solver`.
        iteration: the number of updates.
        losses: (iteration, rate, loss) of each displayed iteration.

    Raises:
        CaffeValueError: the files do not fit together. The message names file, line and field.
    """

    def __init__(
        self,
        path,
        net: nn.Module | None = None,
        data: Data | None = None,
        test_data: list[Data] | None = None,
        *,
        device=None,
        amp: torch.dtype | None = None,
        workers: int = 0,
        log: Callable[[str], None] = to_stderr,
        **options,
    ):
        self.settings = settings = path if isinstance(path, Settings) else read_settings(path)
        self.s, self._write, self.workers, self.amp = settings.s, log, workers, amp
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = torch.device(device or _device(self.s))
        self.on_gpu = self.device.type == "cuda"
        self.seed = self._seeded()
        if settings.weights and net is None:
            options.setdefault("weights", settings.weights)
        made = net if net is not None else _made(*settings.train_net(), settings, options)
        inner = unwrapped(made)
        if not isinstance(inner, CaffeNet):
            raise CaffeTypeError(f"train: net: expected a CaffeNet, got {describe(net)}")
        self.net: CaffeNet = inner.to(self.device)
        self.net.train()
        self.called = made if made is not self.net else self._parallel()
        self.optimizer, self.schedule = caffe_solver(settings, self.called)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=amp == torch.float16)
        self.test_nets = [] if test_data == [] else self._test_nets(options)
        self.data = data or _layers_data(self, self.net)
        self.test_data = test_data or [_layers_data(self, test) for test in self.test_nets]
        self._say_what_differs()
        self.iteration = 0
        self.losses: list[tuple[int, float, float]] = []
        self._recent: deque[Tensor] = deque(maxlen=self.s.average_loss)
        self._batches: Iterator[dict[str, Tensor]] | None = None
        self._outputs: dict[str, Tensor] = {}  # of the last forward
        self._is_finite = True

    def _seeded(self) -> int:
        """Seed the random numbers before there are nets, whose fillers draw from them. Returns the seed."""
        seed = self.s.random_seed if self.s.random_seed >= 0 else secrets.randbits(31)
        torch.manual_seed(seed + self.rank)
        return seed

    def log(self, text: str, severity: str = "I") -> None:
        """Write a line of the log."""
        if self.rank == 0:
            self._write(formed(text, severity))

    def _say_what_differs(self) -> None:
        if self.s.snapshot_format == self.s.HDF5:
            self.log(
                "snapshot_format HDF5: snapshots are .caffemodel and .solverstate, which Caffe reads, too",
                "W",
            )
        if self.s.debug_info:
            self.log("debug_info: the sizes of blobs and diffs are not logged", "W")
        if self.s.snapshot_diff:
            self.log("snapshot_diff: snapshots have no diffs", "W")
        if given := [name for name in OF_TESTS if self.settings.node.has(name)]:
            self.log(
                f"{', '.join(given)}: tests log the means of their nets' outputs, and no average precision",
                "W",
            )

    # ---------------------------------------------------------------------------------------- nets

    def _parallel(self) -> nn.Module:
        if self.world == 1:
            return self.net
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("nccl" if self.on_gpu else "gloo")
        return nn.parallel.DistributedDataParallel(self.net)

    def _test_nets(self, options: dict) -> list[CaffeNet]:
        """The test nets. They share the trained net's parameters."""
        found = []
        for source, state in self.settings.test_nets():
            own = TEST in self.net.phases and source == self.net.path and not (state.stages or state.level)
            net = self.net if own else _made(source, state, self.settings, options).to(self.device)
            found.append(net if net is self.net else net.share_with(self.net))
        return found

    # ---------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Train up to max_iter, with the file's tests and snapshots."""
        s = self.s
        self._begin()  # a file that is missing is told first
        self.log(f"Solving {self.net.net_name}")
        self.log(f"Learning Rate Policy: {s.lr_policy}")
        self.step(s.max_iter - self.iteration)
        if s.snapshot_after_train and not (s.snapshot and self.iteration % s.snapshot == 0):
            self.snapshot()
        shows = s.display and self.iteration % s.display == 0
        if shows and (loss := self._last_loss()) is not None:
            self._recent.append(loss)
            self.log(f"Iteration {self.iteration}, loss = {self._mean_loss():g}")
        if s.test_interval and self.iteration % s.test_interval == 0:
            self.test()
        self.log("Optimization Done.")

    def step(self, count: int) -> None:
        """Make `count` updates.

        Ctrl-C waits for the end of an iteration; then KeyboardInterrupt is raised. SIGHUP, of a closed terminal, makes
        a snapshot there, and training goes on.
        """
        s = self.s
        self._recent.clear()
        with deferred() as check, hang_up_deferred(self.snapshot) as check_hang_up:
            for _ in range(count):
                with self._traceless():
                    due = s.test_interval and self.iteration % s.test_interval == 0
                    if due and (self.iteration or s.test_initialization):
                        self.test()
                    self._recent.append(self._forward_backward())
                if s.display and self.iteration % s.display == 0:
                    self._display()
                self.update()
                if s.snapshot and self.iteration % s.snapshot == 0:
                    self.snapshot()
                check_hang_up()
                check()

    @contextlib.contextmanager
    def _traceless(self) -> Generator[None]:
        """If the block is cut off, random numbers and statistics become those before it. So a snapshot is whole."""
        buffers = list(self.net.buffers())
        kept, random = [buffer.clone() for buffer in buffers], random_states(self.device)
        try:
            yield
        except BaseException as error:
            with torch.no_grad():
                for buffer, before in zip(buffers, kept, strict=True):
                    buffer.copy_(before)
            set_random_states(random, self.device)
            self._batches = None
            if isinstance(error, CaffeError) and error.args:
                error.args = (f"iteration {self.iteration}: {error.args[0]}", *error.args[1:])
            raise

    def update(self) -> None:
        """One update of the parameters, by their gradients."""
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.iteration += 1

    def _forward_backward(self) -> Tensor:
        """The gradients of iter_size batches, and their mean loss."""
        self.net.train()
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        for _ in range(self.s.iter_size):
            if (batch := self._next_batch()) is None:
                raise CaffeValueError(f"{self.net.path}: the data ended at iteration {self.iteration}")
            loss = self._loss(batch)
            if loss.requires_grad:
                self.scaler.scale(loss).backward()
            total += loss.detach() / self.s.iter_size
        return total

    def _begin(self) -> Iterator[dict[str, Tensor]]:
        self._batches = self._batches or self.data(self.iteration * self.s.iter_size)
        return self._batches

    def _next_batch(self) -> dict[str, Tensor] | None:
        return next(self._begin(), None)

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        with torch.autocast(self.device.type, self.amp or torch.bfloat16, enabled=self.amp is not None):
            outputs = self.called(**self._moved(batch))
            loss = self.net.loss(outputs) if self.net.phase.loss_weights else torch.zeros(())
        self._outputs = _unread(self.net, outputs)
        return loss

    @torch.no_grad()
    def _last_loss(self) -> Tensor | None:
        """The loss of one more batch, which Caffe shows at the end; None after the last batch of finite data."""
        self.net.train()
        batch = self._next_batch()
        return None if batch is None else self._loss(batch)

    def _moved(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        known = self.net.phase.graph.inputs
        return {k: v.to(self.device, non_blocking=True) for k, v in batch.items() if k in known}

    def _mean_loss(self) -> float:
        return float(torch.stack(list(self._recent)).mean())

    def _display(self) -> None:
        loss = self._mean_loss()
        rate = self.settings.rate(self.iteration)
        self.losses.append((self.iteration, rate, loss))
        self.log(f"Iteration {self.iteration}, loss = {loss:g}")
        for line in scores("Train", self._outputs, self.net.phase.loss_weights):
            self.log(line)
        self.log(f"Iteration {self.iteration}, lr = {rate:g}")
        if not math.isfinite(loss) and self._is_finite:
            self.log(_not_finite(self.net, self.iteration, loss), "W")
        self._is_finite = math.isfinite(loss)

    @torch.no_grad()
    def test(self) -> list[dict[str, Tensor]]:
        """Test each net on test_iter batches. Returns the means of its outputs, and logs them."""
        results = []
        for number, (net, data) in enumerate(zip(self.test_nets, self.test_data, strict=True)):
            count = self.s.test_iter[number]
            done = self.iteration // self.s.test_interval if self.s.test_interval else 0
            done -= not self.s.test_initialization and done > 0
            batches, sums, loss = data(done * count), {}, 0.0
            self.log(f"Iteration {self.iteration}, Testing net (#{number})")
            was = net.training
            net.eval()
            for _ in range(count):
                batch = {
                    k: v.to(self.device) for k, v in next(batches).items() if k in net.phase.graph.inputs
                }
                outputs = net(**batch)
                if self.s.test_compute_loss and net.phase.loss_weights:
                    loss += float(net.loss(outputs)) / count
                for name, value in _named(net, outputs).items():
                    sums[name] = sums.get(name, 0) + value.detach()
            weights = net.phase.loss_weights
            results.append({name: value / count for name, value in sums.items()})
            shown = _unread(net, results[-1])
            net.train(was)
            self.show_test(shown, weights, loss)
        return results

    def show_test(self, result: dict[str, Tensor], weights: dict[str, float], loss: float) -> None:
        """Log the means of a test net's outputs."""
        if self.s.test_compute_loss:
            self.log(f"Test loss: {loss:g}")
        for line in scores("Test", result, weights):
            self.log(line)

    # ---------------------------------------------------------------------------------------- snapshots

    @property
    def prefix(self) -> str:
        """snapshot_prefix, relative to the working directory. If it is a folder, the solver file's name is added."""
        return snapshots.prefix_of(self.settings)

    def snapshot(self) -> Path | None:
        """Write PREFIX_iter_N.caffemodel, .solverstate and .random. Each file is complete or absent.

        Caffe can resume from the first two. The third has the seed and torch's random numbers, so that a resumed run
        continues exactly.
        """
        return None if self.rank else snapshots.write(self)

    def resume(self, path=None) -> None:
        """Continue from a snapshot: a .solverstate, or the newest one of the prefix. Without one, start at 0.

        Raises:
            CaffeValueError: the file is damaged, or belongs to another net or solver.
        """
        path = newest(self.prefix) if path is None else Path(path)
        if path is None:
            self.log(f"No snapshot {self.prefix}_iter_*.solverstate: training starts at 0")
            return
        snapshots.read(self, path)
        self._batches = None
        self.log(f"Restored the solver's state of iteration {self.iteration} from {path}")

    def write_curve(self) -> Path:
        """Write PREFIX_loss.csv (iteration, lr, loss) and, if matplotlib is installed, PREFIX_loss.svg."""
        return snapshots.write_curve(
            Path(f"{self.prefix}_loss.csv"), Path(self.settings.path).name, self.losses
        )


def _made(source: str, state: State, settings: Settings, options: dict) -> CaffeNet:
    try:
        return caffe_net(source, stages=tuple(state.stages), level=state.level, **options)
    except OSError as error:
        raise CaffeValueError(f"{settings.path}: its net: {error}") from None


def _layers_data(training: Training, net: CaffeNet) -> Data:
    """What the data layers of a net make."""

    def batches(start: int, phase: str = TRAIN if net is training.net else TEST):
        was = net.training
        net.train(phase == TRAIN)
        rank, world = (training.rank, training.world) if phase == TRAIN else (0, 1)
        loaders = data_loaders(
            net, start=start, workers=training.workers, seed=training.seed, rank=rank, world=world
        )
        net.train(was)
        graph = net.phases[phase].graph
        dummies = Dummies(graph.sources, net.phases[phase].shapes)
        files = merged(loaders) if loaders else repeat({})
        return _whole(net.path, graph, phase, files, dummies)

    return batches


def _whole(path: str, graph: Graph, phase: str, files: Iterable[dict[str, Tensor]], dummies: Dummies):
    """The batches of files, with the blobs that DummyData makes."""
    known = {top for spec in graph.sources if spec.type in READ for top in spec.tops}
    for batch in files:
        whole = batch | dummies.batch()
        if missing := [name for name in graph.inputs if name not in known and name not in whole]:
            raise CaffeValueError(_unmade(path, graph, missing[0], phase))
        yield whole


def _unmade(path: str, graph: Graph, name: str, phase: str) -> str:
    """Which layer of a phase waits for a blob that no data layer makes."""
    readers = (step.spec for step in graph.steps if name in step.spec.bottoms)
    spec = next((s for s in graph.sources if name in s.tops), None) or next(readers)
    return (
        f"{path}, line {spec.line}: {spec.name!r} ({spec.type}): no data layer of phase {phase} reads {name!r}: "
        "in Python, Training(..., data=) gives it"
    )


def _device(s) -> str:
    on_gpu = s.solver_mode == s.GPU and torch.cuda.is_available()
    return f"cuda:{os.environ.get('LOCAL_RANK', s.device_id)}" if on_gpu else "cpu"


def _named(net: CaffeNet, outputs) -> dict[str, Tensor]:
    return outputs if isinstance(outputs, dict) else {net.outputs[0]: outputs}


def _unread(net: CaffeNet, outputs) -> dict[str, Tensor]:
    """The outputs that Caffe logs: those that no layer reads, and not also every loss."""
    named = _named(net, outputs)
    return {name: named[name] for name in net.phase.graph.outputs if name in named}


def _not_finite(net: CaffeNet, iteration: int, loss: float) -> str:
    layers = [key for key, m in net.named_children() if not all(map(_is_finite, m.parameters()))]
    where = "the weights are finite: look at the data"
    if layers:
        where = f"the weights of {', '.join(some(layers))}"
    return (
        f"Iteration {iteration}: the loss is {loss:g}. Not finite: {where}. Training goes on, as in Caffe. "
        "A lower base_lr or clip_gradients may help"
    )


def _is_finite(tensor: Tensor) -> bool:
    return bool(tensor.isfinite().all())
