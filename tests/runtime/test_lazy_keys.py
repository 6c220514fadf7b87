"""Memory of negatives and conjugates: C reads a tensor's dispatch keys, or asks torch."""

import ctypes

import pytest
import torch
from cuffi.sigmoid import layer as sigmoid_layer
from cuffi.sigmoid import sigmoid
from support.typed import not_none

from cuffi.runtime import CaffeError, extension

LAZY = {
    "negated": lambda x: torch._neg_view(x),
    "of a conjugate": lambda x: torch.complex(x, -x).conj().imag,
    "of a view": lambda x: torch._neg_view(torch.cat([x, x]))[4:],
    "a parameter's": lambda x: torch._neg_view(torch.nn.Parameter(x)).detach(),
}


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("kind", LAZY)
def test_memory_of_negatives_is_noticed(kind, asks):
    """C finds a tensor's dispatch keys where Python has found them; a torch that has them elsewhere is asked."""
    known = {"lazy_keys": None} if asks else {}
    not_none(extension.usable()).configure(extension.of_torch() | known)
    try:
        x = torch.tensor([-2.0, 0.0, 1.0, 3.0])
        for bottom, wanted in ((x, x), (lazy := LAZY[kind](x), lazy.resolve_neg())):
            for _ in range(4):
                torch.testing.assert_close(sigmoid(bottom), torch.sigmoid(wanted))
                top = torch.empty(4)
                sigmoid_layer.sigmoid_forward(bottom.contiguous(), top, 4)
                assert torch.allclose(top, torch.sigmoid(wanted))
        with pytest.raises(CaffeError, match="not their negatives"):
            sigmoid_layer.sigmoid_forward(x, torch._neg_view(torch.empty(4)), 4)
    finally:
        not_none(extension.usable()).configure(extension.of_torch())


def test_where_the_keys_are():
    """In tensors of other kinds than those by which the place was found. None: another torch."""
    found = extension.lazy_keys()
    if found is None:
        pytest.skip("this torch has the keys elsewhere")
    pointer, at, negative, conjugate = found
    z = torch.randn(3, 2, dtype=torch.complex128)
    for one in (z, z.conj(), z.conj().imag, torch.randn(2).to_sparse(), torch.nn.Buffer(torch.ones(1)), z.mH):
        impl = ctypes.c_uint64.from_address(id(one) + pointer).value
        keys = ctypes.c_uint64.from_address(impl + at).value
        assert impl == one._cdata and keys == torch._C._dispatch_keys(one).raw_repr()
        assert (bool(keys & negative), bool(keys & conjugate)) == (one.is_neg(), one.is_conj())
