"""LLTM's checks of its arguments, before torch's own operators get them."""

import pytest
import torch

from cuffi import CaffeError, lltm


def freed(x):
    x = x.clone()
    x.untyped_storage().resize_(0)
    return x


GIVEN = {
    "input": torch.rand(2, 3),
    "weights": torch.rand(12, 7),
    "bias": torch.rand(12),
    "old_h": torch.rand(2, 4),
    "old_cell": torch.rand(2, 4),
}
CHANGES = {
    "device": lambda x: x.to("meta"),
    "dtype": torch.Tensor.double,
    "no dtype of ours": torch.Tensor.int,
    "more": lambda x: torch.cat([x, x]),
    "wider": lambda x: x.repeat(*[1] * (x.dim() - 1), 2),
    "axis": lambda x: x[None],
    "layout": torch.Tensor.to_sparse,
    "freed": freed,
    "nothing": lambda x: torch._efficientzerotensor(x.shape),
}


def test_what_fits_is_not_looked_at_again(monkeypatch):
    monkeypatch.setattr(lltm, "_refuse", lambda *_: pytest.fail("it is refused"))
    for dtype in lltm.layer.dtypes:
        assert lltm._are_valid(*(x.to(dtype) for x in GIVEN.values()))


# If the input is wider, it is the weights that do not fit.
@pytest.mark.parametrize(
    ("name", "change"), [(n, c) for n in GIVEN for c in CHANGES if (n, c) != ("input", "wider")]
)
def test_what_does_not_fit_is_named(name, change):
    given = GIVEN | {name: CHANGES[change](GIVEN[name])}
    looked_at_later = name == "old_cell" and change in (
        "device",
        "dtype",
        "no dtype of ours",
        "layout",
        "nothing",
        "freed",
    )
    assert lltm._are_valid(**given) == looked_at_later
    with pytest.raises(CaffeError, match="lltm: "):
        lltm._refuse(**given)


def test_when_backwards_products_are_apart():
    def cell(elements, dtype=torch.float32):
        return torch.empty(elements, dtype=dtype, device="meta")

    assert torch.get_float32_matmul_precision() == "highest"
    assert lltm._apart(cell(1 << 20)) and not lltm._apart(cell((1 << 20) - 1))
    assert not lltm._apart(cell(1 << 20, torch.float64)) and not lltm._apart(cell(1 << 20, torch.float16))
    try:
        torch.set_float32_matmul_precision("high")
        assert not lltm._apart(cell(1 << 20))
    finally:
        torch.set_float32_matmul_precision("highest")


def test_the_sizes_of_the_module():
    """A row of an input may be empty; a row of the state may not."""
    smallest = lltm.LLTM(0, 1)
    assert (smallest.weights.shape, smallest.bias.shape) == ((3, 1), (3,))
    for sizes, name in (((-1, 1), "input_features"), ((0, 0), "state_size"), ((3, 2.0), "state_size")):
        with pytest.raises(CaffeError, match=rf"lltm: {name}: expected an int"):
            lltm.LLTM(*sizes)
