"""Recurrent layers: RNN, with tanh."""

import torch
import torch.nn.functional as F

from ._recurrent import Recurrent


class RNN(Recurrent):
    """h = tanh(W_hh h + W_xh x + b_h); o = tanh(W_ho h + b_o), timestep by timestep.

    Bottoms and states: see `_recurrent.py`. Top: o, [timesteps, streams, num_output].

    Source: BVLC's rnn_layer.cpp.
    """

    blobs = ("weight_x", "bias", "weight_static", "weight_h", "weight_output", "bias_output")

    def more(self, weight, bias):
        self.blob("weight_output", (self.num_output, self.num_output), weight)
        self.blob("bias_output", (self.num_output,), bias)

    def step(self, inputs, marker, state):
        hidden = torch.tanh(inputs + F.linear(state[0] * marker, self.weight_h))
        return torch.tanh(F.linear(hidden, self.weight_output, self.bias_output)), (hidden,)
