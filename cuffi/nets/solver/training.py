"""Caffe's training loop: trains by a solver file, as `caffe train` does."""

from __future__ import annotations

import csv
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from ...base import CaffeTypeError, CaffeValueError, describe
from ...base.files import written_whole
from ..data.loader import data_loaders, merged
from ..net import caffe_net
from ..net.net import CaffeNet
from ..net.phases import TEST, TRAIN, State
from .optimizer import caffe_solver, unwrapped
from .solver_prototxt import Settings, read_settings
from .solverstate import load_solverstate, newest, save_solverstate

# A function that takes a batch number and yields the batches from there on: dicts of tensors, by input blob.
Data = Callable[[int], Iterator[dict[str, Tensor]]]


class Training:
    """A net, its solver and its data. `run` trains to max_iter, `step` some iterations.

    Args:
        path: the solver.prototxt.
        net: the net to train; None: the one that the file names.
        data: a function that takes a batch number and yields the batches from there on, dicts of tensors by blob.
            None: the net's data layers.
        test_data: the same for each test net. None: their data layers.
        device: the net's device: 'cpu', 'cuda:0'. None: by solver_mode, if there is a GPU.
        amp: compute forward and loss under autocast: torch.bfloat16, torch.float16 or None.
        workers: the number of processes that read data.
        log: called with each line of progress.
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
        log: Callable[[str], None] = print,
        **options,
    ):
        self.settings = settings = read_settings(path)
        self.s, self.log, self.workers, self.amp = settings.s, log, workers, amp
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = torch.device(device or _device(self.s))
        self.on_gpu = self.device.type == "cuda"
        self.seed = self.s.random_seed if self.s.random_seed >= 0 else secrets.randbits(31)
        torch.manual_seed(self.seed + self.rank)
        made = net if net is not None else _made(*settings.train_net(), settings, options)
        inner = unwrapped(made)
        if not isinstance(inner, CaffeNet):
            raise CaffeTypeError(f"train: net: expected a CaffeNet, got {describe(net)}")
        self.net: CaffeNet = inner.to(self.device)
        self.net.train()
        self.called = made if made is not self.net else self._parallel()
        self.optimizer, self.schedule = caffe_solver(path, self.called)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=amp == torch.float16)
        self.test_nets = [] if test_data == [] else self._test_nets(options)
        self.data = data or self._layers_data(self.net)
        self.test_data = test_data or [self._layers_data(test) for test in self.test_nets]
        if self.s.snapshot_format == self.s.HDF5:
            log(
                "snapshot_format HDF5: snapshots are written as .caffemodel and .solverstate, which Caffe reads, too"
            )
        self.iteration = 0
        self.losses: list[tuple[int, float, float]] = []
        self._recent: deque[Tensor] = deque(maxlen=self.s.average_loss)
        self._batches: Iterator[dict[str, Tensor]] | None = None

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

    def _layers_data(self, net: CaffeNet) -> Data:
        def batches(start: int, phase: str = TRAIN if net is self.net else TEST):
            was = net.training
            net.train(phase == TRAIN)
            rank, world = (self.rank, self.world) if phase == TRAIN else (0, 1)
            loaders = data_loaders(
                net, start=start, workers=self.workers, seed=self.seed, rank=rank, world=world
            )
            net.train(was)
            if not loaders and net.phases[phase].graph.inputs:
                raise CaffeValueError(f"{net.path}: no data layer that can be read: pass data=")
            return merged(loaders)

        return batches

    # ---------------------------------------------------------------------------------------- the loop

    def run(self) -> None:
        """Train up to max_iter, with the file's tests and snapshots."""
        self.step(self.s.max_iter - self.iteration)
        if self.s.snapshot_after_train and not (self.s.snapshot and self.iteration % self.s.snapshot == 0):
            self.snapshot()
        if self.s.test_interval and self.iteration % self.s.test_interval == 0:
            self.test()

    def step(self, count: int) -> None:
        """Make `count` updates."""
        s = self.s
        for _ in range(count):
            due = s.test_interval and self.iteration % s.test_interval == 0
            if due and (self.iteration or s.test_initialization):
                self.test()
            loss = self._forward_backward()
            self._recent.append(loss)
            if s.display and self.iteration % s.display == 0:
                self._display()
            self.update()
            if s.snapshot and self.iteration % s.snapshot == 0:
                self.snapshot()

    def update(self) -> None:
        """One update of the parameters, by their gradients."""
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        self.iteration += 1

    def _forward_backward(self) -> Tensor:
        """The gradients of iter_size batches, and their mean loss."""
        if self._batches is None:
            self._batches = self.data(self.iteration * self.s.iter_size)
        self.net.train()
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        for _ in range(self.s.iter_size):
            batch = next(self._batches, None)
            if batch is None:
                raise CaffeValueError(f"{self.net.path}: the data ended at iteration {self.iteration}")
            with torch.autocast(self.device.type, self.amp or torch.bfloat16, enabled=self.amp is not None):
                loss = self.net.loss(self.called(**self._moved(batch)))
            self.scaler.scale(loss).backward()
            total += loss.detach() / self.s.iter_size
        return total

    def _moved(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        known = self.net.phase.graph.inputs
        return {k: v.to(self.device, non_blocking=True) for k, v in batch.items() if k in known}

    def _display(self) -> None:
        loss = float(torch.stack(list(self._recent)).mean())
        rate = self.settings.rate(self.iteration)
        self.losses.append((self.iteration, rate, loss))
        if self.rank == 0:
            self.log(f"Iteration {self.iteration}, lr = {rate:g}, loss = {loss:.6g}")

    @torch.no_grad()
    def test(self) -> list[dict[str, Tensor]]:
        """Test each net on test_iter batches. Returns the means of its outputs, and logs them."""
        results = []
        for number, (net, data) in enumerate(zip(self.test_nets, self.test_data, strict=True)):
            count = self.s.test_iter[number]
            done = self.iteration // self.s.test_interval if self.s.test_interval else 0
            done -= not self.s.test_initialization and done > 0
            batches, sums = data(done * count), {}
            was = net.training
            net.eval()
            for _ in range(count):
                batch = {
                    k: v.to(self.device) for k, v in next(batches).items() if k in net.phase.graph.inputs
                }
                outputs = net(**batch)
                named = outputs if isinstance(outputs, dict) else {net.outputs[0]: outputs}
                for name, value in named.items():
                    sums[name] = sums.get(name, 0) + value.detach()
            net.train(was)
            results.append({name: value / count for name, value in sums.items()})
            self.show_test(number, results[-1])
        return results

    def show_test(self, number: int, result: dict[str, Tensor]) -> None:
        """Log the means of a test net's outputs."""
        for name, value in result.items() if self.rank == 0 else ():
            shown = ", ".join(f"{v:.6g}" for v in value.reshape(-1)[:8].tolist())
            self.log(f"Iteration {self.iteration}, test net #{number}: {name} = {shown}")

    # ---------------------------------------------------------------------------------------- snapshots

    @property
    def prefix(self) -> str:
        """snapshot_prefix, relative to the working directory. If it is a folder, the solver file's name is added."""
        prefix = self.s.snapshot_prefix or str(Path(self.settings.path).with_suffix(""))
        return f"{prefix.rstrip('/')}/{Path(self.settings.path).stem}" if os.path.isdir(prefix) else prefix

    def snapshot(self) -> Path | None:
        """Write PREFIX_iter_N.caffemodel, .solverstate and .random. Each file is complete or absent.

        Caffe can resume from the first two. The third has the seed and torch's random numbers, so that a resumed run
        continues exactly.
        """
        if self.rank:
            return None
        path = Path(f"{self.prefix}_iter_{self.iteration}.solverstate")
        path.parent.mkdir(parents=True, exist_ok=True)
        weights = path.with_suffix(".caffemodel")
        self.net.save_caffemodel(weights)
        random = {"seed": self.seed, "cpu": torch.get_rng_state(), "scaler": self.scaler.state_dict()}
        if self.on_gpu:
            random["cuda"] = torch.cuda.get_rng_state(self.device)
        with written_whole(path.with_suffix(".random")) as file:
            torch.save(random, file)
        save_solverstate(path, self.net, self.optimizer, self.iteration, weights)
        self.log(f"Snapshot: {path}")
        return path

    def resume(self, path=None) -> None:
        """Continue from a snapshot: a .solverstate, or the newest one of the prefix. Without one, start at 0.

        Raises:
            CaffeValueError: the file is damaged, or belongs to another net or solver.
        """
        path = newest(self.prefix) if path is None else Path(path)
        if path is None:
            self.log(f"No snapshot {self.prefix}_iter_*.solverstate: training starts at 0")
            return
        state = load_solverstate(path, self.net, self.optimizer, self.schedule)
        weights = path.with_suffix(".caffemodel")
        self.net.load_caffemodel(weights if weights.exists() else state.learned_net)
        self.iteration, self._batches = state.iteration, None
        random = path.with_suffix(".random")
        if random.exists():
            saved = torch.load(random, weights_only=True)
            self.seed = saved["seed"]
            torch.set_rng_state(saved["cpu"])
            if "cuda" in saved and self.on_gpu:
                torch.cuda.set_rng_state(saved["cuda"], self.device)
            self.scaler.load_state_dict(saved["scaler"])
        self.log(f"Resumed from {path}, iteration {self.iteration}")

    def write_curve(self) -> Path:
        """Write PREFIX_loss.csv (iteration, lr, loss) and, if matplotlib is installed, PREFIX_loss.svg."""
        path = Path(f"{self.prefix}_loss.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("iteration", "lr", "loss"), *self.losses])
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return path
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot([row[0] for row in self.losses], [row[2] for row in self.losses])
        axes.set(xlabel="iteration", ylabel="loss", title=Path(self.settings.path).name)
        figure.savefig(path.with_suffix(".svg"))
        return path.with_suffix(".svg")


def _made(source: str, state: State, settings: Settings, options: dict) -> CaffeNet:
    try:
        return caffe_net(source, stages=tuple(state.stages), level=state.level, **options)
    except OSError as error:
        raise CaffeValueError(f"{settings.path}: its net: {error}") from None


def _device(s) -> str:
    on_gpu = s.solver_mode == s.GPU and torch.cuda.is_available()
    return f"cuda:{os.environ.get('LOCAL_RANK', s.device_id)}" if on_gpu else "cpu"
