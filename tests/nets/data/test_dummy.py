"""DummyData's tops: constants stay, other fillers draw for each batch."""

import torch

from cuffi import caffe_net
from cuffi.nets.data.dummy import Dummies

NET = """
layer { name: "d" type: "DummyData" top: "x" top: "t" dummy_data_param { shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 }
  data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 } } }
layer { name: "e" type: "DummyData" top: "z" dummy_data_param { shape { dim: 2 } } }
layer { name: "s" type: "Silence" bottom: "x" bottom: "t" bottom: "z" }
"""


def test_dummies_change_unless_they_are_constant():
    phase = caffe_net(NET, phase="TRAIN").phase
    torch.manual_seed(1)
    dummies = Dummies(phase.graph.sources, phase.shapes)
    first, second = dummies.batch(), dummies.batch()
    assert first["t"].tolist() == second["t"].tolist() == [[2.0]] * 4 and second["z"].tolist() == [0, 0]
    torch.manual_seed(1)
    draws = [torch.empty(4, 3).normal_() for _ in range(2)]
    assert torch.equal(first["x"], draws[0]) and torch.equal(second["x"], draws[1])
