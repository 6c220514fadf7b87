"""Train a Caffe net as Caffe did: solver files as torch optimizers, snapshots, and the loop of `make train`."""

from .optimizer import CaffeOptimizer, CaffeSchedule, caffe_solver
from .solver_prototxt import Settings, read_settings

__all__ = ["CaffeOptimizer", "CaffeSchedule", "Settings", "caffe_solver", "read_settings"]
