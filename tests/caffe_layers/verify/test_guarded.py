"""make verify: memory that ends where a blob ends."""

import ctypes
import mmap
import os
import signal

import torch

from cuffi.caffe_layers.verify.guarded import guarded


def test_memory_that_ends():
    """Reading after a guarded tensor, or before its page, ends the process."""
    for shape in ((5, 5), (512,), (3, 171), ()):
        given = torch.randn(shape, dtype=torch.float64)
        copy = guarded(given)
        assert torch.equal(copy, given) and copy.is_contiguous()
        page = copy.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
        for address in (copy.data_ptr() + 8 * copy.numel(), page - 8):
            child = os.fork()
            if not child:
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                ctypes.c_double.from_address(address).value  # noqa: B018
                os._exit(0)
            assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGSEGV
    assert guarded(torch.zeros(0, 3)).shape == (0, 3)
