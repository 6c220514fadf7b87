"""Recurrent layers: LSTMUnit, one step of an LSTM."""

import torch

from . import StockLayer


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
