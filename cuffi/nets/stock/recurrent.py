"""Recurrent layers: timesteps, markers of where sequences begin, and the state that a call leaves.

LSTMUnit: one step of an LSTM.
LSTM: with Caffe's order of gates and its markers.
RNN: with tanh.
"""

import abc
import sys
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor

from . import StockLayer

# ---------------------------------------------------------------------------------------------- Recurrent


def _says_zero(kind: str) -> None:
    warnings.warn(
        f"{kind}: in the exported program each call starts with a state of zero. "
        "With expose_hidden: true the states are bottoms and tops.",
        stacklevel=3,
    )


if hasattr(torch.compiler, "is_exporting"):
    _is_exporting = torch.compiler.is_exporting
else:  # before torch 2.7, where its compiler leaves out warnings, too

    @torch.compiler.assume_constant_result
    def _is_exporting() -> bool:
        exports = sys.modules.get("torch.export._trace")
        return exports is not None and exports._EXPORT_FLAGS is not None

    _says_zero = torch.compiler.assume_constant_result(_says_zero)


class Recurrent(StockLayer, abc.ABC):
    """Timesteps, one after the other.

    Bottoms: x [timesteps, streams, ...]; cont [timesteps, streams], 0 where a sequence begins; optionally a static
    input [streams, ...]; with expose_hidden, the initial states. Tops: the outputs; with expose_hidden, the final
    states.

    Without expose_hidden a call starts with the final state of the last call; `reset` makes it zero. Training and
    evaluation each have a state, as Caffe's two nets have. No gradient goes from call to call. Programs by torch.export
    and torch.jit.trace keep no state: each call starts with zero.
    """

    bottoms = (2, None)
    tops = (1, None)
    kept = ("_state",)
    states = 1  # how many there are
    gates = 1  # rows of the hidden weights by num_output
    weight_x: Tensor
    bias: Tensor
    weight_static: Tensor
    weight_h: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.recurrent_param
        self.num_output, self.expose_hidden = p.num_output, p.expose_hidden
        self._definition = (p.weight_filler, p.bias_filler)
        exposed = self.states * self.expose_hidden
        self.has_static = definition.bottoms > 2 + exposed
        self.check(p.num_output > 0, "num_output must be positive")
        self.check(definition.bottoms == 2 + self.has_static + exposed, f"{definition.bottoms} bottoms")
        self.check(definition.tops == 1 + exposed, f"{definition.tops} tops")
        self._state = {}  # by self.training

    def agree(self, x, cont, *others):
        self.check(len(x) >= 3, "x: expected [timesteps, streams, ...], got {}", x)
        self.check(tuple(cont) == tuple(x[:2]), "cont: expected {}, got {}", x[:2], cont)
        if self.has_static:
            self.check(others[0][:1] == x[1:2], "static input: expected {} streams, got {}", x[1], others[0])
        for shape in others[self.has_static :]:
            wanted = (1, x[1], self.num_output)
            self.check(tuple(shape) == wanted, "hidden state: expected {}, got {}", wanted, shape)

    def setup(self, x, cont, *others):
        weight, bias = self._definition
        del self._definition
        rows = self.gates * self.num_output
        self.blob("weight_x", (rows, torch.Size(x[2:]).numel()), weight)
        self.blob("bias", (rows,), bias)
        if self.has_static:
            self.blob("weight_static", (rows, torch.Size(others[0][1:]).numel()), weight)
        self.blob("weight_h", (rows, self.num_output), weight)
        self.more(weight, bias)

    def more(self, weight, bias):
        """Make the type's own parameters."""

    def reset(self) -> None:
        """Forget the states of the last calls."""
        self._state = {}

    def forward(self, x, cont, *others):
        keeps = not (self.expose_hidden or torch.jit.is_tracing() or _is_exporting())
        if not (keeps or self.expose_hidden):
            _says_zero(type(self).__name__)
        inputs = F.linear(x.flatten(2), self.weight_x, self.bias)
        if self.has_static:
            inputs = inputs + F.linear(others[0].flatten(1), self.weight_static)
        state = self._begin(inputs, others[self.has_static :], keeps)
        outputs = []
        for step, marker in zip(inputs.unbind(0), cont.to(inputs.dtype).unbind(0), strict=True):
            output, state = self.step(step, marker[:, None], state)
            outputs.append(output)
        if keeps:
            self._state[self.training] = tuple(s.detach() for s in state)
        if not self.expose_hidden:
            return torch.stack(outputs)
        return (torch.stack(outputs), *(s.detach()[None] for s in state))

    @abc.abstractmethod
    def step(self, inputs, marker, state):
        """(the output of one timestep, its state)."""

    def _begin(self, inputs, initial, keeps: bool):
        """The initial state, in the order of the bottoms."""
        if self.expose_hidden:
            return tuple(s.detach()[0] for s in initial)
        zero = torch.zeros_like(inputs[0, :, : self.num_output])
        last = self._state.get(self.training) if keeps else None
        if last is None or last[0].shape != zero.shape or last[0].device != zero.device:
            return (zero,) * self.states
        return tuple(s.to(zero.dtype) for s in last)

    def __getstate__(self):
        return self.__dict__ | {"_state": {}}


# ----------------------------------------------------------------------------------------------- LSTMUnit


class LSTMUnit(StockLayer):
    """One step of an LSTM.

    Bottoms: the previous cell [1, streams, D], the gates' inputs [1, streams, 4 D] in the order input, forget,
    output, candidate, and the markers [1, streams], 0 where a sequence begins, else 1. Tops: cell and hidden state, [1,
    streams, D]. With a marker between them the forget gate's gradient is the exact one, and the source's is not.

    Source: BVLC's lstm_unit_layer.cpp.
    """

    bottoms = (3, 3)
    tops = (2, 2)

    def agree(self, cell, gates, cont):
        is_valid = len(cell) == 3 and cell[0] == 1 and tuple(gates) == (1, cell[1], 4 * cell[2])
        is_valid = is_valid and tuple(cont) == (1, cell[1])
        self.check(is_valid, "bottoms of {}, {} and {}", cell, gates, cont)

    def forward(self, cell, gates, cont):
        return unit(cell, gates, cont[..., None].to(cell.dtype))


def unit(cell, gates, marker):
    """(cell, hidden state); a marker of 0 forgets the previous cell."""
    i, f, o, g = gates.chunk(4, -1)
    cell = marker * f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return cell, o.sigmoid() * torch.tanh(cell)


# --------------------------------------------------------------------------------------------------- LSTM


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


# ---------------------------------------------------------------------------------------------------- RNN


class RNN(Recurrent):
    """h = tanh(W_hh h + W_xh x + b_h); o = tanh(W_ho h + b_o), timestep by timestep.

    Bottoms and states: see `_recurrent.py`. Top: o, [timesteps, streams, num_output].

    Source: BVLC's rnn_layer.cpp.
    """

    blobs = ("weight_x", "bias", "weight_static", "weight_h", "weight_output", "bias_output")
    weight_output: Tensor
    bias_output: Tensor

    def more(self, weight, bias):
        self.blob("weight_output", (self.num_output, self.num_output), weight)
        self.blob("bias_output", (self.num_output,), bias)

    def step(self, inputs, marker, state):
        hidden = torch.tanh(inputs + F.linear(state[0] * marker, self.weight_h))
        return torch.tanh(F.linear(hidden, self.weight_output, self.bias_output)), (hidden,)
