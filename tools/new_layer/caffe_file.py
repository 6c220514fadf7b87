"""Split a Caffe layer's .cu into device code, which is kept as it is, and host code.

    parts = split(text, "/path/foo_layer.cu")
    print(parts.device, parts.host, parts.kernels)

The text is cut at namespace level into pieces: function, class, declaration, preprocessor line. Each piece goes to one
side, with the comment above it. Conditionals and namespaces go to each side on which they have content.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ..cuda.analysis import Kernel, Unit
from ..cuda.lexer import Directive, Lexed, Token, items
from ..cuda.outline import head_name, skip_angles, split_commas
from ..cuda.source import Source
from ..cuda.tokens import macro_body, position_from
from .symbols import Symbol, symbols_to_fill

# Names of host code: of Caffe, and of old torch extensions. A declaration with one of these cannot be compiled here.
HOST_WORDS = re.compile(
    r"(Blob|Layer|\w+Layer(Base)?|\w+Parameter|Caffe|Net|SyncedMemory|shared_ptr|vector|string|map|pair"
    r"|ostream|boost|cv|google|thrust|cudnn\w*|cublas\w*|FILE|THC?[A-Z][a-z]\w*|THC_\w+|THC?U?NN\w*)\Z"
)
# Namespaces of torch's headers. Extensions' kernels use them, for example for half types.
OF_TORCH = {"at", "c10", "torch"}
# A layer's class. Some kernels use its constants.
LAYER = re.compile(r"[A-Z]\w*Layer\Z")
# Headers of torch that the toolkit has, too, by the functions that kernels call.
TORCH_FUNCTIONS = {"THCCeilDiv": "<THC/THCDeviceUtils.cuh>", "gpuAtomicAdd": "<THC/THCAtomics.cuh>"}
# Macros and functions of include/caffe_cuda_macro.h, and of torch. Some files have copies of them.
PROVIDED = {
    "CUDA_KERNEL_LOOP", "CUDA_2D_KERNEL_LOOP", "CAFFE_CUDA_NUM_THREADS", "CAFFE_GET_BLOCKS", "CUDA_CHECK",
    "CUDA_POST_KERNEL_CHECK", "caffe_gpu_atomic_add", *TORCH_FUNCTIONS,
}  # fmt: skip
# Macros that are used as statements at namespace level.
HOST_MACROS = re.compile(r"(INSTANTIATE_\w+|STUB_GPU\w*|REGISTER_\w+|DEFINE_\w+|NO_GPU)\Z")
# Includes of the standard library are kept. CUDA's headers are included anyway, except cuRAND's, which the layer's
# header may include instead of the .cu.
CURAND = "<curand_kernel.h>"
# Headers of CUDA that only kernels use, and need: by the namespace that shows the use.
OF_KERNELS = {
    "cooperative_groups": re.compile(r"<cooperative_groups(/\S+)?\.h>"),
    "nvcuda": re.compile(r"<mma\.h>"),
    "cub": re.compile(r"<cub/\S+>"),
}
STANDARD = re.compile(r"<([a-z_]+|(assert|float|limits|math|stdint|stdio|stdlib|string)\.h)>\Z")
OPENING_DIRECTIVES, CLOSING_DIRECTIVE = ("if", "ifdef", "ifndef"), "endif"
CONDITIONALS = {*OPENING_DIRECTIVES, "elif", "else", CLOSING_DIRECTIVE}


@dataclass
class Piece:
    """A part of the file. Its `text` includes the comment above it."""

    kind: str  # device, host, include; of a conditional or a namespace: open, branch, close
    start: int
    end: int
    scope: str = ""  # the namespace it is in: "caffe::"
    words: frozenset[str] = frozenset()
    text: str = ""
    active: bool = True  # false in a branch that the preprocessor drops
    open: Piece | None = None  # for a branch or close: its open
    sides: set[str] = field(default_factory=set)  # for an open: the kinds of pieces inside


@dataclass
class Parts:
    heading: str  # the comment at the top, perhaps a licence
    kept_includes: list[str]
    dropped_includes: list[str]
    device: str
    host: str
    source: Source
    # with its namespace ("caffe::") and the tokens of each template parameter
    kernels: list[tuple[Kernel, str, list[list[Token]]]]
    left_out: list[tuple[str, str]]  # (kernel, why it is in the host part)
    constants: dict[str, str]  # by name, macros and constants that launches may use: their qualified names
    types: set[str]  # types that the device code defines
    enums: set[str]  # those of them that are enums
    aliases: dict[str, str]  # names that it gives to C++'s own types
    symbols: dict[str, list[Symbol]]  # by kernel, the variables that it reads and the host code fills


def split(text: str, path: str) -> Parts:
    """Split the text of a file, as tools.files.read returns it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    unit = Unit(text, path, find=_in_include_folder(path), replaced=PROVIDED)
    cutter = Cutter(unit.main)
    beside = _take_what_is_needed(unit, cutter)
    namespaces = {
        p.scope.split("::")[0] for one in (*beside, cutter) for p in one.pieces if p.kind == "device"
    }
    for one in (*beside, cutter):
        one.keep_using(namespaces - {""})
    types = set().union(*map(type_names, (*beside, cutter)))
    aliases = {name: type for one in (*beside, cutter) for name, type in _aliases(one).items()}
    for header in beside:
        _leave_out_foreign(header, types, aliases)
    left_out = _leave_out_foreign(cutter, types, aliases)
    scopes = {p.start: p.scope for p in cutter.pieces if p.kind == "device" and p.active}
    kernels = []
    heads = [f for f in unit.main.functions if f.is_kernel]
    for function, kernel in zip(heads, unit.kernels(unit.main), strict=True):
        if function.head in scopes:
            kernel = kernel._replace(parameters=_without_aliases(kernel.parameters, aliases))
            kernels.append((kernel, scopes[function.head], cutter.template_parameters(function)))
    kept, dropped = cutter.includes()
    for header in beside:
        kept += header.includes()[0]
        name = Path(header.source.path).name
        dropped = [include for include in dropped if Path(include.strip('"<>')).name != name]
    heading, rest = cutter.heading()
    device, host = _sides(cutter.pieces, rest)
    device = "\n\n".join(text.strip("\n") for text in (*map(_device_part, beside), device))
    constants = {name: value for one in (*beside, cutter) for name, value in _constants(one).items()}
    return Parts(
        heading,
        list(dict.fromkeys(kept)),
        dropped,
        device,
        host.strip("\n"),
        unit.main,
        kernels,
        left_out,
        constants,
        types,
        {name for one in (*beside, cutter) for name in ENUM.findall(one.text)} & types,
        aliases,
        _symbols_of_kernels(unit),
    )


def _symbols_of_kernels(unit: Unit) -> dict[str, list[Symbol]]:
    symbols = {name: symbol for source in unit.sources for name, symbol in symbols_to_fill(source).items()}
    names = [f.name for f in unit.main.functions if f.is_kernel] if symbols else []
    return {
        name: [symbols[word] for word in sorted(unit.reachable({name}) & symbols.keys())] for name in names
    }


def _in_include_folder(path: str):
    """A function that finds headers of extensions: beside the file's folder, there is often one for headers."""
    folder = os.path.dirname(path)

    def find(name: str) -> str | None:
        places = (name, os.path.join(os.pardir, "include", name))
        return next((x for x in places if os.path.isfile(os.path.join(folder, x))), None)

    return find


def _take_what_is_needed(unit: Unit, cutter: Cutter) -> list[Cutter]:
    """The headers that define names of the file's device code or of its launches, the innermost first.

    Plain functions with such a name become device code, here and there.
    """
    headers, taken = [Cutter(source) for source in unit.headers.values()], []
    words = _device_words(cutter) | cutter.words_around_launches()
    before = None
    while before != (before := (len(words), len(taken))):
        for one in (cutter, *headers):
            plain = one.plain_functions()
            functions = {f.name for f in one.source.functions if f.is_kernel or f.is_device_only}
            if (
                one is not cutter
                and one not in taken
                and words & {*_constants(one), *type_names(one), *functions, *plain}
            ):
                taken.append(one)
                words |= _device_words(one)
            for name in plain.keys() & words if one is cutter or one in taken else ():
                plain[name].kind = "device"
                words |= plain[name].words
    return [header for header in reversed(headers) if header in taken]


def _device_words(cutter: Cutter) -> frozenset[str]:
    return frozenset().union(*(piece.words for piece in cutter.pieces if piece.kind == "device"))


def _device_part(header: Cutter) -> str:
    """A header's device code, with the comment at its top, perhaps a licence."""
    heading, rest = header.heading()
    return f"// Of {Path(header.source.path).name}:\n{heading}\n{_sides(header.pieces, rest)[0]}"


def _leave_out_foreign(cutter: Cutter, types: set[str], aliases: dict[str, str]) -> list[tuple[str, str]]:
    """Move functions that C cannot call to the host code. Returns (kernel, why) of each kernel among them."""
    functions = {f.head: f for f in cutter.source.functions}
    left_out = []
    for piece in cutter.pieces:
        function = functions.get(piece.start)
        if piece.kind != "device" or function is None:
            continue
        foreign = _foreign(function, types, aliases, cutter)
        why = f"takes a {foreign}, {unknown(foreign)}" if foreign else ""
        if not foreign and (foreign := cutter.of_torch(piece)):
            why = f"uses {foreign}, which only torch's headers have"
        if not foreign and (layers := sorted(filter(LAYER.match, piece.words))):
            foreign = layers[0]
            why = f"uses {foreign}, which only Caffe has"
        if function.is_kernel and not piece.active:
            why = "is in a preprocessor branch that is not compiled"
        if why:
            # A kernel in an inactive branch is harmless, and the branch may have other content.
            piece.kind = "host" if foreign else "device"
            if function.is_kernel:
                left_out.append((function.name, why))
    return left_out


class Cutter:
    """Cuts a file into pieces."""

    def __init__(self, source: Source):
        self.source, self.text, self.lexed = source, source.text, source.lexed
        self.pieces: list[Piece] = []
        self._cut()
        self._directives()
        self.pieces.sort(key=lambda piece: piece.start)
        self._share_out_text()
        self._mark_inactive()

    # ---------------------------------------------------------------------------------- cutting

    def _cut(self):
        opened: list[Piece] = []
        for kind, first, last, scope in self.source.parts:
            first = self._cut_macros(first, last, scope)
            if kind == "close":
                self._add("close", last, last, scope).open = opened.pop()
            elif kind == "open":
                opened.append(self._add("open", first, last, scope))
            elif kind == "function":
                self._add(self._function_side(first, self.lexed.partner[last]), first, last, scope)
            elif kind == "declaration" and first < last:
                self._add(self._declaration_side(first, last), first, last, scope)
            elif first <= last:
                self._add("host", first, last, scope)

    def _cut_macros(self, first: int, last: int, scope: str) -> int:
        """Cut off the calls of HOST_MACROS with which a part begins. Returns the first token of the rest."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        while first < last and HOST_MACROS.match(tokens[first].text) and tokens[first + 1].text == "(":
            close = partner.get(first + 1, first + 1)
            semicolon = close < last and tokens[close + 1].text == ";"
            self._add("host", first, close + semicolon, scope)
            first = close + semicolon + 1
        return first

    def _add(self, kind: str, first: int, last: int, scope: str) -> Piece:
        tokens = self.lexed.tokens
        words = frozenset(t.text for t in tokens[first : last + 1])
        self.pieces.append(Piece(kind, tokens[first].start, tokens[last].end, scope, words))
        return self.pieces[-1]

    def _function_side(self, head: int, brace: int) -> str:
        words = {t.text for t in self.lexed.tokens[head:brace]}
        name = head_name(self.lexed.tokens, self.lexed.partner, head, brace)
        if name is not None and self.lexed.tokens[name].text in PROVIDED:
            return "host"
        return "device" if words & {"__global__", "__device__", "constexpr"} else "host"

    def _declaration_side(self, head: int, end: int) -> str:
        tokens = self.lexed.tokens
        words = [t.text for t in tokens[head:end]]
        if words[0] == "using" and "=" not in words:
            is_kept = {"std", *OF_KERNELS} & set(words) or words[1:] == ["namespace", "caffe"]
            return "device" if is_kept else "host"
        if words[0] == "template" and words[1] != "<":  # an explicit instantiation
            return "host"
        if set(words) & PROVIDED and not set(words) & {"__global__", "__device__"}:
            return "host"
        if any(t.kind == "name" and HOST_WORDS.match(t.text) for t in tokens[head:end]):
            return "host"
        if set(words) & {"__global__", "__device__", "__constant__"}:
            return "device"
        is_function = head_name(tokens, self.lexed.partner, head, end) is not None
        return "host" if is_function and "{" not in words else "device"

    def _directives(self):
        live = {d.start for d in self.lexed.directives}
        inside = sorted((p.start, p.end) for p in self.pieces)
        stack: list[Piece] = []
        for item in items(self.text):
            if not isinstance(item, Directive) or any(a < item.start < b for a, b in inside):
                continue
            if item.word in CONDITIONALS:
                opens, closes = item.word in OPENING_DIRECTIVES, item.word == CLOSING_DIRECTIVE
                piece = Piece("open" if opens else "close" if closes else "branch", item.start, item.end)
                if opens:
                    stack.append(piece)
                elif stack:
                    piece.open = stack.pop() if closes else stack[-1]
            elif item.start not in live:
                continue
            elif item.word == "include":
                piece = Piece("include", item.start, item.end)
            else:
                name = item.tokens[0].text if item.tokens else ""
                side = "host" if item.word == "pragma" or name in PROVIDED else "device"
                piece = Piece(side, item.start, item.end)
            self.pieces.append(piece)

    def _share_out_text(self):
        """Give each piece the rest of its last line, and the text above it up to the previous piece."""
        at = 0
        for i, piece in enumerate(self.pieces):
            limit = self.pieces[i + 1].start if i + 1 < len(self.pieces) else len(self.text)
            rest = re.match(
                r"(?:[ \t;]|//[^\n]*|/\*.*?\*/)*\n?", self.text[piece.end : limit], re.DOTALL
            ).end()
            last = i + 1 == len(self.pieces)
            above = re.sub(r"\n(?:[ \t]*\n){2,}", "\n\n", self.text[at : piece.start])
            piece.text = above + self.text[piece.start : limit if last else piece.end + rest]
            at = piece.end + rest

    def _mark_inactive(self):
        """Mark the pieces that the preprocessor drops. A macro that the file does not define counts as undefined."""
        defined: set[str] = set()
        stack: list[list] = []  # [is the outside active, was a branch active, is this branch active]
        directives = {i.start: i for i in items(self.text) if isinstance(i, Directive)}
        for piece in self.pieces:
            item = directives.get(piece.start)
            if item and item.word in OPENING_DIRECTIVES:
                outer = stack[-1][2] if stack else True
                value = _condition(item, defined, self.source.lexed)
                stack.append([outer, value, outer and value])
            elif item and item.word in ("elif", "else") and stack:
                outer, was_active, _ = stack[-1]
                value = not was_active and (
                    item.word == "else" or _condition(item, defined, self.source.lexed)
                )
                stack[-1] = [outer, was_active or value, outer and value]
            elif item and item.word == CLOSING_DIRECTIVE and stack:
                stack.pop()
            piece.active = all(level[2] for level in stack)
            if item and item.word == "define" and piece.active and item.tokens:
                defined.add(item.tokens[0].text)

    # --------------------------------------------------------------------------------- questions

    def words_around_launches(self) -> frozenset[str]:
        """All words of the functions that launch kernels."""
        around = {f.head for x in self.source.launches if (f := self.source.function_around(x.start))}
        return frozenset().union(*(piece.words for piece in self.pieces if piece.start in around))

    def plain_functions(self) -> dict[str, Piece]:
        """Host functions, by name, that are only arithmetic. So are device functions that a macro declares as such."""
        found, pieces = {}, {p.start: p for p in self.pieces if p.kind == "host"}
        macros = {m.tokens[0].text: {t.text for t in macro_body(m)} for m in self.source.macros}
        for function in self.source.functions:
            piece = pieces.get(function.head)
            if piece is None or function.member or function.scope or function.name in PROVIDED:
                continue
            head = re.findall(r"\w+", self.text[function.head : function.at])
            device = any("__device__" in macros.get(word, ()) for word in head)
            returns = [w for w in head if w not in macros and w not in INLINE]
            types = [w for p in function.parameters for w in re.findall(r"[A-Za-z_]\w*", p.type)]
            own = all(map(BUILTIN.match, (*returns, *types))) and (device or "void" not in returns)
            body = self.text[function.body : function.end]
            words = piece.words - TORCH_FUNCTIONS.keys()
            foreign = any(w in OF_TORCH or w.startswith("cuda") or HOST_WORDS.match(w) for w in words)
            if own and returns and not foreign and "<<<" not in body:
                found[function.name] = piece
        return found

    def keep_using(self, namespaces: set[str]):
        """Keep each `using` of one of these namespaces, and of a name in it."""
        for piece in self.pieces:
            text = self.text[piece.start : piece.end]
            found = re.match(r"using\s+(?:namespace\s+)?(?:::)?\s*(\w+)", text)
            if piece.kind == "host" and found and "=" not in text and found[1] in namespaces:
                piece.kind = "device"

    def of_torch(self, piece: Piece) -> str:
        """The first name of torch's namespaces in the piece; "" if there is none."""
        tokens = self.lexed.tokens
        for i in range(position_from(tokens, piece.start), position_from(tokens, piece.end)):
            if tokens[i].text in OF_TORCH and tokens[i + 1].text == "::" and tokens[i - 1].text != "::":
                return f"{tokens[i].text}::{tokens[i + 2].text}"
        return ""

    def heading(self) -> tuple[str, str]:
        """The comment at the top, and the rest of the first piece's text."""
        if not self.pieces:
            return "", ""
        first = self.pieces[0]
        above = first.text[: first.text.index(self.text[first.start : first.end])]
        if first.kind != "include" and "\n\n" not in above:
            return "", first.text
        return above.strip("\n"), first.text[len(above) :]

    def includes(self) -> tuple[list[str], list[str]]:
        """(includes to keep, includes that only the host code needs), as they are written."""
        names = [
            re.sub(r"^\s*#\s*include\s*", "", self.text[p.start : p.end]).split("//")[0].strip()
            for p in self.pieces
            if p.kind == "include"
        ]
        names = list(dict.fromkeys(names))
        kept = [n for n in names if STANDARD.match(n) or n in TORCH_FUNCTIONS.values()]
        words = {w for p in self.pieces if p.kind == "device" and p.active for w in p.words}
        if any(w.startswith("curand") for w in words):
            kept.append(CURAND)
        kept += [n for n in names for word in OF_KERNELS.keys() & words if OF_KERNELS[word].match(n)]
        kept += [h for h in dict.fromkeys(HALF_HEADERS.values()) if h in names]
        kept += sorted({h for word, h in HALF_HEADERS.items() if word in words} - {*kept})
        return kept, [n for n in names if n not in (*kept, CURAND)]

    def template_parameters(self, function) -> list[list[Token]]:
        """Tokens of each parameter in the function's `template <...>`."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        first = next(i for i, t in enumerate(tokens) if t.start == function.head)
        if tokens[first].text != "template":
            return []
        after = skip_angles(tokens, partner, first + 1, len(tokens))
        return [tokens[a:b] for a, b in split_commas(tokens, partner, first + 2, after - 1)]


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


def _sides(pieces: list[Piece], rest: str) -> tuple[str, str]:
    """The texts of the two sides. Empty conditionals and namespaces go to the host side, which is not compiled."""
    stack: list[Piece] = []
    for piece in pieces:
        if piece.kind == "open":
            stack.append(piece)
        elif piece.kind == "close":
            if piece.open in stack:
                stack.remove(piece.open)
        elif piece.kind in ("device", "host"):
            for opening in stack:
                opening.sides.add(piece.kind)
        # A comment or inactive code in front of an #endif stays with it.
    device, host = [], []
    for i, piece in enumerate(pieces):
        text = rest if i == 0 else piece.text
        opening = piece if piece.kind == "open" else piece.open
        if piece.kind == "include":
            above = text[: text.rfind("#")].strip("\n")
            if above.strip():
                device.append(above + "\n\n")
        elif opening is not None or piece.kind in ("branch", "close"):
            is_device = opening is not None and "device" in opening.sides
            if is_device:
                device.append(text)
            if opening is None or "host" in opening.sides or not is_device:
                host.append(text if not is_device else text.lstrip("\n"))
        else:
            (device if piece.kind == "device" else host).append(text)
    return "".join(device), "".join(host)


def type_names(cutter: Cutter) -> set[str]:
    """Names of the types that the device part defines: classes, enums, typedefs."""
    names = set()
    for piece in cutter.pieces:
        if piece.kind != "device":
            continue
        text = cutter.text[piece.start : piece.end]
        names.update(
            re.findall(r"\b(?:enum\s+class|enum\s+struct|class|struct|union|enum|using)\s+(\w+)", text)
        )
        if text.startswith("typedef"):
            names.update(re.findall(r"(\w+)\s*;", text)[-1:])
    return names


# CUDA's half types, and their headers. A variable may have the other names, `half` and `half2`.
HALF_HEADERS = {
    **dict.fromkeys(("__half", "__half2"), "<cuda_fp16.h>"),
    **dict.fromkeys(("__nv_bfloat16", "__nv_bfloat162"), "<cuda_bf16.h>"),
}
HALVES = {"half", "half2", "nv_bfloat16", "nv_bfloat162", *HALF_HEADERS}
ENUM = re.compile(r"\benum\s+(?:class\s+|struct\s+)?(\w+)")
# Words of types that need no header.
BUILTIN = re.compile(
    r"(const|volatile|unsigned|signed|void|bool|char|short|int|long|float|double|size_t|ptrdiff_t"
    r"|u?int(8|16|32|64)?(_t)?|u?(char|short|int|long|longlong|float|double)[1234]|__restrict(__)?|restrict|typename|struct|enum|dim3)\Z"
)


# Words of a function's head that say nothing about its type.
INLINE = {"inline", "static", "constexpr", "__inline__", "__forceinline__", "__host__"}


def _aliases(cutter: Cutter) -> dict[str, str]:
    """C++'s own types, by the names that macros and typedefs give to them."""
    named = [
        (m.tokens[0].text, cutter.text[b[0].start : b[-1].end])
        for m in cutter.source.macros
        if (b := macro_body(m))
    ]
    for piece in cutter.pieces:
        text = cutter.text[piece.start : piece.end]
        if found := re.fullmatch(r"typedef\s+([^;{}()]+?)\s*(\w+)\s*;?", text):
            named.append((found[2], found[1]))
        elif found := re.fullmatch(r"using\s+(\w+)\s*=\s*([^;{}()]+?)\s*;?", text):
            named.append((found[1], found[2]))
    return {name: type for name, type in named if re.sub(r"[\s*]", "", type) and _is_builtin(type)}


def _is_builtin(type: str) -> bool:
    return re.fullmatch(r"[\w\s*]+", type) is not None and all(map(BUILTIN.match, re.findall(r"\w+", type)))


def _without_aliases(parameters, aliases: dict[str, str]):
    """The parameters with C++'s own names for their types."""

    def plain(match):
        return aliases.get(match[0], match[0])

    return tuple(p._replace(type=re.sub(r"\b[A-Za-z_]\w*", plain, p.type)) for p in parameters)


def _foreign(function, types: set[str], aliases: dict[str, str], cutter: Cutter) -> str:
    """The first of a device function's parameter types that only Caffe has; "" if there is none."""
    known = (
        types
        | HALVES
        | {"__grid_constant__"}
        | {p[1].text for p in cutter.template_parameters(function) if len(p) > 1}
    )
    for parameter in _without_aliases(function.parameters, aliases):
        for word in re.findall(r"[A-Za-z_]\w*", parameter.type):
            strange = function.is_kernel and not BUILTIN.match(word) and word not in known
            if strange or HOST_WORDS.match(word):
                return tidy_type(parameter.type)
    return ""


def unknown(foreign: str) -> str:
    """The reason why a parameter cannot have this type."""
    only_caffe = re.search(r"\b(Blob|SyncedMemory|\w*Layer|\w+Parameter)\b", foreign)
    return "which only Caffe has" if only_caffe else "which C can't give it"


def tidy_type(text: str) -> str:
    return re.sub(r"\s*([*&<>])\s*", r"\1", text)


def _constants(cutter: Cutter) -> dict[str, str]:
    """Names of the device part that a launch's expression may use."""
    found = {}
    for macro in cutter.source.macros:
        name = macro.tokens[0].text
        if macro_body(macro) and name not in PROVIDED:
            found[name] = name
    for piece in cutter.pieces:
        if piece.kind == "device" and piece.active:
            text = cutter.text[piece.start : piece.end]
            found |= {name: piece.scope + name for name in _numbers_of(text)}
    scopes = {p.start: p.scope for p in cutter.pieces if p.kind == "device"}
    for function in cutter.source.functions:
        if function.head in scopes and not (function.is_device_only or function.member):
            found[function.name] = scopes[function.head] + function.name
    return found


NUMBER = re.compile(
    r"(?:(?:static|inline|const|constexpr|unsigned|signed|long|short|std::)\s+|std::)*"
    r"(?:int|unsigned|long|short|auto|size_t|u?int\d+_t)(?:\s+const)?\s+(?=\w+\s*(?:[={]|\())"
)


def _numbers_of(declaration: str) -> list[str]:
    """The names of a declaration's whole numbers: variables with a value, and an enum's constants."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", declaration, flags=re.DOTALL)
    if enum := re.match(r"enum\b(?!\s+(?:class|struct)\b)[^{;]*\{(.*)\}", text, re.DOTALL):
        return re.findall(r"(?:\A|,)\s*(\w+)", re.sub(r"\([^()]*\)", "", enum[1]))
    if not (head := NUMBER.match(text)) or "__device__" in text or "__constant__" in text:
        return []
    return re.findall(r"(?:\A|,)\s*(\w+)\s*[={]", re.sub(r"\([^()]*\)", "", text[head.end() :]))
