"""The functions of the Cython and CUDA modules of Faster R-CNN and its successors, if these are not built.

They have the names that users' files import: `utils.cython_bbox`, `nms.cpu_nms`, `nms.gpu_nms`. Boxes are
x1, y1, x2, y2, with both ends inside: a side is `x2 - x1 + 1` long.
"""

from __future__ import annotations

import types
from pathlib import Path

import numpy as np


def _areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)


def _intersections(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """[N, K]: the areas of the intersections of N and K boxes."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:4], others[None, :, 2:4])
    return np.prod(np.maximum(high - low + 1, 0), axis=2)


def bbox_overlaps(boxes: np.ndarray, query_boxes: np.ndarray) -> np.ndarray:
    """[N, K]: intersection over union of N boxes [N, 4] and K boxes [K, 4], in their dtype."""
    common = _intersections(boxes, query_boxes)
    return common / (_areas(boxes)[:, None] + _areas(query_boxes)[None] - common)


def _suppress(dets: np.ndarray, is_over) -> list[int]:
    """The kept rows of dets [N, 5] (a box and its score), best first. `is_over`: does an overlap suppress the row?"""
    dets = np.asarray(dets)
    areas, order, keep = _areas(dets), dets[:, 4].argsort()[::-1], []
    while order.size:
        best, order = order[0], order[1:]
        keep.append(int(best))
        common = _intersections(dets[best : best + 1], dets[order])[0]
        order = order[~is_over(common / (areas[best] + areas[order] - common))]
    return keep


def cpu_nms(dets: np.ndarray, thresh: float) -> list[int]:
    """Non-maximum suppression: a row is dropped if it overlaps a better one by `thresh` or more."""
    return _suppress(dets, lambda overlap: overlap >= thresh)


def gpu_nms(dets: np.ndarray, thresh: float, device_id: int = 0) -> list[int]:
    """Like cpu_nms, but a row is dropped if it overlaps by more than `thresh`."""
    return _suppress(dets, lambda overlap: overlap > thresh)


# The functions, by the module's last name.
MODULES = {
    "cython_bbox": {"bbox_overlaps": bbox_overlaps},
    "bbox": {"bbox_overlaps": bbox_overlaps},
    "cpu_nms": {"cpu_nms": cpu_nms},
    "gpu_nms": {"gpu_nms": gpu_nms},
    "cython_nms": {"nms": cpu_nms},
    "mv": {},
    "gpu_mv": {},
}


def is_one(name: str, folders) -> bool:
    """Is this a compiled module of the user's: one of those here, or one that has a .pyx in the folders?"""
    stem = name.removeprefix("cython_")
    return name in MODULES or any(Path(folder, f"{stem}.pyx").is_file() for folder in folders)


def fill(module: types.ModuleType) -> None:
    """Put these functions into a module. Other names raise an error that names the module at their first call."""
    last = module.__name__.rpartition(".")[2]
    ours = MODULES.get(last, {})
    vars(module).update(ours)

    def missing(name: str):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args, **kwargs):
            have = ", ".join(ours) or "none of its functions"
            raise RuntimeError(
                f"{last}.{name}: this compiled module is not built, and the toolkit has {have}"
            )

        return call

    module.__getattr__ = missing
