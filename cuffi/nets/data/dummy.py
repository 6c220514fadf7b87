"""DummyData: tops that fillers fill."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..net.fillers import constant, fill
from ..net.graph import Spec
from ..net.messages import layer_parameter


class Dummies:
    """The DummyData layers among a net's sources: `batch()` has their tops, float32 on the processor.

    As in Caffe, a top is filled again for each batch, unless its filler is constant.
    """

    def __init__(self, sources: list[Spec], shapes: Mapping[str, tuple[int, ...]]):
        self._fillers, self._shapes, self._made = {}, shapes, {}
        for spec in sources:
            if spec.type == "DummyData":
                given = layer_parameter(spec.node)[0].dummy_data_param.data_filler
                for i, top in enumerate(spec.tops):
                    self._fillers[top] = given[min(i, len(given) - 1)] if given else constant(0.0)

    def batch(self) -> dict[str, Tensor]:
        for top, filler in self._fillers.items():
            if top not in self._made or filler.type != "constant":
                self._made[top] = torch.zeros(self._shapes[top])
                fill(self._made[top], filler)
        return dict(self._made)
