"""The kernels of a file, and the names that a launcher of them may use.

    file = kernels_of(text, "/path/foo.cu")
    print(file.kernels, file.constants)

The file is compiled as it is, with the launchers at its end. So a launcher may use what the file and the headers beside
it declare at namespace level. Code that the preprocessor drops counts for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..cuda.across import foreign_variables
from ..cuda.analysis import Kernel, Unit
from ..cuda.conditions import HOST_BUILD, VALUES
from ..cuda.lexer import Directive, Lexed, Token, tokens_and_directives
from ..cuda.outline import Function, skip_angles, split_commas
from ..cuda.source import Source
from ..cuda.tokens import macro_body
from .members import without_addresses
from .structs import OF_CUDA, Field, constructed, structs_of
from .symbols import Symbol, defined_elsewhere, symbols_to_fill, uploaded_in

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


@dataclass
class KernelFile:
    """What launchers are made from."""

    source: Source
    text: str  # of the file and of the headers beside it
    # with its namespace ("caffe::") and the tokens of each template parameter
    kernels: list[tuple[Kernel, str, list[list[Token]]]]
    left_out: list[tuple[str, str]]  # (kernel, why it cannot be launched)
    constants: dict[str, str]  # by name, macros and constants that launches may use: their qualified names
    types: set[str]  # types that the file defines
    enums: dict[str, list[str]]  # those of them that are enums, with the qualified names of their values
    structs: dict[str, tuple[str, list[Field] | None]]  # by name: qualified, and its fields (structs.py)
    rows: dict[
        str, str
    ]  # by name: qualified, the classes without an address in them: a tensor may have their bytes
    constructed: set[str]  # the structs that have a constructor
    aliases: dict[str, str]  # names that it gives to C++'s own types
    symbols: dict[str, list[Symbol]]  # by kernel, the variables that it reads and the host code fills
    cooperative: set[str]  # the kernels whose blocks may wait for each other by cooperative groups
    constants_elsewhere: list[str]  # definitions of the variables that another .cu has
    # By name, declarations of the variables that only files linked with it name. Its kernels call functions of these.
    of_others: dict[str, str]
    instances: dict[str, list[list[str]]]  # by kernel, the template arguments that the caller gives
    # Is a template compiled for the types of its launches alone? Else one for float serves double, too.
    launched_only: bool = False


def kernels_of(
    text: str,
    path: str,
    instances: dict[str, list[list[str]]] | None = None,
    macros: Iterable[str] = (),
    others: Iterable[Unit] = (),
) -> KernelFile:
    """Read the text of a file, as tools.files.read returns it.

    Args:
        macros: are defined before it.
        others: files that are linked with it.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    unit, others = Unit(text, path, replaced=PROVIDED), list(others)
    if known := _of_heads(unit, macros):
        unit = Unit(text, path, defined=HOST_BUILD | known, replaced=PROVIDED)
    defined = {source: macros_defined(source) for source in unit.sources}
    declared = {
        # What other files define counts here, too: a file may choose by a macro for the headers below it.
        source: declared_in(source, set().union(*defined.values()) - defined[source] | set(macros))
        for source in unit.sources
    }
    types, constants, aliases = set(), {name: name for name in macros}, {}
    for source, several in declared.items():
        types |= {name for one in several for name in type_names(one.text)}
        constants |= _constants(source, several)
        aliases |= _aliases(source, several)
    scopes = {one.start: one.scope for one in declared[unit.main]}
    kernels, left_out = [], []
    heads = [f for f in unit.main.functions if f.is_kernel]
    everywhere = [source for one in (unit, *others) for source in one.sources]
    reached = {function: _reached(unit, others, function) for function in heads}
    uploaded = uploaded_in(everywhere)
    symbols = {
        one: {
            n: s for source in one.sources for n, s in symbols_to_fill(source, one.sources, uploaded).items()
        }
        for one in (unit, *others)
    }
    read = {function.name: _filled(unit, symbols, reached[function]) for function in heads}
    undefined = foreign_variables(everywhere)
    for function, kernel in zip(heads, unit.kernels(unit.main), strict=True):
        dynamic = any(w & s.dynamic_shared for one, w in reached[function].items() for s in one.sources)
        kernel = kernel._replace(dynamic_shared=kernel.dynamic_shared or dynamic)
        filled = {symbol.name for symbol in read[function.name]}
        if lacking := sorted(undefined & set().union(*reached[function].values()) - filled):
            why = f"reads {lacking[0]}, which no file defines: load_inline(..., sources=[...])"
            left_out.append((function.name, why))
            continue
        if hidden := _hidden(unit, symbols, reached[function]):
            why = f"calls a function of another file that reads {hidden[0]}, which host code fills in that file alone"
            left_out.append((function.name, why))
            continue
        if function.head in scopes:
            kernel = kernel._replace(parameters=_without_aliases(kernel.parameters, aliases))
            kernels.append((kernel, scopes[function.head], template_parameters(unit.main, function)))
        elif function.member:
            left_out.append((function.name, "is a member of a class, which CUDA does not allow"))
        else:
            left_out.append((function.name, "is in a preprocessor branch that is not compiled"))
    return KernelFile(
        unit.main,
        "\n".join(source.text for source in unit.sources),
        kernels,
        left_out,
        constants,
        types,
        {name: values for several in declared.values() for one in several for name, values in _enum(one)},
        {name: (name, fields) for name, fields in OF_CUDA.items()}
        | {
            name: (one.scope + name, fields)
            for several in declared.values()
            for one in several
            for name, fields in structs_of(_without_comments(one.text)).items()
        },
        _rows(one for several in declared.values() for one in several),
        {
            n
            for several in declared.values()
            for one in several
            for n in constructed(_without_comments(one.text))
        },
        aliases,
        read,
        {f.name for f in heads if {"this_grid", "grid_group"} & set().union(*reached[f].values())},
        defined_elsewhere(everywhere, uploaded),
        {
            symbol.name: symbol.declared()
            for several in read.values()
            for symbol in several
            if symbol.name not in symbols[unit]
        },
        instances or {},
    )


def _of_heads(unit: Unit, macros: Iterable[str]) -> dict[str, int]:
    """If #if chooses the head of a kernel: which of the macros that the file asks for are defined."""
    asked = [
        d
        for d in tokens_and_directives(unit.main.text)
        if isinstance(d, Directive) and d.word in CONDITIONALS
    ]
    kernels = [f for f in unit.main.functions if f.is_kernel]
    if not any(f.head < d.start < f.body for f in kernels for d in asked):
        return {}
    defined = set(macros).union(*map(macros_defined, unit.sources))
    words = {t.text: d.start for d in reversed(asked) for t in d.tokens if t.kind == "name"}
    # What the file defines below its first #if, as a guard against a second #include does, is not yet defined there.
    below = {m.tokens[0].text for m in unit.main.macros if m.start > words.get(m.tokens[0].text, m.start)}
    known = words.keys() - {"defined", *HOST_BUILD, *VALUES} - (below - set(macros))
    return {word: int(word in defined) for word in known if not word.startswith("_")}


def _reached(unit: Unit, others: list[Unit], function: Function) -> dict[Unit, set[str]]:
    """All words of a kernel, and of what it names in its own file and in others, by file."""
    found: dict[Unit, set[str]] = {}
    todo = [(unit, unit.used_by(unit.main, function))]
    while todo:
        file, words = todo.pop()
        new = words - found.setdefault(file, set())
        found[file] |= words
        for other in (unit, *others):
            if other is not file and (called := new & file.foreign & other.functions):
                todo.append((other, other.reachable(called)))
    return found


def _filled(
    unit: Unit, symbols: dict[Unit, dict[str, Symbol]], reached: dict[Unit, set[str]]
) -> list[Symbol]:
    """The variables that a kernel, or a function of another file, reads, and host code fills."""
    found = {name: symbols[unit][name] for name in sorted(reached[unit] & symbols[unit].keys())}
    for other, words in reached.items():
        for name in sorted(words & symbols[other].keys()) if other is not unit else ():
            found.setdefault(name, symbols[unit].get(name, symbols[other][name]))
    return list(found.values())


def _hidden(unit: Unit, symbols: dict[Unit, dict[str, Symbol]], reached: dict[Unit, set[str]]) -> list[str]:
    """The variables of this kind that no launcher can name."""
    theirs = [
        symbols[other][n]
        for other, w in reached.items()
        if other is not unit
        for n in w & symbols[other].keys()
    ]
    return sorted(symbol.name for symbol in theirs if symbol.is_local)


def template_parameters(source: Source, function: Function) -> list[list[Token]]:
    """Tokens of each parameter in the function's `template <...>`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    first = next(i for i, t in enumerate(tokens) if t.start == function.head)
    if tokens[first].text != "template":
        return []
    after = skip_angles(tokens, partner, first + 1, len(tokens))
    return [tokens[a:b] for a, b in split_commas(tokens, partner, first + 2, after - 1)]


# ----------------------------------------------------------------------------------- what is declared


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
            found.append(Declared(start, end, scope, source.text[start:end]))
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


def _without_aliases(parameters, aliases: dict[str, str]):
    """The parameters with C++'s own names for their types."""

    def plain(match):
        return aliases.get(match[1], match[0])

    qualified = r"(?:\b[A-Za-z_]\w*\s*::\s*)*\b([A-Za-z_]\w*)"
    return tuple(p._replace(type=re.sub(qualified, plain, p.type)) for p in parameters)


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
    listed = [(one.scope, _without_comments(one.text)) for one in declared]
    plain, found = without_addresses(text for _, text in listed), {}
    for scope, text in listed:
        found |= {
            name: scope + name
            for name in type_names(text.strip()) & plain
            if not re.search(rf"\b{name}\s*<", text)
        }
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
