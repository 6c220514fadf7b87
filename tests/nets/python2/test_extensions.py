"""Replacements of compiled modules that are not built."""

import numpy as np
import pytest


def test_compiled_modules_that_nobody_built_have_a_stand_in(tree):
    files = {"utils/__init__.py": "", "utils/maths.pyx": "", "nms/__init__.py": "",
             "use.py": "from utils.cython_bbox import bbox_overlaps\nfrom nms.gpu_nms import gpu_nms\n"
                       "from nms.mv import mv\nimport utils.cython_maths\nprint 1"}  # fmt: skip
    made = tree(files).module("use")
    rng = np.random.default_rng(0)
    boxes = np.sort(rng.uniform(0, 50, (40, 2, 2)), axis=1).reshape(40, 4).astype(np.float32)
    dets = np.c_[boxes, rng.uniform(size=40)].astype(np.float32)
    overlaps = np.array([[one_overlap(a, b) for b in boxes] for a in boxes])
    np.testing.assert_allclose(made.bbox_overlaps(boxes, boxes), overlaps, rtol=1e-5)
    keep, order = [], list(np.argsort(-dets[:, 4]))
    while order:
        keep.append(order.pop(0))
        order = [i for i in order if overlaps[keep[-1], i] <= 0.3]
    assert made.gpu_nms(dets, 0.3) == keep
    with pytest.raises(RuntimeError, match=r"mv\.mv: this compiled module is not built"):
        made.mv()


def one_overlap(a, b) -> float:
    """Intersection over union of two boxes with their ends included."""
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) + 1 for i in (0, 1)]
    common = max(sides[0], 0) * max(sides[1], 0)
    area = [float((c[2] - c[0] + 1) * (c[3] - c[1] + 1)) for c in (a, b)]
    return common / (sum(area) - common)
