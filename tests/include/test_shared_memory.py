"""Dynamic shared memory: where a kernel declares it, and how much a launch has."""

import pytest
import torch

from cuffi.runtime import CaffeRuntimeError


@pytest.mark.parametrize("way", range(4))
def test_shared_memory_that_a_kernel_does_not_declare(kernels, device, way):
    bottom, top = torch.arange(64.0, device=device), torch.zeros(64, device=device)
    kernels["shared"].shared_hidden(bottom, top, way)
    assert torch.equal(top, bottom.flip(0))


@pytest.mark.parametrize(
    ("bytes", "at"),
    [(64, 16), (60, 15), (4, 1), (0, 0), (0, 1000), (64, 50_000), (64, -1), (200_000, 50_000)],
)
def test_a_launch_has_the_shared_memory_that_it_asks_for(kernels, bytes, at):
    """After a launch with more, too. Before, the kernel wrote to memory that was not its own."""
    shared, top = kernels["shared"], torch.zeros(40)
    shared.shared_outside(top, 54_999, 220_000)
    for own in (bytes // 4 - 1, 0):
        if bytes:
            shared.shared_outside(top, own, bytes)
    with pytest.raises(CaffeRuntimeError, match=rf"kernel outside_kernel: .* asked for {bytes} bytes"):
        shared.shared_outside(top, at, bytes)
