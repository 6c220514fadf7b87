import torch
import torch.nn.functional as F

from ._recurrent import Recurrent


class RNN(Recurrent):
    """tanh of the hidden state, and tanh of its linear map as the output."""

    blobs = ("weight_x", "bias", "weight_static", "weight_h", "weight_output", "bias_output")

    def more(self, weight, bias):
        self.blob("weight_output", (self.num_output, self.num_output), weight)
        self.blob("bias_output", (self.num_output,), bias)

    def step(self, inputs, marker, state):
        hidden = torch.tanh(inputs + F.linear(state[0] * marker, self.weight_h))
        return torch.tanh(F.linear(hidden, self.weight_output, self.bias_output)), (hidden,)
