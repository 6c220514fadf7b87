"""Any number of items in batches of a net's size, as forward_all takes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def batches(arrays: dict, size: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches of `size` items, by name. The rest of the last one is zeros."""
    arrays = {name: np.asarray(value) for name, value in arrays.items()}
    for at in range(0, len(next(iter(arrays.values()))), size):
        batch = {name: value[at : at + size] for name, value in arrays.items()}
        rest = size - len(next(iter(batch.values())))
        if rest:
            batch = {
                n: np.concatenate([v, np.zeros((rest, *v.shape[1:]), v.dtype)]) for n, v in batch.items()
            }
        yield batch


def joined(results: dict[str, list], arrays: dict) -> dict[str, np.ndarray]:
    """The items of all batches as arrays, by name, without the last one's zeros."""
    count = len(next(iter(arrays.values()), ()))
    return {name: np.asarray(items)[:count] for name, items in results.items()}
