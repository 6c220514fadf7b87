"""The blobs of a net's layers: those that layers share, their multipliers, and the losses' weights."""

from __future__ import annotations

import torch
from torch import nn

from ...base.once import once
from ...caffe_files.parameters import read_fields
from ...caffe_files.prototxt import Node, number
from ..stock import StockLayer, blobs_of
from .graph import Spec
from .messages import STOCK
from .net import CaffeNet
from .report import Report


def share(net: CaffeNet, report: Report) -> None:
    """Share parameters: blobs with the same `param { name }`, and a layer's submodules for training and testing."""
    owners: dict[str, tuple[Spec, torch.Tensor]] = {}
    for key, module in net.named_children():
        spec = net.specs[key]
        blobs, params = blobs_of(module), spec.node.nodes("param")
        if len(params) > len(blobs):
            report.add(spec, f"{len(params)} `param` for {len(blobs)} blobs")
        for param, (attribute, blob) in zip(params, blobs, strict=False):
            if not param.value("name"):
                continue
            owner, own = owners.setdefault(param.value("name"), (spec, blob))
            if own.shape == blob.shape:
                setattr(module, attribute, own)
            elif (owned := _viewed(param, blob, own)) is not None and isinstance(module, StockLayer):
                view(module, attribute, owned)
            else:
                report.add(spec, _why_unshared(param, blob, owner, own))
    for keys in net.keys.values():
        first = net.get_layer(keys[0])
        for key in keys[1:]:
            module = net.get_layer(key)
            for attribute, blob in blobs_of(module):
                own = getattr(first, attribute, None)
                if isinstance(own, torch.Tensor) and own.shape == blob.shape:
                    setattr(module, attribute, own)


def _viewed(param: Node, blob: torch.Tensor, own: torch.Tensor) -> nn.Parameter | None:
    """`own`, if blobs of two shapes may share it. Caffe then compares their counts."""
    said = param.value("share_mode") in ("PERMISSIVE", "1")
    if said and own.numel() == blob.numel() and isinstance(blob, nn.Parameter):
        return own if isinstance(own, nn.Parameter) else None
    return None


def _why_unshared(param: Node, blob: torch.Tensor, owner: Spec, own: torch.Tensor) -> str:
    what = "with share_mode PERMISSIVE, which a ported layer and a buffer do not support"
    what = what if _viewed(param, blob, own) is not None else "with another shape"
    return f"shares {param.value('name')!r} with {owner.name!r} {what}: {list(blob.shape)}, {list(own.shape)}"


def set_multipliers(net: CaffeNet, report: Report) -> None:
    """Each blob's multipliers. Layers of a phase that share a blob must give the same multipliers, or none."""
    modules = {spec: net.get_layer(key) for key, spec in net.specs.items()}
    known: dict[int, list[float | None]] = {}
    for phase in net.phases.values():
        of_phase: dict[int, list[float | None]] = {}
        for spec in (step.spec for step in phase.graph.steps if step.spec in modules):
            module = modules[spec]
            blobs = [blob for _, blob in blobs_of(module)]
            for said, blob in zip(_multipliers(spec, module), blobs, strict=False):
                if id(blob) not in known:
                    both = of_phase.setdefault(id(blob), [None, None])
                    for i, what in enumerate(("lr_mult", "decay_mult")):
                        if both[i] is not None and said[i] not in (None, both[i]):
                            reason = f"{what} {said[i]:g} of a shared parameter for which another layer says"
                            report.add(spec, f"{reason} {both[i]:g}")
                        both[i] = said[i] if both[i] is None else both[i]
        known.update(of_phase)
    for key, module in net.named_children():
        both = [known.get(id(blob), [None, None]) for _, blob in blobs_of(module)]
        net.multipliers[key] = [(1.0 if m is None else m, 1.0 if d is None else d) for m, d in both]
        for (mult, _), (_, blob) in zip(net.multipliers[key], blobs_of(module), strict=True):
            if isinstance(blob, nn.Parameter) and mult == 0:
                blob.requires_grad_(False)


def _multipliers(spec: Spec, module: nn.Module) -> list[list[float | None]]:
    """lr_mult and decay_mult of each blob; None: not given. A ported layer's SetUp may have changed them."""
    names = ("lr_mult", "decay_mult")
    found: list[list[float | None]] = []
    for node in spec.node.nodes("param"):
        param = STOCK.message("ParamSpec")
        read_fields(node, param)
        found.append([getattr(param, name) if param.HasField(name) else None for name in names])
    for i in range(len(blobs_of(module))) if not isinstance(module, StockLayer) else ():
        found += [[None, None]] * (i >= len(found))
        for j, name in enumerate(names):
            values = getattr(module, name, ())
            if i < len(values) and values[i] != (1 if found[i][j] is None else found[i][j]):
                found[i] = [values[i] if j == k else found[i][k] for k in range(2)]
    return found


def set_loss_weights(net: CaffeNet) -> None:
    """Each loss's weight: the file's, or 1 of the first top of a loss."""
    modules = {spec: net.get_layer(key) for key, spec in net.specs.items()}
    for phase in net.phases.values():
        for step in phase.graph.steps:
            weights = [number(w) for w in step.spec.node.values("loss_weight")]
            module = modules.get(step.spec)
            is_loss = module.is_loss if isinstance(module, StockLayer) else step.spec.type.endswith("Loss")
            if not weights and is_loss and step.spec.tops:
                weights = [1.0]
            for blob, weight in zip(step.spec.tops, weights, strict=False):
                if weight:
                    phase.loss_weights[blob] = weight


# ------------------------------------------------------------------------------- share_mode: PERMISSIVE


def view(module: nn.Module, attribute: str, owner: nn.Parameter) -> None:
    """Let the module's blob be the owner's values, in the shape that the blob has now.

    The module holds the owner as `shared_ATTRIBUTE`, so that it trains, moves and is copied as any shared parameter.
    """
    views = module.__dict__.get("_views", {}) | {attribute: getattr(module, attribute).shape}
    del module._parameters[attribute]
    module.register_parameter(f"shared_{attribute}", owner)
    module.__dict__["_views"] = views
    if not isinstance(module, _Viewing):
        module.__class__ = _viewing(type(module))


class _Viewing(nn.Module):
    def __getattr__(self, name: str):
        views = self.__dict__.get("_views", {})
        if name in views and name not in self._parameters:
            owner = self._parameters[f"shared_{name}"]
            if owner is not None:
                return owner.view(views[name])
        return super().__getattr__(name)

    def __reduce_ex__(self, protocol):
        return _empty, (type(self).__mro__[2],), self.__getstate__()


@once
def _viewing(kind: type[nn.Module]) -> type:
    return type(kind.__name__, (_Viewing, kind), {"__module__": kind.__module__})


def _empty(kind: type[nn.Module]) -> nn.Module:
    made = _viewing(kind)
    return made.__new__(made)
