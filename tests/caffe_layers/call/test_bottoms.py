"""The bottoms of a Caffe layer: which are converted, and which are refused."""

import torch
from support.typed import not_none
from support.zoo import grads, raises

from cuffi.caffe_layers.call.bottoms import dtype_of, site_of
from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError


def test_refused(zoo):
    m = zoo.Ramp()
    for bad, words in {
        "text": ("bottom 0", "a tensor", "str"),
        torch.ones(2, dtype=torch.float16): ("float32 or float64", "float16"),
        torch.ones(2, dtype=torch.complex64): ("real numbers",),
        torch.ones(2, device="meta"): ("bottom 0", "data on cpu or cuda", "meta"),
        torch.ones(2).to_sparse(): ("dense",),
    }.items():
        with raises(CaffeTypeError, *words):
            m(bad)
    with raises(
        CaffeRuntimeError, r"zoo_layers.cpp:\d+: Check failed: .* \(5 vs. 4\) no more than four axes"
    ):
        m(torch.ones(1, 1, 1, 1, 1))
    with raises(CaffeRuntimeError, "torch.func"):
        torch.func.vmap(m)(torch.ones(2, 2))
    with raises(CaffeValueError, "mode"):
        m.mode = "tpu"
    assert m(torch.tensor([-1.0, 1])).tolist() == [0, 1]


def test_converted(zoo):
    m = zoo.Ramp(zoo_param={"slope": 2})
    assert m(torch.tensor([-1, 3])).tolist() == [-2, 3] and m(torch.tensor([True])).dtype == torch.float32
    x = torch.randn(4, 6)
    for view in (x.t(), x[:, ::2], x.to_sparse().to_dense().expand(2, 4, 6), x[0].conj()):
        torch.testing.assert_close(m(view), torch.nn.functional.leaky_relu(view, 2))
    leaf = torch.randn(3, 4, requires_grad=True)
    torch.testing.assert_close(
        grads(m(leaf.t()), leaf), grads(torch.nn.functional.leaky_relu(leaf.t(), 2), leaf)
    )
    y = zoo.Rewriting()(torch.ones(2, requires_grad=True), torch.tensor([1, 2]))  # integer labels
    assert y.item() == 0.25


def test_autocast(zoo):
    m = zoo.Ramp()
    half = torch.randn(3, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = m(half)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert not_none(half.grad).dtype == torch.bfloat16


def test_bottoms_have_no_names(zoo, place):
    with raises(CaffeTypeError, "zoo: takes its bottoms in order, not by name: bottom"):
        place(zoo.Ramp())(bottom=place.draw(3))


def test_a_lost_blob_has_no_dtype():
    """After m.blob0 = None the check of the blobs words the error, so what comes before it must not fail."""
    assert dtype_of([], [None]) == torch.get_default_dtype()
    assert site_of([], [None], 0).dtype == torch.get_default_dtype()
