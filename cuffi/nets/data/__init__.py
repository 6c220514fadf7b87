"""The data layers of a train_val.prototxt as torch data: Data (LMDB, LevelDB), ImageData and HDF5Data."""

from .loader import data_loaders

__all__ = ["data_loaders"]
