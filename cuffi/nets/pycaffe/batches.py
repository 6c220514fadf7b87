"""Any number of items through a caffe.Net, in batches of its size. The rest of the last batch is zeros."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

import numpy as np

from .net_state import NetState


def forward_all(net, state: NetState, blobs, arrays: dict) -> dict[str, np.ndarray]:
    made: dict[str, list] = {}
    for batch in _batches(state, arrays):
        _append(made, net.forward(blobs=blobs, **batch))
    return _cut(made, arrays)


def forward_backward_all(net, state: NetState, blobs, diffs, arrays: dict) -> tuple[dict, dict]:
    data = {name: value for name, value in arrays.items() if name in net.inputs}
    rest = {name: value for name, value in arrays.items() if name not in data}
    made: dict[str, list] = {}
    found: dict[str, list] = {}
    for batch, seeds in zip_longest(_batches(state, data), _batches(state, rest), fillvalue={}):
        _append(made, net.forward(blobs=blobs, **batch))
        _append(found, net.backward(diffs=diffs, **seeds))
    return _cut(made, data), _cut(found, data)


def _batches(state: NetState, arrays: dict) -> Iterator[dict[str, np.ndarray]]:
    if not arrays:
        return
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    first = next(iter(arrays))
    size = state.blob(first).num
    for at in range(0, len(arrays[first]), size):
        batch = {name: value[at : at + size] for name, value in arrays.items()}
        rest = size - len(batch[first])
        if rest:
            batch = {n: np.pad(v, [(0, rest)] + [(0, 0)] * (v.ndim - 1)) for n, v in batch.items()}
        yield batch


def _append(all_rows: dict[str, list], batch: dict[str, np.ndarray]) -> None:
    for name, value in batch.items():
        all_rows.setdefault(name, []).extend(value.copy())


def _cut(all_rows: dict[str, list], arrays: dict) -> dict[str, np.ndarray]:
    count = len(next(iter(arrays.values()), ()))
    return {name: np.asarray(rows)[:count] for name, rows in all_rows.items()}
