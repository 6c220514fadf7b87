"""Promises that g++ takes and nvcc does not: kernels that read one memory as more than one type."""

import torch


def test_halves_that_are_loaded_as_float4(kernels, device):
    bottom = torch.randn(4096, generator=torch.Generator().manual_seed(1)).half().to(device)
    top = torch.zeros_like(bottom)
    kernels["promises"].promises_halves_as_float4(bottom.view(torch.int32), top.view(torch.int32), 4096)
    assert torch.equal(top.cpu(), bottom.cpu().float().relu().half())


def test_a_float_that_is_changed_as_an_int(kernels, device):
    bottom = torch.randn(1000, generator=torch.Generator().manual_seed(1)).to(device)
    top = torch.zeros_like(bottom)
    kernels["promises"].promises_float_as_int(bottom, top, 1000)
    assert torch.equal(top, bottom.abs())


def test_numbers_that_are_read_in_smaller_pieces(kernels, device):
    seeded = torch.Generator().manual_seed(3)
    bottom = torch.randint(-(2**31), 2**31, (1000,), generator=seeded).to(device, torch.int32)
    top = torch.zeros_like(bottom)
    kernels["promises"].promises_shared_as_shorts(bottom, top, 1000)
    assert torch.equal(top.cpu(), bottom.cpu().view(torch.int16).view(-1, 2).sum(1).int())
    reals = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).to(device)
    kernels["promises"].promises_double_as_ints(reals, top, 1000)
    assert torch.equal(top.cpu(), reals.cpu().view(torch.int32).view(-1, 2).long().sum(1).to(torch.int32))
