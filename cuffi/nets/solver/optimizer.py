"""Caffe's solvers as a torch optimizer and a schedule of its rate."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from ...base import CaffeTypeError, describe
from ..net.net import CaffeNet
from ..stock import blobs_of
from .solver_prototxt import Settings, read_settings
from .updates import RULES

# The numbers of a group's update, by their names in SolverParameter.
HYPER = ("momentum", "momentum2", "delta", "rms_decay")


class CaffeOptimizer(torch.optim.Optimizer):
    """Caffe's update of a net's parameters. `caffe_solver` makes one.

    `step` does what Caffe's ApplyUpdate does, in its order: all gradients are clipped together (clip_gradients) and
    divided by iter_size, the weights are regularised (L2: + decay w; L1: + decay sign(w)), and the rule of the solver's
    type updates them (`cuffi/nets/solver/updates.py` has the formulas). So call backward iter_size times, then `step`
    once. A parameter without a gradient is treated as having a gradient of zero: it still decays, as in Caffe.

    Its groups have `lr` (rate times lr_mult), `lr_mult`, `weight_decay` (times decay_mult), and the rule's numbers.

    Args:
        settings: the settings of a solver file.
        groups: groups of parameters with `lr_mult` and `decay_mult`, as `CaffeNet.parameter_groups` makes them.
    """

    def __init__(self, settings: Settings, groups: list[dict]):
        self.settings = settings
        s = settings.s
        defaults = {name: getattr(s, name) for name in HYPER} | {
            "lr": s.base_lr,
            "weight_decay": s.weight_decay,
        }
        super().__init__(groups, defaults | {"lr_mult": 1.0, "decay_mult": 1.0, "step": 0})

    @torch.no_grad()
    def step(self, closure=None):
        """One update. Returns the closure's loss, if there is a closure."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        s = self.settings.s
        gradients = [_gradients(group) for group in self.param_groups]
        factor: float | Tensor = 1 / s.iter_size
        if s.clip_gradients >= 0 and any(gradients):
            factor = factor * self._clip(gradients)
        for group, found in zip(self.param_groups, gradients, strict=True):
            if found:
                self._update(group, found, factor)
            group["step"] += 1
        return loss

    def _clip(self, gradients: list[list[Tensor]]) -> Tensor:
        """The factor that makes the norm of all gradients at most clip_gradients."""
        norms = torch._foreach_norm([g for found in gradients for g in found])
        norm = torch.linalg.vector_norm(torch.stack([n.to(norms[0].device) for n in norms]))
        return (self.settings.s.clip_gradients / norm).clamp(max=1)

    def _update(self, group: dict, g: list[Tensor], factor) -> None:
        params = group["params"]
        rule, remembered = RULES[self.settings.type]
        for p in params:
            if not self.state[p]:
                names = ("history", "history2")[:remembered]
                self.state[p].update(
                    {n: torch.zeros_like(p, memory_format=torch.preserve_format) for n in names}
                )
        if not isinstance(factor, float) or factor != 1:
            g = list(torch._foreach_mul(g, factor))
        if decay := group["weight_decay"]:
            toward = torch._foreach_sign(params) if self.settings.s.regularization_type == "L1" else params
            g = list(torch._foreach_add(g, toward, alpha=decay))
        h = [self.state[p]["history"] for p in params]
        h2 = [self.state[p]["history2"] for p in params] if remembered == 2 else []
        rule(group, params, g, h, h2, group["step"])


def _gradients(group: dict) -> list[Tensor]:
    if any(p.grad is not None and p.grad.is_sparse for p in group["params"]):
        raise CaffeTypeError("caffe_solver: expected dense gradients, got a sparse one")
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in group["params"]]


class CaffeSchedule(LRScheduler):
    """Caffe's lr_policy. Call `step()` after each `optimizer.step()`: the rate is that of the next iteration."""

    optimizer: CaffeOptimizer

    def get_lr(self) -> list[float | torch.Tensor]:
        """The rate of this iteration by the file's lr_policy, times lr_mult, for each group of parameters."""
        rate = self.optimizer.settings.rate(self.last_epoch)
        return [rate * group["lr_mult"] for group in self.optimizer.param_groups]


def caffe_solver(path, net: nn.Module) -> tuple[CaffeOptimizer, CaffeSchedule]:
    """The optimizer and the schedule of a solver file, for a net's parameters.

        optimizer, schedule = caffe_solver("solver.prototxt", net)
        for batch in batches:
            optimizer.zero_grad()
            net.loss(net(**batch)).backward()
            optimizer.step()
            schedule.step()

    Args:
        path: the solver.prototxt, or its Settings.
        net: a CaffeNet, or DistributedDataParallel of one. lr_mult and decay_mult come from its prototxt. Any other
            module trains with multipliers of 1.

    Returns:
        (optimizer, schedule). Both have `state_dict` and `load_state_dict`. `optimizer.settings.s` is the file's
        SolverParameter.

    Raises:
        CaffeValueError: the file is not a solver file, or its type, its policy or one of its fields is unknown or out
            of range.
        CaffeTypeError: net is not a module.
        OSError: the file cannot be read.
    """
    if not isinstance(net, nn.Module):
        raise CaffeTypeError(f"caffe_solver: net: expected a module, got {describe(net)}")
    settings = path if isinstance(path, Settings) else read_settings(path)
    inner = unwrapped(net)
    if isinstance(inner, CaffeNet):
        groups = inner.parameter_groups(settings.s.base_lr, settings.s.weight_decay)
    else:
        groups = [{"params": [p for p in net.parameters() if p.requires_grad]}]
    optimizer = CaffeOptimizer(
        settings, groups or [{"params": []}]
    )  # as Caffe, a net without parameters runs
    return optimizer, CaffeSchedule(optimizer)


def unwrapped(net: nn.Module) -> nn.Module:
    """The net inside of DistributedDataParallel or torch.compile."""
    while not isinstance(net, CaffeNet) and (
        inner := getattr(net, "module", getattr(net, "_orig_mod", None))
    ):
        net = inner
    return net


def learnable(net: CaffeNet) -> list[Tensor]:
    """Caffe's learnable_params, in its order: with statistics, and each shared blob once."""
    found: dict[int, Tensor] = {}
    for module in net.children():
        for _, blob in blobs_of(module):
            found.setdefault(id(blob), blob)
    return list(found.values())
