"""Whole networks as users run them: torchvision's models, with DepthwiseConv2d for each depthwise nn.Conv2d.

For inference it also computes the batch norm and the activation after it, if there are any.

The figure is torch's wall time divided by ours, of a training step (forward, loss, backward, SGD) or of an inference
call; above 1, ours is faster. It is measured eagerly, then as one CUDA graph per step, and under torch.compile. In the
first two a third model runs, in which the replaced layers cost nothing: the bound of what any layer can gain.
"""

import copy
import statistics
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from . import _machine
from ._machine import GPU
from ._report import Report, Settings, brief
from ._timing import in_turns, on_wall

GROUP = "network"
LAYER = "depthwise_conv"
TRAINING, INFERENCE = "training step", "inference"
EAGER, GRAPH = "eager", "CUDA graph"
COMPILED, REDUCED = "torch.compile", "torch.compile, reduce-overhead"
# (model, run, batch)
RUNS = (
    ("mobilenet_v2", TRAINING, 16),
    ("mobilenet_v2", TRAINING, 128),
    ("mobilenet_v2", INFERENCE, 1),
    ("mobilenet_v2", INFERENCE, 16),
    ("mobilenet_v2", INFERENCE, 128),
    ("convnext_tiny", TRAINING, 32),
    ("convnext_tiny", INFERENCE, 1),
    ("convnext_tiny", INFERENCE, 32),
)
# Under torch.compile, in which each compilation takes a minute.
COMPILED_RUNS = (
    ("mobilenet_v2", INFERENCE, 1),
    ("mobilenet_v2", INFERENCE, 16),
    ("mobilenet_v2", INFERENCE, 128),
    ("convnext_tiny", INFERENCE, 32),
    ("mobilenet_v2", TRAINING, 16),
    ("mobilenet_v2", TRAINING, 64),
)
OURS, TORCH, FREE = "ours", "torch", "free"
NAMES: dict[type[nn.Module], str] = {nn.ReLU: "relu", nn.ReLU6: "relu6", nn.SiLU: "silu", nn.GELU: "gelu"}
LEAST, MEAN = 1.0, 1.25  # to reach: each cell, and the geometric mean of the eager ones


class Column(NamedTuple):
    """A precision and a layout."""

    amp: bool
    layout: torch.memory_format

    def __str__(self) -> str:
        layout = "channels_last" if self.layout == torch.channels_last else "contiguous"
        return f"{'AMP' if self.amp else 'fp32'} {layout}"


COLUMNS = [
    Column(amp, layout) for amp in (False, True) for layout in (torch.contiguous_format, torch.channels_last)
]


def measure(settings: Settings) -> Report:
    report = Report(
        "Networks, torch's wall time over ours, of what a layer without cost would give (ms of ours)"
    )
    if reason := absent():
        report.notes.append(f"Nothing was measured: {reason}.")
        return report
    with torch.backends.cudnn.flags(enabled=True, benchmark=not settings.quick):
        for mode in (EAGER, GRAPH):
            for model, run, batch in RUNS:
                row(report, settings, mode, model, run, batch)
        for mode in () if settings.quick else (COMPILED, REDUCED):
            for model, run, batch in COMPILED_RUNS:
                row(report, settings, mode, model, run, batch)
    report.notes += [
        "AMP: torch.autocast to half, no scaler. Both have the same weights; cudnn.benchmark is on, unless --quick.",
    ]
    if report.rows:
        summarise(report)
    return report


def absent() -> str | None:
    """The reason why nothing can be measured, or None."""
    if not torch.cuda.is_available():
        return "there is no GPU"
    try:
        import torchvision  # noqa: F401
    except ImportError:
        return "torchvision is not installed"
    return None


def exchanged(model: nn.Module, made: Callable[..., nn.Module], run: str) -> nn.Module:
    """A copy of a model with another layer for each depthwise nn.Conv2d, for inference with its neighbours."""
    model = copy.deepcopy(model)
    for parent in list(model.modules()):
        for name, conv in list(parent.named_children()):
            if isinstance(conv, nn.Conv2d) and conv.groups == conv.in_channels == conv.out_channels > 1:
                behind = []
                if run == INFERENCE and isinstance(parent, nn.Sequential) and name.isdigit():
                    behind = neighbours(parent, int(name))
                    del parent[int(name) + 1 : int(name) + 1 + len(behind)]
                setattr(parent, name, made(conv, *behind))
    return model


def neighbours(parent: nn.Sequential, place: int) -> list[nn.Module]:
    """The batch norm and the activation behind a layer; nothing if there is no norm."""
    behind = list(parent)[place + 1 : place + 3]
    if not behind or not isinstance(behind[0], nn.BatchNorm2d):
        return []
    return behind if type(behind[-1]) in NAMES else behind[:1]


def ours(conv: nn.Conv2d, norm: nn.Module | None = None, activation: nn.Module | None = None) -> nn.Module:
    """Our layer, with the same weights."""
    from cuffi.depthwise_conv import DepthwiseConv2d

    sizes = conv.in_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation
    layer = DepthwiseConv2d(*sizes, conv.bias is not None, activation=activation and NAMES[type(activation)])
    layer.load_state_dict(conv.state_dict())
    layer.norm = norm
    return layer.to(conv.weight)


class Free(nn.Module):
    """A layer that takes no time. Its top is its bottom or, if the shapes differ, memory that is not written."""

    def __init__(self, conv: nn.Conv2d, *_: nn.Module):
        super().__init__()
        self.shaped = [conv]  # in a list, so that it is not a submodule; it only computes shapes
        self.buffers_of: dict[tuple, tuple[Tensor, Tensor]] = {}

    def forward(self, bottom: Tensor) -> Tensor:
        key = bottom.shape, bottom.dtype
        if key not in self.buffers_of:
            with torch.no_grad():
                top = self.shaped[0].to(bottom.device)(bottom)
                self.buffers_of[key] = torch.zeros_like(top), torch.zeros_like(bottom)
        top, bottom_diff = self.buffers_of[key]
        return bottom if top.shape == bottom.shape else _InMemory.apply(bottom, top, bottom_diff)


class _InMemory(torch.autograd.Function):
    @staticmethod
    def forward(ctx, bottom, top, bottom_diff):
        ctx.bottom_diff = bottom_diff
        return top.detach()

    @staticmethod
    def backward(ctx, *top_diffs):
        return ctx.bottom_diff.detach(), None, None


def row(report: Report, settings: Settings, mode: str, name: str, run: str, batch: int) -> None:
    cells, shown = {}, {}
    for column in COLUMNS:
        try:
            cells[str(column)] = cell(settings, mode, name, run, batch, column)
        except Exception as error:  # if one does not compile, the others still run
            report.notes.append(f"{name} {run} {batch} {mode}, {column}: {brief(error)}")
            cells[str(column)] = None
        torch.cuda.empty_cache()
    for column, times in cells.items():
        most = f" of {times.ratio(TORCH, FREE):.2f}" if times and FREE in times else ""
        shown[column] = times and f"{times.ratio(TORCH, OURS):.2f}{most} ({times.median(OURS) * 1e3:.3g})"
    what = {"model": name, "run": run, "batch": batch, "mode": mode}
    report.shown.append({**what, **shown})
    for column, times in cells.items():
        if times:
            seconds = {contender: times.median(contender) for contender in times}
            spreads = {f"{contender} spread": times.spread(contender) for contender in times}
            most = times.ratio(TORCH, FREE) if FREE in times else None
            ratio = times.ratio(TORCH, OURS)
            report.rows.append({**what, "column": column, **seconds, "ratio": ratio, "most": most, **spreads})


def cell(settings: Settings, mode: str, name: str, run: str, batch: int, column: Column):
    """The times of the contenders."""
    import torchvision

    # Without it, earlier cells count against torch's limit of recompilations, and later ones run uncompiled.
    torch.compiler.reset()
    torch.manual_seed(0)
    plain = torchvision.models.get_model(name, weights=None).cuda().to(memory_format=column.layout)
    images = torch.randn(batch, 3, 224, 224, device=GPU).contiguous(memory_format=column.layout)
    settle(plain, images)
    models = {TORCH: plain, OURS: exchanged(plain, ours, run)}
    agree(models, images, column)
    if mode in (EAGER, GRAPH):
        models[FREE] = exchanged(plain, Free, run)
    labels = torch.randint(0, 1000, (batch,), device=GPU)
    timers = {}
    for contender, model in models.items():
        call = step(compiled(model, mode), model, images, labels, run, column)
        timers[contender] = on_wall([graphed(call) if mode == GRAPH else call], rounds=4)
    return in_turns(timers, seconds=0.4 if settings.quick else 2.0, most=15 if settings.quick else 60)


def settle(model: nn.Module, images) -> None:
    """Give the batch norms the statistics of the images. With those of a new model, half precision would overflow."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the plain mean of all batches; there is only one
    with torch.no_grad():
        model.train()(images)
    for norm in norms:
        norm.momentum = 0.1


def agree(models: dict[str, nn.Module], images, column: Column) -> None:
    """Compare the results of both networks within the precision, because a time for a wrong network is worthless."""
    # With TF32, torch's own convolutions differ from run to run by more than this.
    with torch.no_grad(), autocast(column), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        answers = [model.eval()(images[:2]).float() for model in (models[TORCH], models[OURS])]
    error = ((answers[0] - answers[1]).norm() / answers[0].norm()).item()
    if not error <= (3e-2 if column.amp else 3e-3):
        raise RuntimeError(f"the exchanged model's answer differs by {error:.1e}")


def autocast(column: Column):
    return torch.autocast(GPU, torch.float16, enabled=column.amp)


def compiled(model: nn.Module, mode: str) -> Callable:
    """What runs the model in this mode."""
    if mode in (EAGER, GRAPH):
        return model
    return torch.compile(model, mode="reduce-overhead" if mode == REDUCED else None)


def step(runs: Callable, model: nn.Module, images, labels, run: str, column: Column) -> Callable[[], object]:
    """A function without arguments that does one step of the model, by `runs`."""

    def infer():
        with torch.no_grad(), autocast(column):
            return runs(images)

    def loss():
        with autocast(column):
            return nn.functional.cross_entropy(runs(images), labels)

    model.train(run == TRAINING)
    return training_step(model, loss) if run == TRAINING else infer


def training_step(model: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], Tensor]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step


def graphed(call: Callable[[], object]) -> Callable[[], object]:
    """A function that does the same as `call` by one CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call()

    # What `call` holds, an optimizer's buffers too, is what the graph works on.
    def replay(kept=(call, kept)):
        graph.replay()

    return replay


def summarise(report: Report) -> None:
    here = _machine.here(GPU)
    for mode in dict.fromkeys(r["mode"] for r in report.rows):
        ratios = [r["ratio"] for r in report.rows if r["mode"] == mode]
        mean = statistics.geometric_mean(ratios)
        aim = MEAN if mode == EAGER else None
        report.figure(f"networks, {mode}, geometric mean", here, mean, aim, at_most=False)
        report.figure(f"networks, {mode}, least", here, min(ratios), LEAST, at_most=False)
        most = [r["most"] for r in report.rows if r["mode"] == mode and r["most"]]
        if most:
            mean = f"a geometric mean of {statistics.geometric_mean(most):.2f}"
            report.notes.append(f"Layers that cost nothing would give, {mode}, {mean}.")
