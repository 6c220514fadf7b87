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

from .core import CORE_FILES, is_called, is_containers
from .declarations import Item, Place
from .plan import Pick, Problem, of_core
from .tree import PROTO, SOURCE_KINDS, WITHOUT
from .unsupported import DATA, unsupported_use

# protoc's prefixes of a field's name.
ACCESSOR = re.compile(r"\A(add|clear|has|mutable|release|set|set_allocated)_(?=\w+_param\Z|param\Z)")
# Functions of a DataTransformer. A layer may own one without calling it, to show images behind USE_OPENCV.
TRANSFORMS = re.compile(r"(Transform\w*|InferBlobShape|CropImage|ExpandImage|DistortImage)\Z")


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
