"""Find what a layer uses that the toolkit does not have, with place and reason.

Only code that is compiled counts. Code behind USE_CUDNN, USE_OPENCV or CPU_ONLY, other classes of an aggregate header,
and includes that the layer does not use do not count.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from itertools import pairwise

from ..cuda.lexer import Token
from .core import CORE_FILES
from .items import Class, Place
from .names import Names
from .plan import Pick, Problem, is_called, of_core
from .tree import PROTO, SOURCE_KINDS, WITHOUT
from .undeclared import undeclared

# (pattern of a name, reason): names that a layer cannot use here.
DATABASE = WITHOUT["USE_LMDB"]
PYTHON = WITHOUT["WITH_PYTHON_LAYER"]
DATA = "reads its data itself: in PyTorch that is a DataLoader's work"
THRUST = "uses a part of thrust that the toolkit does not have on the processor"
UNSUPPORTED = [
    (r"((Base|BasePrefetching|Image|)DataLayer|DataReader|InternalThread|BlockingQueue|Batch)\Z", DATA),
    (r"(leveldb|lmdb|MDB_\w+|mdb_\w+)\Z", DATABASE),
    (r"(CV_\d+[USF]C\d|IplImage|imread|imwrite)\Z", WITHOUT["USE_OPENCV"]),
    (r"(hid_t|hsize_t|H5\w+|hdf5_(load|save)\w+)\Z", "needs HDF5"),
    (r"(Solver|SGDSolver|SolverParameter|P2PSync|SolverRegistry)\Z", "needs the Solver: in PyTorch that is your loop"),
    (r"AddListener\Z", "waits for messages of the Solver: in PyTorch that is your loop, which sends none"),
    (r"(cudnn[A-Z]\w*|cudnn|CUDNN_\w+)\Z", WITHOUT["USE_CUDNN"]),
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
    (r"(MItype|MOtype)\Z", "is of Caffe with OpenCL, whose layers have three types each"),
]  # fmt: skip
NAMESPACES = {
    "cv": WITHOUT["USE_OPENCV"],
    "leveldb": DATABASE,
    "db": DATABASE,
    "bp": PYTHON,
    "cub": "uses cub, which has no meaning on the host",
    **dict.fromkeys(("arma", "Eigen", "dlib", "tbb"), "needs a library that the toolkit does not have"),
}
# Headers of libraries of which the toolkit has little or nothing.
LIBRARIES = re.compile(
    r"(boost|Eigen|unsupported|tbb|armadillo|dlib|pcl|rapidjson)/|(mkl\w*|omp_llvm|matio|CImg)\.h\Z"
)
# Members of Layer, and tokens that may come before a name that is used.
OF_LAYER = {"layer_param_", "blobs_", "param_propagate_down_"}
BEFORE = {*"(,=;{}!<>+-*/", "return", "&&", "||", "<<", "=="}
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
    for place, name in pick.names.core.layer_changed[:1]:
        text = f"{pick.target.name} comes from a fork whose {name} takes other arguments"
        problems.append(Problem(place, text, True))
    own_words = own_names(pick)
    added, of_layer = (
        {name: place for name, place in names.items() if name not in own_words}
        for names in (pick.names.core.added, pick.names.core.layer_added)
    )
    core = functools.partial(core_use, added=added, of_layer=of_layer)
    in_sources = [] if OF_LAYER & own_words else [microsofts_name]
    for file, tokens in pick.scanned:
        kinds = in_sources if file.endswith(SOURCE_KINDS) else []
        for uses in (unsupported_use, thrust_use, transformer_use, old_signature, core, *kinds):
            for token, text in itertools.islice(uses(pick, tokens), 1):
                place = pick.tree[file].place(token)
                problems.append(Problem(place, f"{pick.target.name} {text}", True))
    for file in pick.files:
        if not file.endswith(SOURCE_KINDS):
            for place, text in itertools.islice(missing_base(pick.names, file), 1):
                problems.append(Problem(place, f"{pick.target.name}: {text}", True))
    problems += [
        *messages_missing(pick),
        *libraries_missing(pick),
        *undeclared(pick),
    ]
    own = {pick.target.file, *pick.tree.members(pick.target.name)}
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.place.file not in own)


# Each of these yields (token at which something is used, reason).


def unsupported_use(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Names that a layer cannot use here."""
    for token, after in pairwise(tokens):
        if token.kind == "name":
            reason = NAMESPACES.get(token.text) if after.text == "::" else None
            if reason is None and token.text not in pick.toolkit.words:
                reason = unsupported(token.text)
            if reason:
                yield token, f"{reason} ({token.text})"


def thrust_use(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Names of thrust that include/caffe/util/thrust.hpp does not have."""
    for i, name in enumerate(tokens[2:]):
        if tokens[i].text == "thrust" and tokens[i + 1].text == "::" and name.text not in pick.toolkit.thrust:
            yield tokens[i], f"{THRUST} (thrust::{name.text})"


def transformer_use(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Calls of a DataTransformer, which reads data."""
    calls = [t for i, t in enumerate(tokens[1:-1], 1) if TRANSFORMS.match(t.text) and is_called(tokens, i)]
    if calls and any(t.text == "DataTransformer" for _, scanned in pick.scanned for t in scanned):
        for token in calls:
            yield token, f"{DATA} (DataTransformer::{token.text})"


def old_signature(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """`vector<Blob<Dtype>*>* top`: the interface with tops by pointer."""
    pattern = ["vector", "<", "Blob", "<", "Dtype", ">", "*", ">", "*", "top"]
    for i, token in enumerate(tokens):
        if token.text == "vector" and [t.text for t in tokens[i : i + len(pattern)]] == pattern:
            yield token, "has the Layer interface of before late 2014 (tops by pointer)"


def microsofts_name(pick: Pick, tokens: list[Token]) -> Iterator[tuple[Token, str]]:
    """Members of Layer that a template names without this->, such as `layer_param_.x_param()`."""
    if any(token.text == "using" and tokens[i + 1].text == "Layer" for i, token in enumerate(tokens[:-1])):
        return
    for i, token in enumerate(tokens[1:-1], 1):
        is_bare = tokens[i - 1].text in BEFORE and tokens[i + 1].text in (".", "[", "->")
        if is_bare and token.text in OF_LAYER:
            yield token, f"names {token.text} without this->, which only Microsoft's compiler accepts"


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
        place = added.get(token.text) or (of_layer.get(token.text) if own else None)
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


def libraries_missing(pick: Pick) -> Iterator[Problem]:
    """Headers of libraries that neither the tree nor the toolkit nor the system has.

    Headers of boost do not count if the layer uses nothing of boost that the toolkit lacks: editors insert such
    includes, and the build makes empty headers for them.
    """
    needs_boost = uses_boost(pick)
    for file in pick.files:
        source, compiler = pick.tree[file].source, pick.names.compiler
        places = {}
        for directive in source.lexed.directives:
            include = "".join(token.text for token in directive.tokens).strip('<>"')
            is_include = directive.word == "include" and directive.tokens[0].text[0] in '<"'
            if is_include and not pick.toolkit.header(include) and not pick.tree.resolve(include, file):
                places.setdefault(include, pick.tree[file].place(directive.start))
        missing = compiler.lacks(places)
        text = "".join(f"#define {switch}\n" for switch in pick.switches) + pick.tree[file].text
        missing &= compiler.reaches(text, missing) if missing else set()
        for include, place in places.items():
            if include.startswith("boost/") and not needs_boost:
                continue
            if include in missing or LIBRARIES.match(include):
                text = f"{pick.target.name} needs {include}, {why_missing(pick, include)}"
                yield Problem(place, text, True)


def why_missing(pick: Pick, include: str) -> str:
    """Why a header is not there. One of Caffe's is the fork's to bring; it may lie in another folder of the tree."""
    if not include.startswith("caffe/"):
        return "which the toolkit does not have"
    root, name = pick.tree.root, include.rpartition("/")[2]
    others = sorted(path.relative_to(root).as_posix() for path in root.rglob(name))
    return "which is missing in the tree" + (f"; it has {others[0]}" if others else "")


def uses_boost(pick: Pick) -> bool:
    """Does the layer use anything of boost that the toolkit does not have?"""
    for file in pick.files:
        tokens = pick.tree[file].source.lexed.tokens
        for i, token in enumerate(tokens[:-2]):
            name = tokens[i + 2].text if (token.text, tokens[i + 1].text) == ("boost", "::") else token.text
            if (name is not token.text or name.startswith("BOOST_")) and name not in pick.toolkit.words:
                return True
    return False


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


def missing_base(names: Names, file: str) -> Iterator[tuple[Place, str]]:
    """Yields (place, reason) of classes whose base is a core class that the toolkit lacks or that the fork changed."""
    visible = names.tree[file].visible
    for cls in names.tree[file].classes:
        for base in (names.tree.header_class(word, visible) for word in cls.bases):
            if not base or base.file not in CORE_FILES:
                continue
            derives = f"in its header {cls.name} derives from {base.name}"
            if base.name not in names.toolkit.classes | names.toolkit.declared_classes:
                yield cls.place, f"{derives}, which the toolkit lacks"
            elif base.name == "Blob" and (place := made_virtual(names, base)):
                yield cls.place, f"{derives}, whose functions this fork made virtual ({place})"


def made_virtual(names: Names, blob: Class) -> Place | None:
    """The place of the first virtual function of a fork's Blob. Stock Caffe's has none."""
    first = next((token for token in blob.tokens if token.text == "virtual"), None)
    return first and names.tree[blob.file].place(first)
