"""Names that no code can use here, such as those of a library that the toolkit does not have, each with the reason."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tools.cuda.lexer import Token

from .tree import WITHOUT

if TYPE_CHECKING:
    from .plan import Closure

# (pattern of a name, reason): names that a layer cannot use here.
DATABASE = WITHOUT["USE_LMDB"]
PYTHON = WITHOUT["WITH_PYTHON_LAYER"]
DATA = "reads its data itself: in PyTorch, use a DataLoader"
UNSUPPORTED = [
    (r"((Base|BasePrefetching|Image|)DataLayer|DataReader|InternalThread|BlockingQueue|Batch)\Z", DATA),
    (r"(leveldb|lmdb|MDB_\w+|mdb_\w+)\Z", DATABASE),
    (r"(CV_\d+[USF]C\d|IplImage|imread|imwrite)\Z", WITHOUT["USE_OPENCV"]),
    (r"(hid_t|hsize_t|H5\w+|hdf5_(load|save)\w+)\Z", "needs HDF5"),
    (r"(Solver|SGDSolver|SolverParameter|P2PSync|SolverRegistry)\Z", "needs the Solver: use your own loop"),
    (r"AddListener\Z", "waits for messages of the Solver, which your training loop does not send"),
    (r"(cudnn[A-Z]\w*|cudnn|CUDNN_\w+|CuDNN\w+)\Z", WITHOUT["USE_CUDNN"]),
    (r"(PyObject|PyErr_\w+|Py_\w+)\Z", PYTHON),
    (r"(MPI_\w+|ncclAllReduce)\Z", "talks to other processes"),
    (r"(curand(?!State|Direction|Discrete)[A-Z]\w*|curand_generator)\Z", "calls cuRAND itself"),
    (r"curand\w+\Z", "uses more of cuRAND in its kernels than uniform and normal numbers"),
    (r"cufft(Xt|Make|Get|Estimate|Create|SetAuto|SetWork)\w*\Z", "uses more of cuFFT than plans and transforms"),
    (r"(LAPACKE_\w+|LAPACK_\w+)\Z", "calls LAPACK, which the toolkit does not have"),
    (r"(cublas[A-Z]|cblas_|Cblas[A-Z])\w*\Z", "calls a BLAS function that the toolkit does not have"),
    (r"(cusolver|cusparse)[A-Z]\w*\Z", "needs a library that the toolkit does not have"),
    (r"(vsl[A-Z]\w*|VSL_\w+|v[sd]Rng\w+|mkl_[sd]\w+|dnn\w+_F(32|64))\Z", "calls Intel's MKL"),
    (r"(Mat_Open|Mat_VarRead\w*|matvar_t|CImg)\Z", "needs a library that the toolkit does not have"),
    (r"__declspec\Z", "is written for Microsoft's or Intel's compiler"),
    (r"(Ftype|Btype)\Z", "is NVCaffe's, whose layers have two types each"),
    (r"(MItype|MOtype)\Z", "is from Caffe with OpenCL, whose layers have three types each"),
]  # fmt: skip
NAMESPACES = {
    "cv": WITHOUT["USE_OPENCV"],
    "leveldb": DATABASE,
    "db": DATABASE,
    "bp": PYTHON,
    "cub": "uses cub, which the host does not have",
    **dict.fromkeys(("arma", "dlib", "tbb"), "needs a library that the toolkit does not have"),
}
# OpenCV's points, sizes and rectangles exist in the toolkit.
GEOMETRY = re.compile(r"(Point|Size|Rect)(_|2[fdi])?\Z")


@functools.cache
def unsupported(word: str) -> str | None:
    return next((reason for pattern, reason in UNSUPPORTED if re.match(pattern, word)), None)


def unsupported_use(closure: Closure, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Names that a layer cannot use here."""
    for token, after, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind == "name":
            is_scope = after.text == "::" and not GEOMETRY.match(name.text)
            reason = NAMESPACES.get(token.text) if is_scope else None
            # A class that is named so, and is compiled without cuDNN
            own = token.text in closure.class_names and token.text.startswith("CuDNN")
            if reason is None and token.text not in closure.toolkit.words and not own:
                reason = unsupported(token.text)
            if reason:
                yield token, f"{reason} ({token.text})"
