"""The operators for exporters compute the same as the loops."""

import pytest
import torch

from cuffi.nets.forks import _boxes
from cuffi.nets.net._onnx_operators import suppressed, translations


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_suppressed_is_the_loop_by_the_definition(threshold):
    """The best box first: one is kept unless one before it, which is kept, overlaps it by more than the threshold."""
    generator = torch.Generator().manual_seed(2)
    corners = torch.rand(3, 20, 2, 2, generator=generator, dtype=torch.float64).sort(2).values.flatten(2)
    valid = torch.rand(3, 20, generator=generator) > 0.2
    found = suppressed(corners, valid, threshold)
    for boxes, usable, kept in zip(corners.tolist(), valid.tolist(), found.tolist(), strict=True):
        wanted = []
        for i, box in enumerate(boxes):
            best = [boxes[j] for j in range(i) if wanted[j]]
            wanted.append(usable[i] and all(overlap(box, other) <= threshold for other in best))
        assert kept == wanted
    assert torch.equal(found, _boxes.suppressed(corners, valid, threshold))


def overlap(one, other) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    common = max(width, 0) * max(height, 0)
    return common / (area(one) + area(other) - common)


def area(box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def test_each_translation_belongs_to_an_operator_of_torch():
    pytest.importorskip("onnxscript")
    assert set(translations()) == {torch.ops.cuffi.suppressed.default, torch.ops.aten.sort.stable}
    fake = torch.empty(2, 5, 4, device="meta"), torch.empty(2, 5, dtype=torch.bool, device="meta")
    assert suppressed(*fake, 0.5).shape == (2, 5)
