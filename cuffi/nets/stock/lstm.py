"""Recurrent layers: LSTM, with Caffe's order of gates and its markers."""

import torch.nn.functional as F

from ._recurrent import Recurrent
from .lstm_unit import unit


class LSTM(Recurrent):
    """i, f, o = sigmoid; g = tanh; c = f c + i g; h = o tanh(c), of W_xc x + W_hc h + b_c, step by step.

    Gates are in the order input, forget, output, candidate. Bottoms and states: see `_recurrent.py`. Top: [timesteps,
    streams, num_output].

    Source: BVLC's lstm_layer.cpp.
    """

    blobs = ("weight_x", "bias", "weight_static", "weight_h")
    states = 2
    gates = 4

    def step(self, inputs, marker, state):
        hidden, cell = state
        gates = inputs + F.linear(hidden * marker, self.weight_h)
        cell, hidden = unit(cell, gates, marker)
        return hidden, (hidden, cell)
