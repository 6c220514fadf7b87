"""Stock losses and accuracy, compared with the loops of support/caffe_reference.py; gradients, with differences."""

import numpy as np
import pytest
import torch
from support import caffe_reference as reference
from support.nets import draw, gradients_are_right, labels, one_layer, same
from support.typed import not_none

from cuffi import caffe_net
from cuffi.base import CaffeValueError
from cuffi.nets import stock
from cuffi.nets.net.messages import STOCK


@pytest.mark.parametrize("normalization", ["FULL", "VALID", "BATCH_SIZE", "NONE"])
@pytest.mark.parametrize("ignore", [None, 1])
@pytest.mark.parametrize("shape, axis", [((4, 5), 1), ((2, 4, 3, 3), 1), ((2, 3, 3, 4), -1)])
def test_softmax_with_loss(shape, axis, normalization, ignore):
    x = draw(*shape)
    target = labels(shape[axis], *(s for i, s in enumerate(shape) if i != axis % len(shape)))
    said = f"normalization: {normalization}" + (f" ignore_label: {ignore}" if ignore is not None else "")
    text = f'type: "SoftmaxWithLoss" loss_param {{ {said} }} softmax_param {{ axis: {axis} }}'
    net = one_layer(text, x.shape, target.shape)
    same(net(x, target), reference.softmax_with_loss(x.numpy(), target.numpy(), axis, normalization, ignore))
    assert gradients_are_right(lambda scores: net(scores, target), x)


@pytest.mark.parametrize("ignore", [None, 1])
def test_segnet_s_weights_of_classes(ignore):
    x, target = draw(2, 4, 3, 5), labels(4, 2, 1, 3, 5)
    said = "weight_by_label_freqs: true class_weighting: 0.5 class_weighting: 2 class_weighting: 1 class_weighting: 3"
    said += f" ignore_label: {ignore}" if ignore is not None else ""
    net = one_layer(f'type: "SoftmaxWithLoss" loss_param {{ {said} }}', x.shape, target.shape)
    chances, terms = x.softmax(1).numpy(), []
    for n, i, j in np.ndindex(2, 3, 5):
        label = int(target[n, 0, i, j])
        if label != ignore:
            terms.append(-np.log(chances[n, label, i, j]) * [0.5, 2, 1, 3][label])
    same(net(x, target), np.mean(terms), 1e-7)
    assert gradients_are_right(lambda x: net(x, target), x)
    plain = one_layer('type: "SoftmaxWithLoss" loss_param { class_weighting: 2 }', x.shape, target.shape)
    same(plain(x, target), torch.nn.functional.cross_entropy(x, target[:, 0].long()))
    with pytest.raises(CaffeValueError, match="1 class_weighting for 4 classes"):
        words = "weight_by_label_freqs: true class_weighting: 2"
        one_layer(f'type: "SoftmaxWithLoss" loss_param {{ {words} }}', x.shape, target.shape)


def test_the_old_normalize_says_by_which_count():
    x, target = draw(2, 3, 4), labels(3, 2, 4)
    for said, normalization in (
        ("", "VALID"),
        ("normalize: false", "BATCH_SIZE"),
        ("normalize: true", "VALID"),
    ):
        net = one_layer(
            f'type: "SoftmaxWithLoss" loss_param {{ {said} ignore_label: 0 }}', x.shape, target.shape
        )
        same(net(x, target), reference.softmax_with_loss(x.numpy(), target.numpy(), 1, normalization, 0))


def test_a_loss_of_ignored_labels_alone_is_zero_and_not_nan():
    net = one_layer('type: "SoftmaxWithLoss" loss_param { ignore_label: 0 }', (3, 4), (3,))
    x = draw(3, 4).requires_grad_()
    loss = net(x, torch.zeros(3))
    loss.backward()
    assert loss == 0 and not x.grad.any()


def test_the_logarithm_stops_at_the_least_float_and_its_gradient_does_not():
    net = one_layer('type: "SoftmaxWithLoss"', (1, 2), (1,))
    x = torch.tensor([[0.0, 500.0]], dtype=torch.float64, requires_grad=True)
    loss = net(x, torch.zeros(1))
    loss.backward()
    assert loss.item() == pytest.approx(87.3365447505531)
    same(x.grad, [[-1.0, 1.0]])


@pytest.mark.parametrize("normalization", ["FULL", "VALID", "BATCH_SIZE", "NONE", None])
@pytest.mark.parametrize("ignore", [None, 1])
def test_sigmoid_cross_entropy_loss(normalization, ignore):
    x, target = draw(4, 3, 2), labels(2, 4, 3, 2)
    said = (f"normalization: {normalization} " if normalization else "") + (
        f"ignore_label: {ignore}" if ignore is not None else ""
    )
    net = one_layer(f'type: "SigmoidCrossEntropyLoss" loss_param {{ {said} }}', x.shape, target.shape)
    wanted = reference.sigmoid_cross_entropy(x.numpy(), target.numpy(), normalization or "BATCH_SIZE", ignore)
    same(net(x, target), wanted)
    assert gradients_are_right(lambda scores: net(scores, target), x)


def test_euclidean_loss_is_half_the_mean_of_squares():
    a, b = draw(4, 3, 2), draw(4, 3, 2, seed=1)
    net = one_layer('type: "EuclideanLoss"', a.shape, b.shape)
    same(net(a, b), ((a - b) ** 2).sum() / 8)
    assert gradients_are_right(net, a, b)


@pytest.mark.parametrize("norm", [1, 2])
def test_hinge_loss(norm):
    x, target = draw(4, 5), labels(5, 4)
    total = 0.0
    for row, label in zip(x.numpy(), target.numpy().astype(int), strict=True):
        total += sum(max(0.0, 1 + v * (-1 if i == label else 1)) ** norm for i, v in enumerate(row))
    same(
        one_layer(f'type: "HingeLoss" hinge_loss_param {{ norm: L{norm} }}', (4, 5), (4,))(x, target),
        total / 4,
    )


@pytest.mark.parametrize("legacy", [True, False])
def test_contrastive_loss(legacy):
    a, b, similar = draw(6, 4), draw(6, 4, seed=1), labels(2, 6)
    total = 0.0
    for x, y, alike in zip(a.numpy(), b.numpy(), similar.numpy(), strict=True):
        squared = ((x - y) ** 2).sum()
        apart = max(0.0, 3 - squared) if legacy else max(0.0, 3 - np.sqrt(squared)) ** 2
        total += squared if alike else apart
    text = f'type: "ContrastiveLoss" contrastive_loss_param {{ margin: 3 legacy_version: {str(legacy).lower()} }}'
    net = one_layer(text, (6, 4), (6, 4), (6,))
    same(net(a, b, similar), total / 12)
    assert gradients_are_right(lambda x, y: net(x, y, similar), a, b)


def test_multinomial_logistic_loss():
    x, target = draw(4, 5).softmax(1), labels(5, 4)
    wanted = -np.log(x.numpy()[range(4), target.numpy().astype(int)]).sum() / 4
    net = one_layer('type: "MultinomialLogisticLoss"', (4, 5), (4,))
    same(net(x, target), wanted)
    assert gradients_are_right(lambda p: net(p, target), x)


def test_infogain_loss():
    x, target, matrix = draw(4, 3), labels(3, 4), draw(1, 1, 3, 3, seed=2).abs()
    logs = np.log(reference.softmax(x.numpy(), 1))
    wanted = -sum(matrix[0, 0, int(label)].numpy() @ row for row, label in zip(logs, target, strict=True)) / 4
    net = one_layer('type: "InfogainLoss"', (4, 3), (4,), (1, 1, 3, 3))
    same(net(x, target, matrix), wanted)
    assert gradients_are_right(lambda scores: net(scores, target, matrix), x)


def test_infogain_loss_whose_matrix_is_a_file(tmp_path):
    """Ignored labels do not count; the second top has the probabilities."""
    x, matrix = draw(2, 3, 2, 2), draw(3, 3, seed=2).abs().float()
    target = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]]).view(2, 1, 2, 2).double()
    path = tmp_path / "matrix.binaryproto"
    stored = STOCK.message("BlobProto")
    stored.shape.dim.extend([1, 1, 3, 3])
    stored.data.extend(matrix.flatten().tolist())
    path.write_bytes(stored.SerializeToString())
    said = f'infogain_loss_param {{ source: "{path}" }} loss_param {{ ignore_label: 1 }}'
    net = one_layer(f'type: "InfogainLoss" {said}', x.shape, target.shape, tops=2)
    share = torch.from_numpy(reference.softmax(x.numpy(), 1))
    wanted = [
        -(matrix[label].double() @ share[n, :, i, j].log())
        for n, i, j in np.ndindex(2, 2, 2)
        if (label := int(target[n, 0, i, j])) != 1
    ]
    found = net(x, target)
    same(found["y0"], sum(wanted) / len(wanted))
    same(found["y1"], share)


@pytest.mark.parametrize("top_k", [1, 2, 3])
@pytest.mark.parametrize("ignore", [None, 2])
def test_accuracy(top_k, ignore):
    x, target = draw(8, 4), labels(4, 8)
    x[0] = 0.5  # ties: Caffe counts the others of the same score
    said = f"ignore_label: {ignore}" if ignore is not None else ""
    net = one_layer(f'type: "Accuracy" accuracy_param {{ top_k: {top_k} {said} }}', x.shape, target.shape)
    right, valid = 0, 0
    for row, label in zip(x.numpy(), target.numpy().astype(int), strict=True):
        if label != ignore:
            right, valid = right + (sum(v >= row[label] for v in row) <= top_k), valid + 1
    same(net(x, target), right / valid)
    # The second top has each class's own; 0 where a class has no labels.
    text = f'type: "Accuracy" accuracy_param {{ top_k: {top_k} {said} }}'
    each = one_layer(text, x.shape, target.shape, tops=2)(x, target)
    hits = {c: [] for c in range(4)}
    for row, label in zip(x.numpy(), target.numpy().astype(int), strict=True):
        if label != ignore:
            hits[label].append(sum(v >= row[label] for v in row) <= top_k)
    same(each["y0"], right / valid)
    same(each["y1"], [sum(of_class) / max(1, len(of_class)) for of_class in hits.values()])


@pytest.mark.parametrize("weight", [1, 3, 0.5])
def test_the_loss_of_a_ported_layer_has_a_weight(weight):
    """The layer's output is without the weight; the net's loss and the gradient include it."""
    text = """input: "a" input_shape { dim: 2 dim: 3 } input: "b" input_shape { dim: 2 dim: 3 }
    layer { name: "l" type: "SmoothL1Loss" bottom: "a" bottom: "b" top: "l" loss_weight: %s }"""
    a, b = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)
    plain = pytest.importorskip("cuffi.smooth_l1_loss").SmoothL1Loss()(a, b)
    (wanted,) = torch.autograd.grad(plain, a)
    net = caffe_net(text % weight, native=False)
    output = net(a=a, b=b)
    loss = net.loss(output)
    loss.backward()
    assert output == plain and loss == weight * plain
    torch.testing.assert_close(a.grad, weight * wanted)


def test_losses_are_those_that_are_named_so():
    """The tops that net.loss adds up if the prototxt has no loss_weight, as in Caffe."""
    for name in stock.stock_types():
        assert not_none(stock.stock_class(name)).is_loss == name.endswith("Loss"), name
