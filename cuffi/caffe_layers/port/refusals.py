"""Find what a layer uses that the toolkit does not have, with place and reason.

Only code that is compiled counts. Code behind USE_CUDNN, USE_OPENCV or CPU_ONLY, other classes of an aggregate header,
and includes that the layer does not use do not count.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator

from tools.cuda.lexer import Token
from tools.cuda.source import Source

from .core import CORE_FILES, is_containers
from .items import Item, Place
from .plan import Pick, Problem, is_called, of_core
from .tree import PROTO, SOURCE_KINDS, WITHOUT

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
# protoc's prefixes of a field's name.
ACCESSOR = re.compile(r"\A(add|clear|has|mutable|release|set|set_allocated)_(?=\w+_param\Z|param\Z)")
# Functions of a DataTransformer. A layer may own one without calling it, to show images behind USE_OPENCV.
TRANSFORMS = re.compile(r"(Transform\w*|InferBlobShape|CropImage|ExpandImage|DistortImage)\Z")


@functools.cache
def unsupported(word: str) -> str | None:
    return next((reason for pattern, reason in UNSUPPORTED if re.match(pattern, word)), None)


def refusals(pick: Pick) -> list[Problem]:
    """The reasons not to port. Those in the layer's own files come first. Each reason has one place per file."""
    problems = [*pick.problems]
    own_words = own_names(pick)
    added = {name: place for name, place in pick.names.core.added.items() if name not in own_words}
    # A layer calls this->f() of its own classes; a function f of another class that is copied does not count.
    of_own = {item.name for name in pick.class_names for item in layer_members(pick, name)}
    of_layer = {name: place for name, place in pick.names.core.layer_added.items() if name not in of_own}
    core = functools.partial(core_use, added=added, of_layer=of_layer)
    for file, tokens in pick.scanned:
        for uses in (unsupported_use, transformer_use, core):
            for token, text in itertools.islice(uses(pick, tokens), 1):
                place = pick.tree[file].place(token)
                problems.append(Problem(place, f"{pick.target.name} {text}", True))
    problems += [*messages_missing(pick), *switched_off(pick)]
    own = {pick.target.file, *pick.tree.members(pick.target.name)}
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.place.file not in own)


# Each of these yields (token at which something is used, reason).


def unsupported_use(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Names that a layer cannot use here."""
    for token, after, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if token.kind == "name":
            is_scope = after.text == "::" and not GEOMETRY.match(name.text)
            reason = NAMESPACES.get(token.text) if is_scope else None
            # A class that is named so, and is compiled without cuDNN
            own = token.text in pick.class_names and token.text.startswith("CuDNN")
            if reason is None and token.text not in pick.toolkit.words and not own:
                reason = unsupported(token.text)
            if reason:
                yield token, f"{reason} ({token.text})"


def transformer_use(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Calls of a DataTransformer, which reads data."""
    calls = [t for i, t in enumerate(tokens[1:-1], 1) if TRANSFORMS.match(t.text) and is_called(tokens, i)]
    if calls and any(t.text == "DataTransformer" for _, scanned in pick.scanned for t in scanned):
        for token in calls:
            yield token, f"{DATA} (DataTransformer::{token.text})"


def core_use(
    pick: Pick, tokens: list[Token], added: dict[str, Place], of_layer: dict[str, Place]
) -> Iterator[tuple[Token, str]]:
    """Uses of what the fork added to Caffe's core.

    These are members (x.f( or this->net_), members of Layer (this->f(), variables, and Layer's static variables
    (Layer<Dtype>::x).
    """
    variables = pick.names.core.variables
    core = added.keys() | of_layer.keys() | variables.keys() | pick.names.core.layer_variables.keys()
    for i, token in enumerate(tokens[1:-1], 1):
        if token.text not in core:
            continue
        own = [t.text for t in tokens[max(i - 2, 0) : i]] == ["this", "->"]
        place = of_layer.get(token.text) if own else None
        if is_containers(tokens, i):
            continue
        place = place or added.get(token.text)
        if not (place and ((own and token.text.endswith("_")) or is_called(tokens, i))):
            place = None if tokens[i - 1].text in (".", "->") else variables.get(token.text)
        if [t.text for t in tokens[max(i - 5, 0) : i]] == ["Layer", "<", "Dtype", ">", "::"]:
            place = place or pick.names.core.layer_variables.get(token.text)
        if place:
            yield token, f"uses {of_core(token.text, place)}"


def own_names(pick: Pick) -> set[str]:
    """The names that the files of the pick define or declare."""
    own = {function.name for file in pick.files for function in pick.tree[file].source.functions}
    own |= {name for cut in pick.cuts.values() for name in cut.names}
    headers = ((file, tokens) for file, tokens in pick.scanned if not file.endswith(SOURCE_KINDS))
    return own | {t.text for file, tokens in headers if file not in CORE_FILES for t in tokens}


def layer_members(pick: Pick, name: str) -> list[Item]:
    """The members of the classes of this name that are layers: their heads name a base of Layer's family."""
    found = [cls for cls in pick.tree.classes(name) if cls.file in pick.files or cls.file == pick.target.file]
    heads = ((cls, itertools.takewhile(lambda t: t.text != "{", cls.tokens)) for cls in found)
    return [
        m
        for cls, head in heads
        if any(t.text.endswith("Layer") for t in head if t.text != name)
        for m in cls.members
    ]


def switched_off(pick: Pick) -> Iterator[Problem]:
    """A layer whose functions are compiled only with a library that the toolkit does not have."""
    sources = [pick.tree[file] for file in pick.tree.members(pick.target.name) if file.endswith(SOURCE_KINDS)]
    if any(function.scope == pick.target.name for file in sources for function in file.source.functions):
        return
    for file in sources:
        for setting, reason in WITHOUT.items():
            functions = Source(file.text, file.name, file.defined | {setting: 1}).functions
            if setting in file.text and any(function.scope == pick.target.name for function in functions):
                yield Problem(file.place(0), f"{pick.target.name} {reason}", True)
                return


def messages_missing(pick: Pick) -> Iterator[Problem]:
    """The first message that the layer reads, as in layer_param_.shift_param(), and that no .proto of the tree has.

    If the tree has no .proto at all, it is a few published files. Then the user must put the message beside them.
    """
    has_proto = pick.tree.has(PROTO) or any(pick.tree.root.rglob("*.proto"))
    fields = pick.names.fields
    for file, tokens in pick.scanned:
        for i, token in enumerate(tokens[2:-1], 2):
            name = ACCESSOR.sub("", token.text)
            of_layer = tokens[i - 2].text in ("layer_param_", ")") and is_called(tokens, i)
            if of_layer and name.endswith("_param") and fields.isdisjoint({name, token.text}):
                reads, place = f"{pick.target.name} reads {name}", pick.tree[file].place(token)
                if has_proto:
                    text = f"{reads}, which no message of the tree has: add it to caffe.proto, and port again"
                else:
                    text = f"{reads}, and the tree has no caffe.proto: put its message beside the layer's files, in a"
                    text += " .proto of any name"
                yield Problem(place, text, has_proto)
                return
