"""Which of several equal values wins, by the source of each type. Nothing here may be left to a library's choice.

ArgMax sorts pairs (value, index), the greatest first: the last. Accuracy counts all that are not less. Pooling's mask,
ROIPooling and the matching of boxes replace only by a greater value: the first. Eltwise's MAX takes the first bottom
only if it is greater than the second, then a later one only if it is greater. DetectionOutput sorts stably: the first.
"""

import itertools

import numpy as np
import pytest
import torch
from support import caffe_reference as reference
from support.nets import one_layer, same
from support.typed import not_none

from cuffi.nets.stock.losses import ArgMax

FEW = torch.randint(0, 3, (4, 6, 5), generator=torch.Generator().manual_seed(0)).double()


def sorted_pairs(row, count):
    """Caffe's loop: (indices, values) of the greatest pairs."""
    pairs = sorted(((value, i) for i, value in enumerate(row)), reverse=True)[:count]
    return [i for _, i in pairs], [value for value, _ in pairs]


@pytest.mark.parametrize("x", [FEW, torch.zeros(4, 6, 5).double()], ids=["few", "zeros"])
@pytest.mark.parametrize("top_k", [1, 2, 5])
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_arg_max_takes_the_last_of_equal_values(axis, top_k, x):
    said = f"top_k: {top_k}" + ("" if axis is None else f" axis: {axis}")
    plain = one_layer(f'type: "ArgMax" argmax_param {{ {said} }}', x.shape)(x)
    both = one_layer(f'type: "ArgMax" argmax_param {{ {said} out_max_val: true }}', x.shape)(x)
    if axis is None:
        rows = [sorted_pairs(row, top_k) for row in x.flatten(1).tolist()]
        same(plain, np.array([[row[0]] for row in rows], float))
        same(both, np.array(rows))
        return
    indices = np.apply_along_axis(lambda row: sorted_pairs(row, top_k)[0], axis, x.numpy())
    same(plain, indices.astype(float))
    same(both, np.take_along_axis(x.numpy(), indices, axis))


def test_arg_max_s_rule_is_in_the_onnx_file(tmp_path):
    x = FEW.float()
    net = one_layer('type: "ArgMax" argmax_param { axis: 1 top_k: 3 }', x.shape).float()
    pytest.importorskip("onnxscript")
    assert net.to_onnx(tmp_path / "a.onnx").agrees
    session = pytest.importorskip("onnxruntime").InferenceSession(str(tmp_path / "a.onnx"))
    (found,) = session.run(None, {"x0": x.numpy()})
    assert isinstance(net.L, ArgMax)
    same(torch.from_numpy(found), net(x))


@pytest.mark.parametrize(
    "size", ["kernel_size: 2 stride: 2", "kernel_size: 3 pad: 1", "kernel_size: 1 stride: 3"]
)
def test_a_mask_has_the_first_of_equal_values(size):
    x = FEW.reshape(1, 4, 6, 5)
    net = one_layer(f'type: "Pooling" pooling_param {{ pool: MAX {size} }}', x.shape, tops=2)
    words = dict(zip(size.replace(":", "").split()[::2], map(int, size.split()[1::2]), strict=True))
    kernel, stride, pad = words["kernel_size"], words.get("stride", 1), words.get("pad", 0)
    top, mask = reference.pooling(x.numpy(), "MAX", (kernel,) * 2, (stride,) * 2, (pad,) * 2)
    found = net(x)
    same(found["y0"], top)
    same(found["y1"], mask)


def test_a_mask_of_the_whole_map_has_the_first_and_so_does_the_gradient():
    x = FEW.reshape(1, 4, 6, 5).requires_grad_()
    found = one_layer('type: "Pooling" pooling_param { global_pooling: true }', x.shape, tops=2)(x)
    first = [row.index(max(row)) for row in x.detach().flatten(2)[0].tolist()]
    same(found["y1"].flatten(), np.array(first, float))
    found["y0"].sum().backward()
    assert not_none(x.grad).flatten(2)[0].nonzero().tolist() == [[c, place] for c, place in enumerate(first)]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_gradient_of_a_maximum_goes_to_one_bottom(count):
    values = torch.tensor(list(itertools.product(range(3), repeat=count))).double().t().contiguous()
    bottoms = [row.clone()[None].requires_grad_() for row in values]
    net = one_layer('type: "Eltwise" eltwise_param { operation: MAX }', *(b.shape for b in bottoms))
    net(*bottoms).sum().backward()
    for place, row in enumerate(values.t().tolist()):
        wins = 0 if row[0] > row[1] else 1
        for i in range(2, count):
            wins = i if row[i] > row[wins] else wins
        assert [b.grad[0, place].item() for b in bottoms] == [float(i == wins) for i in range(count)]


def test_a_region_s_maximum_is_the_first():
    x = torch.zeros(1, 1, 4, 4).double().requires_grad_()
    text = 'type: "ROIPooling" roi_pooling_param { pooled_h: 2 pooled_w: 2 }'
    net = one_layer(text, x.shape, (1, 5))
    net(x, torch.tensor([[0.0, 0, 0, 3, 3]]).double()).sum().backward()
    assert not_none(x.grad).nonzero()[:, 2:].tolist() == [[0, 0], [0, 2], [2, 0], [2, 2]]


def test_equal_scores_keep_the_order_of_the_priors():
    low = torch.arange(6).double()[:, None] / 8
    boxes = torch.cat((low, low, low + 0.05, low + 0.05), 1)
    priors = torch.cat((boxes.flatten(), torch.full((24,), 0.1).double())).reshape(1, 2, 24)
    scores = torch.tensor([[0.0, 0.5]]).double().repeat(6, 1).reshape(1, 12)
    for more in ("top_k: 4", "top_k: 6 } keep_top_k: 4"):
        said = f"num_classes: 2 confidence_threshold: 0.1 nms_param {{ nms_threshold: 0.9 {more}"
        said += " }" if "}" not in more else ""
        net = one_layer(
            f'type: "DetectionOutput" detection_output_param {{ {said} }}', (1, 24), (1, 12), priors.shape
        )
        same(net(torch.zeros(1, 24).double(), scores, priors)[0, 0, :, 3:], boxes[:4])
