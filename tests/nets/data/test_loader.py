"""Data layers as DataLoaders, on small generated sets: LMDB, LevelDB, lists of images, HDF5."""

from cuffi.nets.data.loader import item_shapes
from cuffi.nets.stock import stock_types


def test_types_that_are_read_are_no_stock_types():
    """A data layer computes nothing: its tops are inputs, whose shapes may be unknown."""
    from cuffi.nets.data.loader import READ

    assert not set(READ) & set(stock_types())
    assert item_shapes(type("Spec", (), {"type": "Input"})(), "x") == {}
