"""What a file and the headers beside it declare at namespace level: the names that a launcher may use.

names_in(sources)      types, constants, structs, ...
declared_in(source)    its functions and declarations, without those that the preprocessor drops
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..cuda.lexer import Directive, Lexed, Token, tokens_and_directives
from ..cuda.outline import Function
from ..cuda.source import Source
from ..cuda.tokens import macro_body
from .structs import OF_CUDA, Field, constructed, structs_of, without_addresses

# Names of host code: of CUDA's API, of Caffe, of torch's extensions. A function with one does more than compute.
HOST_WORDS = re.compile(
    r"(cuda\w+|Blob|Layer|\w+Layer(Base)?|\w+Parameter|Caffe|Net|SyncedMemory|shared_ptr|vector|string|map|pair"
    r"|ostream|boost|cv|google|thrust|cudnn\w*|cublas\w*|FILE|THC?[A-Z][a-z]\w*|THC_\w+|THC?U?NN\w*)\Z"
)
# Namespaces of torch's headers.
OF_TORCH = {"at", "c10", "torch"}
# Functions of torch of which the toolkit has its own.
TORCH_FUNCTIONS = {"THCCeilDiv", "gpuAtomicAdd"}
# Macros and functions of include/caffe_cuda_macro.h, and of torch. Some files have copies of them.
PROVIDED = {
    "CUDA_KERNEL_LOOP", "CUDA_2D_KERNEL_LOOP", "CAFFE_CUDA_NUM_THREADS", "CAFFE_GET_BLOCKS", "CUDA_CHECK",
    "CUDA_POST_KERNEL_CHECK", "caffe_gpu_atomic_add", *TORCH_FUNCTIONS,
}  # fmt: skip
OPENING_DIRECTIVES, CLOSING_DIRECTIVE = ("if", "ifdef", "ifndef"), "endif"
CONDITIONALS = {*OPENING_DIRECTIVES, "elif", "else", CLOSING_DIRECTIVE}


class Declared(NamedTuple):
    """A function or a declaration at namespace level, without those that the preprocessor drops."""

    start: int
    end: int
    scope: str  # the namespace it is in: "caffe::"
    text: str
    tokens: list[Token]

    def structs(self) -> dict[str, tuple[str, list[Field] | None]]:
        """The struct that it defines, by each of its names: qualified, and its fields. An #if leaves them open."""
        is_clear = re.search(r"^[ \t]*#", self.text, re.MULTILINE) is None
        return {n: (self.scope + n, f if is_clear else None) for n, f in structs_of(self.tokens).items()}


class Names(NamedTuple):
    """What a file declares with the headers beside it, as far as launchers use it (KernelFile says more)."""

    types: set[str]
    constants: dict[str, str]
    aliases: dict[str, str]
    enums: dict[str, list[str]]
    structs: dict[str, tuple[str, list[Field] | None]]
    rows: dict[str, str]
    constructed: set[str]
    scopes: dict[int, str]  # by the place of a declaration of the file itself


def names_in(sources: Sequence[Source], macros: Iterable[str] = ()) -> Names:
    """
    Args:
        sources: the file, and its headers.
        macros: are defined before it.
    """
    defined = {source: macros_defined(source) for source in sources}
    declared = {
        # What other files define counts here, too: a file may choose by a macro for the headers below it.
        source: declared_in(source, set().union(*defined.values()) - defined[source] | set(macros))
        for source in sources
    }
    every = [one for several in declared.values() for one in several]
    constants, aliases = {name: name for name in macros}, {}
    for source, several in declared.items():
        constants |= _constants(source, several)
        aliases |= _aliases(source, several)
    structs: dict[str, tuple[str, list[Field] | None]] = {n: (n, fields) for n, fields in OF_CUDA.items()}
    for one in every:
        structs |= one.structs()
    return Names(
        {name for one in every for name in type_names(one.text)},
        constants,
        aliases,
        {name: values for one in every for name, values in _enum(one)},
        structs,
        _rows(every),
        {name for one in every for name in constructed(one.tokens)},
        {one.start: one.scope for one in declared[sources[0]]},
    )


def macros_defined(source: Source) -> set[str]:
    """The macros that a file defines where it is compiled."""
    dropped = dropped_in(source)
    return {m.tokens[0].text for m in source.macros if not any(a <= m.start < b for a, b in dropped)}


def declared_in(source: Source, defined: Iterable[str] = ()) -> list[Declared]:
    """The file's functions and declarations that are compiled, if other files define these macros."""
    tokens, dropped = source.lexed.tokens, dropped_in(source, defined)
    found = []
    for kind, first, last, scope in source.parts:
        start, end = tokens[first].start, tokens[last].end
        if kind in ("function", "declaration") and not any(a <= start < b for a, b in dropped):
            found.append(Declared(start, end, scope, source.text[start:end], tokens[first : last + 1]))
    return found


def dropped_in(source: Source, others: Iterable[str] = ()) -> list[tuple[int, int]]:
    """The ranges of the text that the preprocessor drops. A macro that no file defines is undefined."""
    defined = set(others)
    stack: list[list] = []  # [is the outside active, was a branch active, is this branch active]
    found, at = [], 0
    for item in tokens_and_directives(source.text):
        if not isinstance(item, Directive) or item.word not in {*CONDITIONALS, "define"}:
            continue
        active = all(level[2] for level in stack)
        if not active:
            found.append((at, item.start))
        at = item.start
        if item.word == "define":
            if active and item.tokens:
                defined.add(item.tokens[0].text)
        elif item.word in OPENING_DIRECTIVES:
            value = _condition(item, defined, source.lexed)
            stack.append([active, value, active and value])
        elif stack and item.word == CLOSING_DIRECTIVE:
            stack.pop()
        elif stack:
            outer, was_active, _ = stack[-1]
            value = not was_active and (item.word == "else" or _condition(item, defined, source.lexed))
            stack[-1] = [outer, was_active or value, outer and value]
    return found


def _condition(directive: Directive, defined: set[str], lexed: Lexed) -> bool:
    value = lexed.value(directive)
    if value is not None:
        return bool(value)
    words = [t.text for t in directive.tokens]
    if directive.word in ("ifdef", "ifndef"):
        return (bool(words) and words[0] in defined) == (directive.word == "ifdef")
    # #if: understands `defined X` and `!defined(X)`. Any other condition counts as true.
    asked = re.fullmatch(r"(!?)defined\(?(\w+)\)?", "".join(words))
    return not asked or (asked[2] in defined) != bool(asked[1])


def type_names(text: str) -> set[str]:
    """Names of the types that a declaration defines: classes, enums, typedefs."""
    names = set(re.findall(r"\b(?:enum\s+class|enum\s+struct|class|struct|union|enum|using)\s+(\w+)", text))
    if text.startswith("typedef"):
        names.update(re.findall(r"(\w+)\s*;", text)[-1:])
    return names


ENUM = re.compile(
    r"(?:typedef\s+)?enum\b(\s+class\b|\s+struct\b)?\s*(\w*)[^{;()]*\{([^{}]*)\}\s*(\w*)", re.DOTALL
)
# Words of types that need no header.
BUILTIN = re.compile(
    r"(const|volatile|unsigned|signed|void|bool|char|short|int|long|float|double|size_t|ptrdiff_t"
    r"|u?int(8|16|32|64)?(_t)?|u?(char|short|int|long|longlong|float|double)[1234]|(__)?half2?|(__)?nv_bfloat162?|__restrict(__)?|restrict|typename|struct|enum|dim3)\Z"
)


# Words of a function's head that say nothing about its type.
INLINE = {"inline", "static", "constexpr", "__inline__", "__forceinline__", "__host__"}


def _aliases(source: Source, declared: list[Declared]) -> dict[str, str]:
    """C++'s own types, by the names that macros and typedefs give to them."""
    named = [
        (m.tokens[0].text, source.text[b[0].start : b[-1].end]) for m in source.macros if (b := macro_body(m))
    ]
    for one in declared:
        if found := re.fullmatch(r"typedef\s+([^;{}()]+?)\s*(\w+)\s*;?", one.text):
            named.append((found[2], found[1]))
        elif found := re.fullmatch(r"using\s+(\w+)\s*=\s*([^;{}()]+?)\s*;?", one.text):
            named.append((found[1], found[2]))
    return {name: type for name, type in named if re.sub(r"[\s*]", "", type) and _is_builtin(type)}


def _is_builtin(type: str) -> bool:
    return re.fullmatch(r"[\w\s*]+", type) is not None and all(map(BUILTIN.match, re.findall(r"\w+", type)))


def tidy_type(text: str) -> str:
    return re.sub(r"\s*([*&<>])\s*", r"\1", text)


def _constants(source: Source, declared: list[Declared]) -> dict[str, str]:
    """Names that a launch's expression may use: macros, whole numbers, and functions that are only arithmetic."""
    macros = (m.tokens[0].text for m in source.macros if macro_body(m))
    found = {name: name for name in macros if name not in PROVIDED}
    functions = {function.head for function in source.functions}
    numbers = (
        (one, name) for one in declared if one.start not in functions for name in _numbers_of(one.text)
    )
    found |= {name: one.scope + name for one, name in numbers}
    scopes = {one.start: one.scope for one in declared}
    for function in source.functions:
        callable_here = function.head in scopes and not (function.is_device_only or function.member)
        if callable_here and _is_arithmetic(source, function):
            found[function.name] = scopes[function.head] + function.name
    return found


def _is_arithmetic(source: Source, function: Function) -> bool:
    """Does it compute numbers from numbers, without CUDA's and torch's functions?"""
    if function.scope or function.name in PROVIDED:
        return False
    head = re.findall(r"\w+", source.text[function.head : function.at])
    returns = [w for w in head if w not in INLINE and w not in {m.tokens[0].text for m in source.macros}]
    types = [w for p in function.parameters for w in re.findall(r"[A-Za-z_]\w*", p.type)]
    words = re.findall(r"\w+", source.text[function.head : function.end])
    foreign = any(w in OF_TORCH or HOST_WORDS.match(w) for w in words)
    launches = "<<<" in source.text[function.body : function.end]
    own = all(map(BUILTIN.match, (*returns, *types))) and "void" not in returns
    return not {"constexpr", "__device__"}.isdisjoint(head) or (
        own and bool(returns) and not foreign and not launches
    )


def _enum(one: Declared) -> list[tuple[str, list[str]]]:
    """The name and the values of the enum that a declaration defines; none for another declaration."""
    if not (found := ENUM.match(_without_comments(one.text))):
        return []
    scoped, own, inside, after = found.groups()
    name = after if one.text.startswith("typedef") else own
    prefix = f"{one.scope}{name}::" if scoped else one.scope
    return [(name, [prefix + value for value in _values_of_enum(inside)])] if name else []


def _values_of_enum(inside: str) -> list[str]:
    return re.findall(r"(?:\A|,)\s*(\w+)", re.sub(r"\([^()]*\)", "", inside))


def _rows(declared: Iterable[Declared]) -> dict[str, str]:
    """The classes whose objects are plain bytes, by name: their qualified names."""
    listed = list(declared)
    plain, found = without_addresses(one.tokens for one in listed), {}
    for one in listed:
        texts = [token.text for token in one.tokens]
        special = {text for text, after in itertools.pairwise(texts) if after == "<"}
        found |= {name: one.scope + name for name in type_names(one.text) & plain - special}
    return found


def _without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


NUMBER = re.compile(
    r"(?:(?:static|inline|const|constexpr|unsigned|signed|long|short|std::)\s+|std::)*"
    r"(?:int|unsigned|long|short|auto|size_t|u?int\d+_t)(?:\s+const)?\s+(?=\w+\s*(?:[={]|\())"
)


def _numbers_of(declaration: str) -> list[str]:
    """The names of a declaration's whole numbers: variables with a value, and an enum's constants."""
    text = _without_comments(declaration)
    if enum := ENUM.match(text):
        return [] if enum[1] else _values_of_enum(enum[3])
    if not (head := NUMBER.match(text)) or "__device__" in text or "__constant__" in text:
        return []
    return re.findall(r"(?:\A|,)\s*(\w+)\s*[={]", re.sub(r"\([^()]*\)", "", text[head.end() :]))
