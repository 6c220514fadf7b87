"""What a layer may use that keeps it from running here, and how to say so.

Only code that is compiled counts: not what stands behind USE_CUDNN, USE_OPENCV or CPU_ONLY, nor the other classes of an
aggregate header, nor an include of which nothing is used.
"""

from __future__ import annotations

import functools
import itertools
import re
from itertools import pairwise

from cuda_lexer import Token
from tree import SOURCE_KINDS, Class, Place, classes_in

# Words of things that the toolkit does not do, in layers that use them: what to say.
DATA = "reads its data itself: in PyTorch that is a DataLoader's work"
# Of thrust there is what sorts and sums host memory (include/legacy/thrust).
THRUST = "uses thrust on the device, where it runs outside of torch's stream"
UNSUPPORTED = [
    (r"(BaseDataLayer|BasePrefetchingDataLayer|DataReader|InternalThread|BlockingQueue|Batch)\Z", DATA),
    (r"(leveldb|lmdb|MDB_\w+|mdb_\w+)\Z", "reads a database: in PyTorch that is a DataLoader's work"),
    (r"(hid_t|H5\w+|hdf5_(load|save)\w+)\Z", "needs HDF5"),
    (r"(Solver|SGDSolver|SolverParameter|P2PSync|SolverRegistry)\Z", "needs the Solver: in PyTorch that is your loop"),
    (r"(cudnn[A-Z]\w*|cudnn|CUDNN_\w+)\Z", "works by cuDNN only"),
    (r"(PyObject|PyErr_\w+|Py_\w+)\Z", "is a Python layer: call its Python code from PyTorch"),
    (r"(MPI_\w+|ncclAllReduce)\Z", "talks to other processes"),
    (r"(curand(?!State|Direction|Discrete)[A-Z]\w*|curand_generator)\Z", "calls cuRAND itself"),
    (r"curand\w+\Z", "wants of cuRAND in its kernels more than uniform and normal numbers"),
    (r"cufft(Xt|Make|Get|Estimate|Create|SetAuto|SetWork)\w*\Z", "wants of cuFFT more than plans and transforms"),
    (r"device_(vector|ptr|pointer_cast)\Z", THRUST),
    (r"(GetReflection|Reflection|FieldDescriptor)\Z", "asks protobuf what its messages consist of (reflection)"),
    (r"(Mat_Open|Mat_VarRead\w*|matvar_t|CImg)\Z", "needs a library that the toolkit does not have"),
    (r"(Ftype|Btype)\Z", "is NVCaffe's, whose layers have two types each"),
]  # fmt: skip
NAMESPACES = {
    "cv": "needs OpenCV",
    "leveldb": "reads a database: in PyTorch that is a DataLoader's work",
    "db": "reads a database: in PyTorch that is a DataLoader's work",
    "bp": "is a Python layer: call its Python code from PyTorch",
    "cub": "uses cub, which has no meaning on the host",
}
# What a DataTransformer does. A layer may own one in order to show images, behind USE_OPENCV.
TRANSFORMS = re.compile(r"(Transform\w*|InferBlobShape|CropImage|ExpandImage|DistortImage)\Z")
# A fork's versions of these are not taken: they are the engine.
CORE = ["blob", "syncedmem", "common", "layer", "net", "layer_factory", "internal_thread"]


@functools.cache
def unsupported(word: str) -> str | None:
    return next((reason for pattern, reason in UNSUPPORTED if re.match(pattern, word)), None)


def refuse(needs):
    """Add to needs.problems what stands in the way. One place for each file and reason will do."""
    core = functools.partial(core_use, added=core_additions(needs))
    for file, tokens in needs.scanned:
        for uses in (unsupported_use, thrust_use, transformer_use, old_signature, core):
            found = uses(needs, tokens)
            if found:
                token, text = found
                needs.problem(Place(file, needs.line(file, token)), f"{needs.target.name} {text}", True)
    for file in needs.files:
        if not file.endswith(SOURCE_KINDS) and (found := missing_base(needs, file)):
            needs.problem(Place(file, found[0]), f"{needs.target.name}: {found[1]}", True)


def unsupported_use(needs, tokens: list[Token]) -> tuple[Token, str] | None:
    """The first word of something that the toolkit does not do."""
    for i, token in enumerate(tokens):
        if token.kind != "name":
            continue
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        reason = NAMESPACES.get(token.text) if after == "::" else None
        if reason is None and token.text not in needs.toolkit.words:
            reason = unsupported(token.text)
        if reason:
            return token, f"{reason} ({token.text})"
    return None


def thrust_use(needs, tokens: list[Token]) -> tuple[Token, str] | None:
    """The first of thrust's names that our headers lack: device_vector, device_ptr, cuda::par ..."""
    for i, name in enumerate(tokens[2:]):
        said = tokens[i].text == "thrust" and tokens[i + 1].text == "::"
        if said and name.text not in needs.toolkit.thrust:
            return tokens[i], f"{THRUST} (thrust::{name.text})"
    return None


def transformer_use(needs, tokens: list[Token]) -> tuple[Token, str] | None:
    """The first call by which a layer that has a DataTransformer lets it read something."""
    if not any(token.text == "DataTransformer" for _, scanned in needs.scanned for token in scanned):
        return None
    for i, token in enumerate(tokens[1:-1], 1):
        if TRANSFORMS.match(token.text) and is_called(tokens, i):
            return token, f"{DATA} (DataTransformer::{token.text})"
    return None


def old_signature(needs, tokens: list[Token]) -> tuple[Token, str] | None:
    """`vector<Blob<Dtype>*>* top`: tops by pointer."""
    pattern = ["vector", "<", "Blob", "<", "Dtype", ">", "*", ">", "*", "top"]
    for i, token in enumerate(tokens):
        if token.text == "vector" and [t.text for t in tokens[i : i + len(pattern)]] == pattern:
            return token, "is from before the Layer interface of late 2014 (tops by pointer)"
    return None


def missing_base(needs, file: str) -> tuple[int, str] | None:
    """In a header, aggregate ones above all: a class that derives from one as only the fork's core has it."""
    tokens = needs.tree.source(file).lexed.tokens
    for one in classes_in(needs.tree.source(file), file):
        head = itertools.takewhile(lambda token: token.text != "{", tokens[slice(*one.tokens)])
        for base in (needs.tree.classes.get(token.text) for token in head):
            if not base or base.name == one.name or not needs.is_core(base.file):
                continue
            derives = f"in its header {one.name} derives from {base.name}"
            if base.name not in needs.toolkit.classes:
                return one.line, f"{derives}, which the toolkit lacks"
            if base.name == "Blob" and (place := made_virtual(needs, base)):
                return one.line, f"{derives}, whose functions this fork made virtual ({place})"
    return None


def made_virtual(needs, blob: Class) -> Place | None:
    """Where a fork's Blob has its first virtual function; stock Caffe's has none."""
    tokens = needs.tree.source(blob.file).lexed.tokens[slice(*blob.tokens)]
    found = next((token for token in tokens if token.text == "virtual"), None)
    return found and Place(blob.file, needs.line(blob.file, found))


def core_additions(needs) -> dict[str, Place]:
    """Members that the fork gave to Blob, Layer and their like."""
    found: dict[str, Place] = {}
    for stem in CORE:
        file = f"include/caffe/{stem}.hpp"
        if not (needs.tree.root / file).is_file():
            continue
        for token in functions_lacking(needs, file) + data_lacking(needs, file):
            found.setdefault(token.text, Place(file, needs.line(file, token)))
    own = {function.name for file in needs.files for function in needs.tree.source(file).functions}
    own |= {name for one in needs.additions.values() for name in one.names}
    own |= {t.text for file, tokens in needs.scanned if not file.endswith(SOURCE_KINDS) for t in tokens}
    return {name: place for name, place in found.items() if name not in own}


def functions_lacking(needs, file: str) -> list[Token]:
    """What a header of the fork declares with a parameter list, by names that the toolkit does not know."""
    tokens = needs.tree.source(file).lexed.tokens
    named = (t for t, after in pairwise(tokens) if t.kind == "name" and after.text == "(")
    return [token for token in named if token.text not in needs.toolkit.words]


def data_lacking(needs, file: str) -> list[Token]:
    """The data members, net_ and its like, that a header of the fork declares and the toolkit does not know."""
    tokens = needs.tree.source(file).lexed.tokens
    named = (t for t, after in pairwise(tokens) if after.text == ";" and re.match(r"[a-z]\w*_\Z", t.text))
    return [token for token in named if token.text not in needs.toolkit.words]


def is_called(tokens: list[Token], i: int) -> bool:
    """As a member: x.f(, x->f(, X::f(."""
    return tokens[i + 1].text == "(" and tokens[i - 1].text in (".", "->", "::")


def core_use(needs, tokens: list[Token], added: dict[str, Place]) -> tuple[Token, str] | None:
    """The first use of such a member: x.f(, this->net_."""
    for i, token in enumerate(tokens[1:-1], 1):
        own = token.text.endswith("_") and [t.text for t in tokens[max(i - 2, 0) : i]] == ["this", "->"]
        if token.text in added and (own or is_called(tokens, i)):
            text = f"uses {token.text}, which this fork added to Caffe's core ({added[token.text]})"
            return token, text + "; the toolkit's core is stock Caffe's"
    return None
