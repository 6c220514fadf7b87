"""The CHECKs of the core's stock layers, with their messages."""

import pytest
import torch
from support.zoo import raises

from cuffi import CaffeRuntimeError


def convolution(**options) -> dict:
    return {"convolution_param": {"num_output": 4, "kernel_size": [3], **options}}


@pytest.mark.parametrize(
    "layer, parameters, message",
    [
        ("Pooling", {"pooling_param": {"stride": 2}}, "Filter size is kernel_size OR"),
        (
            "Convolution",
            {"convolution_param": {"num_output": 5, "kernel_size": [3], "group": 3}},
            "multiples of group",
        ),
        ("Concat", {"concat_param": {"axis": 7}}, "axis 7 out of range"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [7, -1]}}}, "must be divisible"),
        ("Slice", {"top": ["a", "b"]}, "evenly divide"),
        # Numbers that an int, or a product of ints, cannot hold.
        ("Pooling", {"pooling_param": {"kernel_size": 3, "pad": 2**32 - 1}}, "pad is too large"),
        ("Pooling", {"pooling_param": {"kernel_size": 2**31 + 2}}, "Filter dimensions"),
        ("Pooling", {"pooling_param": {"kernel_size": 2**31 - 1, "pad": 2**31 - 2}}, "with its padding"),
        ("Pooling", {"pooling_param": {"kernel_size": 1, "stride": 2**31 - 1}}, "with its padding"),
        ("Convolution", convolution(kernel_size=[]), "Filter dimensions must be nonzero"),
        ("Convolution", convolution(kernel_size=[3, 3, 3]), "specified 3 times; 2 spatial dims"),
        ("Convolution", convolution(pad=[2**32 - 1]), "pad is too large"),
        ("Convolution", convolution(pad=[2**31 - 1]), "with its padding"),
        ("Convolution", convolution(stride=[2**31]), "Stride"),
        ("Convolution", convolution(dilation=[2**31 - 1]), "a kernel spans"),
        ("Convolution", convolution(kernel_size=[2**16]), "exceeds INT_MAX"),
        ("Convolution", convolution(pad=[2**16]), "exceeds INT_MAX"),
        ("Convolution", convolution(num_output=2**31 + 5), "num_output_ > 0"),
        ("InnerProduct", {"inner_product_param": {"num_output": 2**31 + 5}}, "shape"),
        ("InnerProduct", {"inner_product_param": {"num_output": 2**30}}, "exceeds INT_MAX"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [2**32 + 2, -1]}}}, "dim 0 of the new shape"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [-(2**32) + 2]}}}, "dim 0 of the new shape"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [2**16, 2**16, -1]}}}, "product of the specified"),
        ("Slice", {"top": ["a", "b"], "slice_param": {"slice_point": [2**32 - 1]}}, "must grow"),
        ("Slice", {"top": ["a"], "slice_param": {"slice_dim": 2**31 + 1}}, "not an axis"),
    ],
)
def test_refused(stock, layer, parameters, message):
    with raises(CaffeRuntimeError, message):
        getattr(stock, layer)(**parameters)(torch.zeros(2, 3, 4, 5))


X, TWO = (2, 3, 4, 5), ["a", "b"]


@pytest.mark.parametrize(
    "layer, parameters, shapes, message",
    [
        (
            "Convolution",
            convolution(stride_h=1, stride_w=1),
            [(2, 3, 4)],
            "stride_h & stride_w can only be used",
        ),
        ("Convolution", convolution(stride=[2], stride_h=1, stride_w=1), [X], "Either stride or stride_h/w"),
        ("Convolution", convolution(kernel_size=[0]), [X], "Filter dimensions must be nonzero"),
        ("Convolution", convolution(stride=[0]), [X], "Stride dimensions must be nonzero"),
        ("Convolution", convolution(dilation=[0]), [X], "Dilation must be nonzero"),
        ("Convolution", convolution(num_output=0), [X], "num_output_ > 0"),
        ("Convolution", convolution(group=0), [X], "group_ > 0"),
        ("Convolution", convolution(group=2), [X], "Number of inputs should be multiples"),
        ("Convolution", convolution(num_output=4, group=3), [X], "Number of output should be multiples"),
        ("Convolution", convolution() | {"top": TWO}, [X, (2, 3, 4, 6)], "shape"),
        ("Concat", {"concat_param": {"axis": 1, "concat_dim": 1}}, [X, X], "Check failed"),
        ("Concat", {"concat_param": {"concat_dim": 4}}, [X, X], "out of range"),
        ("Concat", {}, [X, (2, 3, 4)], "same #axes"),
        ("Concat", {}, [X, (2, 3, 4, 6)], "same shape, except at"),
        ("Concat", {}, [X, (3, 3, 4, 5)], "same shape, except at"),
        ("Eltwise", {"eltwise_param": {"coeff": [1]}}, [X, X], "Check failed"),
        ("Eltwise", {"eltwise_param": {"operation": "PROD", "coeff": [1, 1]}}, [X, X], "Check failed"),
        ("Eltwise", {}, [X, (2, 3, 5, 4)], "bottom"),
        ("Pooling", {"pooling_param": {"global_pooling": True, "kernel_size": 1}}, [X], "Check failed"),
        ("Pooling", {"pooling_param": {"global_pooling": True, "kernel_h": 1}}, [X], "Check failed"),
        ("Pooling", {"pooling_param": {"global_pooling": True, "kernel_w": 1}}, [X], "Check failed"),
        ("Pooling", {"pooling_param": {"global_pooling": True, "pad_h": 1, "pad_w": 0}}, [X], "Check failed"),
        ("Pooling", {"pooling_param": {"global_pooling": True, "pad_h": 0, "pad_w": 1}}, [X], "Check failed"),
        (
            "Pooling",
            {"pooling_param": {"global_pooling": True, "stride_h": 2, "stride_w": 1}},
            [X],
            "Check failed",
        ),
        (
            "Pooling",
            {"pooling_param": {"global_pooling": True, "stride_h": 1, "stride_w": 2}},
            [X],
            "Check failed",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 2, "kernel_h": 1, "kernel_w": 1}},
            [X],
            "Filter size is",
        ),
        ("Pooling", {"pooling_param": {"kernel_h": 1}}, [X], "Check failed"),
        ("Pooling", {"pooling_param": {"kernel_size": 2, "pad_h": 1}}, [X], "Check failed"),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 2, "pad": 1, "pad_h": 1, "pad_w": 1}},
            [X],
            "Check failed",
        ),
        ("Pooling", {"pooling_param": {"kernel_size": 2, "stride_w": 1}}, [X], "Check failed"),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 2, "stride": 1, "stride_h": 1, "stride_w": 1}},
            [X],
            "failed",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_h": 0, "kernel_w": 1}},
            [X],
            "Filter dimensions cannot be zero",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_h": 1, "kernel_w": 0}},
            [X],
            "Filter dimensions cannot be zero",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 1, "stride_h": 0, "stride_w": 1}},
            [X],
            "Stride cannot be zero",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 1, "stride_h": 1, "stride_w": 0}},
            [X],
            "Stride cannot be zero",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_h": 2, "kernel_w": 3, "pad_h": 2, "pad_w": 0}},
            [X],
            "pad_h_ < kernel_h_",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_h": 3, "kernel_w": 2, "pad_h": 0, "pad_w": 2}},
            [X],
            "pad_w_ < kernel_w_",
        ),
        (
            "Pooling",
            {"pooling_param": {"kernel_size": 2, "pool": "STOCHASTIC", "pad": 1}},
            [X],
            "Check failed",
        ),
        ("Pooling", {"pooling_param": {"kernel_size": 2}}, [(2, 3, 4)], "4"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [-2]}}}, [X], "dim 0 of the new shape"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [-1, 2, -1]}}}, [X], "multiple -1 dims"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [120]}, "axis": 5}}, [X], "axis 5 out of range"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [120]}, "axis": -6}}, [X], "axis -6 out of range"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [120]}, "num_axes": -2}}, [X], "num_axes must be"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [20]}, "axis": 2, "num_axes": 3}}, [X], "end_axis"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [1] * 4 + [0]}}}, [X], "Check failed"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [0, -1, 7]}}}, [X], "divisible"),
        ("Reshape", {"reshape_param": {"shape": {"dim": [119]}}}, [X], "output count must match input count"),
        ("Slice", {"top": TWO, "slice_param": {"axis": 1, "slice_dim": 1}}, [X], "Check failed"),
        ("Slice", {"top": TWO, "slice_param": {"slice_dim": 4}}, [X], "out of range"),
        (
            "Slice",
            {"top": TWO, "slice_param": {"slice_point": [1, 2]}},
            [X],
            "once for each top but the last",
        ),
        ("Slice", {"top": TWO, "slice_param": {"slice_point": [0]}}, [X], "must grow"),
        ("Slice", {"top": TWO, "slice_param": {"slice_point": [3]}}, [X], "must grow"),
        ("Scale", {"scale_param": {"num_axes": -2}}, [X], "num_axes must be non-negative"),
        ("Scale", {"scale_param": {"axis": 2, "num_axes": 3}}, [X], "Check failed"),
        ("Scale", {"scale_param": {"axis": 2}}, [X, (4, 5, 1)], "Check failed"),
        ("Scale", {"scale_param": {"axis": 2}}, [X, (4, 6)], "dimension mismatch"),
        ("Bias", {"bias_param": {"axis": 1}}, [X, (4,)], "dimension mismatch"),
    ],
)
def test_each_check(stock, layer, parameters, shapes, message):
    """Each number alone exceeds its limit."""
    run = getattr(stock, layer)(**parameters)
    bottoms = [torch.zeros(shape) for shape in shapes]
    with pytest.raises(CaffeRuntimeError, match=f"(?s){message}"):
        run(*bottoms)
