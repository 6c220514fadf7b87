"""Numbers whose conversion to half types is difficult, and the comparison of results."""

import torch


def assert_same_floats(found, wanted):
    """Bit for bit, signs of zeros included; any NaN will do for a NaN."""
    assert torch.equal(found.isnan(), wanted.isnan())
    number = ~wanted.isnan()
    different = (found.view(torch.int32) != wanted.view(torch.int32)) & number
    assert not different.any(), f"{found[different][:5]} where torch has {wanted[different][:5]}"


def interesting_floats(dtype):
    """Every value of the type, the midpoints between neighbours and the floats beside them; NaN, random bits."""
    values = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype).float()
    finite = values[values.isfinite()].double().sort().values
    middle = ((finite[1:] + finite[:-1]) / 2).float()
    below, above = (torch.nextafter(middle, torch.full_like(middle, float(f"{s}inf"))) for s in "-+")
    bits = torch.randint(-(2**31), 2**31, (200_000,), generator=torch.Generator().manual_seed(5)).to(
        torch.int32
    )
    return torch.cat(
        [
            values,
            middle,
            below,
            above,
            bits.view(torch.float32),
            torch.tensor([1e-45, -1e-45, 65519.0, 65520.0]),
        ]
    )
