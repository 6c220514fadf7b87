"""What C++ asks Python for."""

import pytest
import torch

from cuffi import CaffeRuntimeError
from cuffi.old_torch import aten_service as service


def test_arguments_by_place_and_by_name():
    function, count, names = service.resolve("sum", "dim_IntList", "self,dim,keepdim,dtype")
    assert (count, names) == (3, ("dtype",))
    x = torch.ones(2, 3)
    assert function(x, [1], True, dtype=torch.float64).tolist() == [[3], [3]]


def test_what_makes_a_tensor_is_torchs_quick_function():
    x = torch.zeros(2, 3, 4, 5, dtype=torch.half).contiguous(memory_format=torch.channels_last)
    options = {"dtype": torch.int32, "layout": torch.strided, "device": x.device, "pin_memory": False}
    named = "self,dtype,layout,device,pin_memory,memory_format"
    for name in ("empty_like", "ones_like", "zeros_like"):
        function, count, names = service.resolve(name, "", named)
        assert function is getattr(torch, name) and count == 1 and names == tuple(named.split(",")[1:])
        for given in ({}, options, {"memory_format": torch.contiguous_format}):
            wanted = getattr(torch.ops.aten, name)(x, **given)
            made = function(x, **given)
            assert (made.dtype, made.stride()) == (wanted.dtype, wanted.stride())
            assert name == "empty_like" or torch.equal(made, wanted)
    for name in ("empty", "ones", "zeros"):
        function, count, _ = service.resolve(name, "memory_format" * (name == "empty"), "size,dtype")
        assert (
            function is getattr(torch, name) and count == 1 and function([2], **options).dtype is torch.int32
        )
    assert service.resolve("empty_like", "out", "self,memory_format,out")[0] is not torch.empty_like


def test_a_torch_with_fewer_arguments():
    """The binary's declarations are of another torch: what it lacks may only be None."""
    function, _, names = service.resolve("sum", "dim_IntList", "self,dim,keepdim,dtype,of_tomorrow")
    assert names == ("dtype", "of_tomorrow")
    assert function(torch.ones(2), [0], False).item() == 2
    with pytest.raises(
        CaffeRuntimeError,
        match=r"torch .* has no argument `of_tomorrow`",
    ):
        function(torch.ones(2), [0], False, of_tomorrow=1)
    with pytest.raises(
        CaffeRuntimeError, match=r"has no aten::of_tomorrow\.x: build the extension with this"
    ):
        service.resolve("of_tomorrow", "x", "self")


def test_a_torch_with_more_arguments():
    function, count, _ = service.resolve("sum", "dim_IntList", "self,dim")
    assert count == 2 and function(torch.ones(2), [0]).item() == 2


def test_the_fields_of_a_tensor_without_memory():
    x = torch.eye(3, dtype=torch.float64).to_sparse()
    assert service.describe(x) == ((3, 3), (0, 0), 7, 0, -1)
    assert service.place(torch.device("cuda", 2)) == 1 << 8 | 3 and service.place("cuda") is None


def test_matrices_by_columns():
    """As BLAS has them: c = alpha a' b + beta c."""
    a, b, c = torch.randn(4, 5), torch.randn(6, 5), torch.randn(6, 4)  # by rows: the columns of a, b' and c
    wanted = 2 * b @ a.T + 3 * c
    where = torch.device("cpu")
    pointers = [t.data_ptr() for t in (a, b, c)]
    service.gemm(where, a.dtype, "t", "n", 4, 6, 5, 2.0, pointers[0], 5, pointers[1], 5, 3.0, pointers[2], 4)
    torch.testing.assert_close(c, wanted)
    x, y = torch.randn(5), torch.full((4,), torch.nan)
    service.gemv(where, a.dtype, "t", 5, 4, 1.0, a.data_ptr(), 5, x.data_ptr(), 1, 0.0, y.data_ptr(), 1)
    torch.testing.assert_close(y, a @ x)


def test_memory_that_it_does_not_own():
    x = torch.arange(12.0)
    view = service._from_blob(x.data_ptr(), (3, 2), (4, 2), x.dtype, None)
    assert view.tolist() == [[0, 2], [4, 6], [8, 10]]
    view[0, 1] = 9
    assert x[2] == 9
    assert service._from_blob(x.data_ptr(), (2, 0), None, x.dtype, None).shape == (2, 0)


def test_which_libraries_share_an_operator():
    """The second library's implementation for all devices is joined to the first one's; one for a device is its own."""
    of_host, of_gpu = (lambda n: 1), (lambda n: 2)
    space = "aten_test_shared"
    for on_host, function, earlier in (1, of_host, None), (0, of_gpu, of_host):
        assert service.library("shared", space, "", "define", "all(int n) -> int", None, on_host) is None
        assert service.library("shared", space, "", "impl", "all", function, on_host) is earlier
        assert service.library("shared", space, "", "define", "own(Tensor x) -> int", None, on_host) is None
        assert service.library("shared", space, "CPU", "impl", "own", function, on_host) is None
    ops = getattr(torch.ops, space)
    assert ops.all(3) == ops.own(torch.ones(1)) == 1
    for name, words in ("shared", "another build of shared"), ("other", "shared"):
        with pytest.raises(RuntimeError, match=f"all is there already, defined by {words}$"):
            service.library(name, space, "", "impl", "all", of_gpu, 0 if name == "other" else 1)
