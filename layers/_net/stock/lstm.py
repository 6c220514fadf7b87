import torch.nn.functional as F

from ._recurrent import Recurrent
from .lstm_unit import unit


class LSTM(Recurrent):
    """Gates in the order input, forget, output, candidate. States: hidden, cell."""

    blobs = ("weight_x", "bias", "weight_static", "weight_h")
    states = 2
    gates = 4

    def step(self, inputs, marker, state):
        hidden, cell = state
        gates = inputs + F.linear(hidden * marker, self.weight_h)
        cell, hidden = unit(cell, gates, marker)
        return hidden, (hidden, cell)
