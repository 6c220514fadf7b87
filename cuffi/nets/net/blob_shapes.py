"""The shapes of a net's blobs, for the inputs' shapes in the file. Finding them makes the layers' parameters."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Container
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ...base import CaffeError
from ...caffe_files.prototxt import render
from ..stock import StockLayer
from ..stock.shapes import Crop
from .choice import Options, ported_module
from .coordinates import crop_offsets
from .graph import Graph, Spec, Step
from .net import CaffeNet
from .phases import TRAIN
from .registry import is_ported
from .report import Report, reason_of

Shape = tuple[int, ...]

# torch.ops fill a cache at their first call below a mode; two threads at once end in its INTERNAL ASSERT (torch 2.11).
_ONE_AT_A_TIME = threading.Lock()


def infer_shapes(
    net: CaffeNet, inputs: dict[str, dict[str, Shape]], said: Container[str], options: Options, report: Report
) -> None:
    """Find the shapes of all blobs of a net, which come into its phases. This also creates the parameters.

    Args:
        inputs: by phase, the shapes of the input blobs.
        said: input blobs whose shape the user or the file says; others are guessed from data layers.
        report: gets the problems.
    """
    inference = _Inference(net, said, options, report)
    for phase, given in inputs.items():
        with _in_phase(net, phase):
            inference.infer(phase, given)


class _Inference:
    """What the phases share: the modules, and shapes that are found already."""

    def __init__(self, net: CaffeNet, said: Container[str], options: Options, report: Report):
        self.net, self.with_shape, self.options, self.report = net, said, options, report
        # nn.Modules. Those that are no StockLayer have a top_shapes of their own.
        self.modules: dict[Spec, Any] = {spec: net.get_layer(key) for key, spec in net.specs.items()}
        self.said: dict[Spec, str] = {}
        self.tops: dict[tuple, list[Shape]] = {}  # by what the file says of a layer, and its bottoms' shapes
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)

    def infer(self, name: str, given: dict[str, Shape]) -> None:
        """Find the shapes of the blobs of a phase, whose modules are in that phase."""
        phase = self.net.phases[name]
        known: dict[int, Shape] = {}
        for blob, value in phase.graph.inputs.items():
            if blob in given:
                known[value] = phase.shapes[blob] = given[blob]
        for step in phase.graph.steps:
            module = self.modules.get(step.spec)
            if (
                step.spec in self.report.always
                or module is None
                or not step.is_complete
                or any(v not in known for v in step.bottoms)
            ):
                continue
            bottoms = [known[v] for v in step.bottoms]
            try:
                tops = self._top_shapes(step, module, bottoms, phase.graph)
            except Exception as error:  # a layer may raise any error about its shapes
                reason = reason_of(error, step.spec) + self._guess(step, phase.graph)
                if getattr(module, "is_set_up", True):  # the shapes are wrong only in this phase
                    self.report.add(step.spec, reason, name)
                else:
                    self.report.stop(step.spec, reason)
                continue
            if len(tops) != len(step.tops):
                self.report.add(step.spec, f"makes {len(tops)} tops, the file names {len(step.tops)}", name)
            for value, blob, shape in zip(step.tops, step.spec.tops, tops, strict=False):
                known[value] = phase.shapes[blob] = shape

    def _guess(self, step: Step, graph: Graph) -> str:
        """A hint for an error of a layer that reads a data layer's top, whose shape is a guess."""
        for blob in step.spec.bottoms:
            if graph.inputs.get(blob) in step.bottoms and blob not in self.with_shape:
                return f". The shape of input {blob!r} was guessed from its data layer: shapes={{{blob!r}: (...)}}"
        return ""

    def _top_shapes(self, step: Step, module: Any, bottoms, graph: Graph) -> list[Shape]:
        if not isinstance(module, StockLayer):
            return self._ported_top_shapes(step.spec, module, bottoms)
        if not module.is_set_up:
            if isinstance(module, Crop):
                self._crop(step, module, graph)
            module.agree(*bottoms)
            module.setup(*bottoms)
            module.is_set_up = True
        if (known := module.top_shapes(*bottoms)) is not None:
            return known
        # A stock layer's shapes are the same in both phases, and those of a layer like it.
        key = (type(module), self._text_of(step.spec), len(step.tops), *bottoms)
        if key not in self.tops:
            # Autocast would keep the fake casts of the parameters, and use them in real calls.
            plain = torch.autocast(torch.get_default_device().type, enabled=False)
            with _ONE_AT_A_TIME, self.fake, torch.no_grad(), plain, _quiet():
                tops = module(*(torch.empty(shape) for shape in bottoms))
                module.reset()
            tops = (tops,) if isinstance(tops, torch.Tensor) else tops
            self.tops[key] = [tuple(top.shape) for top in tops]
        return self.tops[key]

    def _text_of(self, spec: Spec) -> str:
        """What the file says of a layer, but for names: layers of which it says the same make the same shapes."""
        if spec not in self.said:
            self.said[spec] = render(spec.node.without("name", "bottom", "top", "param", "blobs")).lstrip(
                "\n"
            )
        return self.said[spec]

    def _ported_top_shapes(self, spec: Spec, module: Any, bottoms) -> list[Shape]:
        """By the layer's own SetUp and Reshape. If it fails though the file computes it in place, it is tried so."""
        try:
            return module.top_shapes(*bottoms)
        except CaffeError:
            ported = self.options.folders.find(spec.type)
            if ported is None or not (is_ported(module) and module.definition.apart):
                raise
            other: Any = ported_module(spec, ported, self.net.path, in_place=True).train(module.training)
            with contextlib.suppress(CaffeError):
                shapes = other.top_shapes(*bottoms)
                self.modules[spec] = other
                self.net.add_module(next(key for key, of in self.net.specs.items() if of is spec), other)
                return shapes
            raise

    def _crop(self, step: Step, module, graph: Graph) -> None:
        is_stock = type(module) is Crop
        if module.says_offsets or (self.options.crop == "stock" and is_stock):
            return
        offsets = crop_offsets(graph, step, self.modules)
        if offsets is not None:
            module.offsets = offsets
            if any(offsets) and is_stock:
                self.report.note(
                    step.spec,
                    f" has no offset: {offsets} by the geometry of the "
                    f"net, as in Caffe before 2016. Today's Caffe cuts at 0: crop='stock'",
                )


@contextlib.contextmanager
def _in_phase(net: CaffeNet, phase: str):
    """Put the modules into a phase, except those whose layer sets its own; and back into training."""
    for key, module in net.named_children():
        module.train(net.fixed.get(key, phase == TRAIN))
    yield
    for module in net.children():
        module.train(True)


@contextlib.contextmanager
def _quiet():
    """Turn off torch's log of wrong shapes, which become an error that names the layer."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
