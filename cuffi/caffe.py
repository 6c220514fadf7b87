"""Caffe's Python interface, pycaffe, on PyTorch: `from cuffi import caffe`.

    net = caffe.Net("deploy.prototxt", "weights.caffemodel", caffe.TEST)
    net.blobs["data"].data[...] = image
    probabilities = net.forward()["prob"]

    python -m cuffi.caffe script.py arguments

The last line runs a Python 2 or 3 script that imports caffe, unedited. After `install()`, `import caffe` returns this
module. docs/run-a-pycaffe-script.md lists what exists and what differs.
"""

import sys as _sys

if __name__ == "__main__":
    from .nets.pycaffe.run_script import main

    _sys.exit(main(f"python -m {__package__}.caffe", _sys.argv[1:]))

from .base import CaffeRuntimeError as _CaffeRuntimeError
from .caffe_files.parameters import did_you_mean as _did_you_mean
from .nets.net.blob import Blob, BlobVec, Layer, RawBlobVec
from .nets.pycaffe import classifier, coord_map, draw, io, net_spec, proto
from .nets.pycaffe.classifier import Classifier, Detector
from .nets.pycaffe.mode import TEST, TRAIN, set_device, set_mode_cpu, set_mode_gpu, set_random_seed
from .nets.pycaffe.net_spec import NetSpec, layers, params, to_proto
from .nets.pycaffe.parallel import NCCL, Timer, has_nccl, solver_count, solver_rank
from .nets.pycaffe.proto import caffe_pb2 as _caffe_pb2
from .nets.pycaffe.pycaffe_net import Net
from .nets.pycaffe.solver import CLASSES as _SOLVERS
from .nets.pycaffe.solver import Solver, get_solver
from .nets.solver.caffe_log import formed as _formed
from .nets.solver.caffe_log import to_stderr as _to_stderr
from .nets.stock import stock_types as _stock_types

__version__ = "1.0.0"  # the version of the pycaffe that has these names
__all__ = [
    *_SOLVERS,
    "TEST",
    "TRAIN",
    "Blob",
    "BlobVec",
    "Classifier",
    "Detector",
    "Layer",
    "NCCL",
    "Net",
    "NetSpec",
    "RawBlobVec",
    "Solver",
    "Timer",
    "coord_map",
    "draw",
    "get_solver",
    "has_nccl",
    "install",
    "io",
    "layer_type_list",
    "layers",
    "net_spec",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
    "solver_count",
    "solver_rank",
    "to_proto",
]
globals().update(_SOLVERS)
detector = classifier
pycaffe = _caffe = _sys.modules[__name__]
_MODULES = {"io": io, "proto": proto, "proto.caffe_pb2": _caffe_pb2, "net_spec": net_spec, "classifier": classifier,
            "detector": detector, "coord_map": coord_map, "draw": draw, "pycaffe": pycaffe,
            "_caffe": _caffe}  # fmt: skip


def layer_type_list() -> list[str]:
    """All types of BVLC's Caffe. Ported layers' types are not among them."""
    return sorted({*_stock_types(), *net_spec.DATA_TYPES})


def init_log(*_) -> None:
    """Does nothing: the log of training goes to stderr."""


def log(text: str) -> None:
    """Write a line of the log."""
    _to_stderr(_formed(text))


set_multiprocess = set_solver_count = set_solver_rank = init_log


def install(over: bool = False) -> None:
    """Let `import caffe` return this module in this process.

    Args:
        over: also if another caffe is installed, or has been imported.

    Raises:
        CaffeRuntimeError: there is another caffe, and `over` is false.
    """
    import importlib.util

    this = _sys.modules[__name__]
    other = _sys.modules.get("caffe")
    found = other if other is not None else importlib.util.find_spec("caffe")
    if found not in (None, this) and not over:
        place = (
            getattr(found, "origin", None) or getattr(found, "__file__", None) or "a module without a file"
        )
        raise _CaffeRuntimeError(
            f"caffe.install: another caffe is here, {place}: install(over=True) hides it"
        )
    _sys.modules["caffe"] = this
    _sys.modules.update({f"caffe.{name}": module for name, module in _MODULES.items()})


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("LayerParameter", "NetState", "SolverParameter"):
        return getattr(_caffe_pb2, name)
    near = _did_you_mean(name, __all__)
    raise AttributeError(f"caffe.{name}: not in this pycaffe{near or '.'} There are: {', '.join(__all__)}")
