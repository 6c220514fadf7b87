"""Compare a net with torch's code and with a fork's own code: every blob and every gradient.

Both nets have the same parameters and inputs and run on the processor. Gradients are those of a random weighted sum
of the outputs (of the loss, if there is one).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor

from ...nets.forks import ForkLayer
from ...nets.net.net import CaffeNet
from ...nets.stock import StockLayer, blobs_of
from ...nets.stock.normalisation import BatchNorm


@dataclass
class Difference:
    """The largest difference of one tensor, relative to its largest value."""

    what: str  # "blob" or "gradient"
    name: str
    error: float
    nothing: bool = False  # zero in both nets, so the comparison proves nothing


def twin_parameters(first: CaffeNet, second: CaffeNet) -> None:
    """Give the second net the first one's parameters."""
    with torch.no_grad():
        for key, module in first.named_children():
            for (_, own), (_, other) in zip(blobs_of(module), blobs_of(second.get_layer(key)), strict=True):
                other.copy_(own.reshape(other.shape))


@torch.no_grad()
def vary(net: CaffeNet) -> None:
    """Fill parameters that the fillers leave at zero, such as biases and statistics, with random values.

    A net whose last weights are zero has no gradients, and any two such nets agree.
    """
    generator = torch.Generator().manual_seed(7)
    for module in net.children():
        for name, blob in blobs_of(module):
            if blob.count_nonzero() or not blob.numel():
                continue
            if isinstance(module, BatchNorm) and name != "mean":
                blob.copy_(torch.rand(blob.shape, generator=generator, dtype=blob.dtype) + 0.5)
                continue
            fan = blob[0].numel() if blob.dim() > 1 else 100
            blob.copy_(torch.randn(blob.shape, generator=generator, dtype=blob.dtype) / fan**0.5)


def compare(native: CaffeNet, unedited: CaffeNet, inputs: dict[str, Tensor], gradients: bool = True):
    """The differences of all blobs, and of all parameters' gradients."""
    differences = []
    if gradients:
        with _without_noise(native), _without_noise(unedited):
            ours, theirs = _blobs(native, inputs), _blobs(unedited, inputs)
    else:
        with torch.no_grad():
            ours, theirs = _blobs(native, inputs), _blobs(unedited, inputs)
    for name in native.phase.graph.latest:
        if name not in inputs:
            differences.append(difference("blob", name, ours[name], theirs[name]))
    if gradients:
        both_gradients = [gradients_of(net, blobs) for net, blobs in ((native, ours), (unedited, theirs))]
        # The gradient of a bias before a norm is zero, except for rounding errors of the net's other gradients.
        least = 1e-10 * max(
            (float(g.abs().max()) for g in both_gradients[1].values() if g is not None), default=0.0
        )
        for name, gradient in both_gradients[0].items():
            differences.append(difference("gradient", name, gradient, both_gradients[1][name], least))
    return differences


def difference(what: str, name: str, a: Tensor | None, b: Tensor | None, least: float = 0.0) -> Difference:
    nothing = not any(t is not None and t.detach().nan_to_num(1).count_nonzero() for t in (a, b))
    return Difference(what, name, relative(a, b, least), nothing)


def relative(a: Tensor | None, b: Tensor | None, least: float = 0.0) -> float:
    """The largest |a - b|, divided by the largest |b| or by `least`, whichever is larger.

    It is infinite if the shapes differ, or if only one of two values is not a number.
    """
    if a is None or b is None:
        present = b if a is None else a
        return 0.0 if present is None or not present.count_nonzero() else float("inf")
    if a.numel() != b.numel():
        return float("inf")
    a, b = a.detach().double().reshape(-1), b.detach().double().reshape(-1)
    same = torch.where(a == b, 0.0, (a - b).abs())  # infinities that agree
    same = torch.where(a.isnan() & b.isnan(), 0.0, same)
    if not same.numel():
        return 0.0
    largest = float(b[b.isfinite()].abs().max()) if b.isfinite().any() else 1.0
    error = float(same.max()) / max(largest, least, 1e-12)
    return error if error == error else float("inf")


def _blobs(net: CaffeNet, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    used = {name: value for name, value in inputs.items() if name in net.inputs}
    return net(**used, blobs=True)


def gradients_of(net: CaffeNet, blobs: dict[str, Tensor]) -> dict[str, Tensor | None]:
    outputs = [name for name in net.outputs if blobs[name].requires_grad]
    if net.phase.loss_weights:
        total = net.loss(blobs)
    else:
        generator = torch.Generator().manual_seed(1)
        total = sum(
            (blobs[name] * torch.randn(blobs[name].shape, generator=generator, dtype=blobs[name].dtype)).sum()
            for name in outputs
        )
    gradients = {}
    if isinstance(total, Tensor) and total.requires_grad:
        net.zero_grad()
        total.backward()
        for key, module in net.named_children():
            for i, (_, blob) in enumerate(blobs_of(module)):
                if isinstance(blob, torch.nn.Parameter) and blob.requires_grad:
                    gradients[f"{net.specs[key].name}[{i}]"] = blob.grad
    return gradients


@contextlib.contextmanager
def _without_noise(net: CaffeNet):
    """Run Dropout as in the phase TEST, because the two nets would draw different random numbers."""
    modes = {m: m.training for key, m in net.named_children() if net.specs[key].type == "Dropout"}
    for module in modes:
        module.train(False)
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.train(mode)


def random_inputs(net: CaffeNet, dtype: torch.dtype) -> dict[str, Tensor]:
    """Make inputs: images around 0, labels as small integers, boxes in the image, a sequence's markers as 0 and 1."""
    generator = torch.Generator().manual_seed(1701)
    labels = _labels(net)
    boxes = {s.spec.bottoms[1] for s in net.phase.graph.steps if s.spec.type.lower().endswith(_OF_BOXES)}
    inputs = {}
    for name in net.inputs:
        if name not in net.shapes:
            continue
        shape = net.shapes[name]
        if name in labels:
            inputs[name] = torch.randint(0, labels[name], shape, generator=generator).to(dtype)
        elif name in boxes:
            inputs[name] = _boxes(net, shape, generator).to(dtype)
        else:
            inputs[name] = torch.randn(shape, generator=generator, dtype=dtype)
    return inputs


def _labels(net: CaffeNet) -> dict[str, int]:
    """The inputs that are labels, with the number of classes. Some nets reshape, shrink or slice them first."""
    counts, sources = {}, {}
    for step in net.phase.graph.steps:
        if len(step.spec.bottoms) == 1 and step.key and not blobs_of(net.get_layer(step.key)):
            sources |= dict.fromkeys(step.spec.tops, step.spec.bottoms[0])
    for step in net.phase.graph.steps:
        if step.spec.type in (
            "SoftmaxWithLoss",
            "Accuracy",
            "HingeLoss",
            "MultinomialLogisticLoss",
            "InfogainLoss",
        ):
            shape = net.shapes.get(step.spec.bottoms[0], (1, 2))
            counts[step.spec.bottoms[1]] = min(
                shape[1] if len(shape) > 1 else 2, counts.get(step.spec.bottoms[1], 1 << 30)
            )
        if step.spec.type in ("SigmoidCrossEntropyLoss", "ContrastiveLoss"):
            counts[step.spec.bottoms[-1]] = 2
        if step.spec.type in ("LSTM", "RNN"):
            counts[step.spec.bottoms[1]] = 2
        if step.spec.type == "Embed":
            _, weight = blobs_of(net.get_layer(step.key))[0]
            counts[step.spec.bottoms[0]] = weight.shape[0]
    for top, bottom in reversed(sources.items()):
        if top in counts:
            counts[bottom] = min(counts[top], counts.get(bottom, 1 << 30))
    return counts


_OF_BOXES = ("roipooling", "roialign")


def _boxes(net: CaffeNet, shape, generator) -> Tensor:
    """Rows of (item 0, left, top, right, bottom), as in Fast R-CNN, in the first image among the inputs."""
    height, width = next((s[2:] for n, s in net.shapes.items() if n in net.inputs and len(s) == 4), (16, 16))
    corners = torch.rand(shape[0], 4, generator=generator) / 2
    corners[:, 2:] += corners[:, :2]
    corners = (corners * torch.tensor([width, height] * 2)).floor()
    return torch.cat((torch.zeros(shape[0], 1), corners), 1).reshape(shape)


def runs_by(module) -> str:
    if isinstance(module, ForkLayer):
        return f"torch, as {module.source}"
    return "torch" if isinstance(module, StockLayer) else f"ported ({module.layer.name})"
