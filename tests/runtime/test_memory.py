"""Memory of C as tensors."""

import numpy
import pytest
import torch

from cuffi.runtime.memory import _CudaArray, place, view_memory


@pytest.mark.parametrize("name", ["float32", "float64", "int32", "uint8", "complex64", "complex128"])
def test_memory_of_a_gpu_as_torch_takes_it(name):
    """The CUDA array interface, whose types are numpy's."""
    said = _CudaArray(64, 3, getattr(torch, name)).__cuda_array_interface__
    assert numpy.dtype(said.pop("typestr")) == numpy.dtype(name)
    assert said == {"data": (64, False), "shape": (3,), "version": 2}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_a_tensor_over_memory_is_that_memory(device, dtype):
    x = torch.tensor([1, 0, 1, 1], device=device).to(dtype)
    where = place(-1 if device == "cpu" else torch.cuda.current_device())
    view = view_memory(x.data_ptr() + dtype.itemsize, 3, dtype, where)
    assert view.dtype == dtype and view.device == x.device and torch.equal(view, x[1:])
    view[0] = 1
    assert x[1] == 1
    assert view_memory(0, 0, dtype, where).shape == (0,)
