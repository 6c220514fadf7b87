"""A write by one element beside a tensor is told at a function's first call, and nothing else is."""

import ctypes
import sys
import threading

import numpy as np
import pytest
import torch
from support import python_with_torch

from cuffi import CaffeRuntimeError, load_inline
from cuffi.runtime.padding import Padding, _usable_size

pytestmark = pytest.mark.skipif(_usable_size() is None, reason="torch's memory is not of glibc's malloc")

SHIFTED = """
extern "C" __global__ void shifted(const float* in, float* out, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i + by] = in[i];
}
"""


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("by, place", [(1, "behind its memory's end"), (-1, "before its memory's beginning")])
def test_a_kernel_that_writes_one_element_beside(by, place):
    """It was silent: torch's padding took the value, or free() ended Python later."""
    module = load_inline(f"shifted{by}".replace("-", "_"), SHIFTED, backends="host")
    x, y = torch.ones(4), torch.zeros(4)
    with pytest.raises(CaffeRuntimeError, match=f"out: shifted.* wrote {place}") as caught:
        module.shifted(x, y, 4, by, 1, 1, 1, 64, 1, 1)
    assert "cpu float32 [4]" in str(caught.value) and "make sanitize" in str(caught.value)
    del x, y, caught


@pytest.mark.usefixtures("cache")
def test_what_the_memory_held_before_is_no_excuse():
    """A block that was freed may hold the value already that the kernel writes behind the tensor."""
    module = load_inline("shifted_again", SHIFTED.replace("shifted", "again"), backends="host")
    x, y = torch.ones(4), torch.zeros(4)
    ctypes.memmove(y.data_ptr() + 16, b"\x00\x00\x80\x3f", 4)  # 1.0
    with pytest.raises(CaffeRuntimeError, match="wrote behind its memory's end"):
        module.again(x, y, 4, 1, 1, 1, 1, 64, 1, 1)


@pytest.mark.usefixtures("cache")
def test_a_write_within_a_larger_memory_is_not_told():
    module = load_inline("shifted_within", SHIFTED, backends="host")
    whole = torch.zeros(5)
    module.shifted(torch.ones(4), whole[:4], 4, 1, 1, 1, 1, 64, 1, 1)
    assert whole.tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
def test_sizes(dtype):
    """Behind each tensor whose memory has padding, and before each."""
    seen = 0
    for count in range(1, 70):
        tensor = torch.zeros(count, dtype=dtype)
        start, size = tensor.data_ptr(), tensor.element_size()
        padded = _usable_size()(start) - count * size >= size
        watched = Padding({"a": tensor})
        assert watched.changed() is None
        if padded:
            ctypes.memset(start + count * size, 0xA5, size)
            watched = Padding({"a": tensor})
            ctypes.memset(start + count * size, 0x5A, size)
            assert watched.changed() == ("a", "behind its memory's end")
            seen += 1
        watched = Padding({"a": tensor})
        ctypes.memset(start - size, 0x5A, size)
        assert watched.changed() == ("a", "before its memory's beginning")
        assert watched.changed() is None  # mended, so the tensor can be freed
    assert seen > 30


def test_other_memory_is_left_alone():
    tensors = {
        "numpy": torch.from_numpy(np.zeros(4)),
        "shared": torch.zeros(4).share_memory_(),
        "none": torch.zeros(0),
    }
    assert not Padding(tensors)._beside


def test_other_threads_that_allocate_are_not_told():
    """Their calls change the sizes of neighbours."""
    stop, told = threading.Event(), []

    def churn(seed):
        generator = torch.Generator().manual_seed(seed)
        held = []
        while not stop.is_set():
            sizes = torch.randint(1, 4000, (64,), generator=generator).tolist()
            held = [torch.empty(n) for n in sizes][::2]
        del held

    threads = [threading.Thread(target=churn, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for i in range(3000):
        tensor = torch.zeros(1 + i % 97)
        watched = Padding({"a": tensor})
        held = [torch.empty(n) for n in (3, 50, 700)]
        told += [watched.changed()]
        del held
    stop.set()
    for thread in threads:
        thread.join()
    assert {*told} == {None}


@pytest.mark.usefixtures("cache")
def test_a_size_without_padding():
    """24 bytes fill malloc's block: the next block's size is hit, and that is told, too."""
    program = f"""
import os, torch
from cuffi import load_inline
try:
    module = load_inline("shifted_full", {SHIFTED!r}, backends="host")
    module.shifted(torch.ones(6), torch.zeros(6), 6, 1, 1, 1, 1, 64, 1, 1)
except RuntimeError as error:
    os.write(1, str(error).encode())
os._exit(0)  # freeing what lies around may end Python
"""
    done = python_with_torch.run([sys.executable, "-c", program])
    assert "wrote behind its memory's end" in done.stdout, done
