"""Which branches of #if the host gets, where they ask for nvcc: those that a new GPU gets.

In device code __CUDA_ARCH__ is the architecture of a new GPU, and in host code it is undefined, as with nvcc. Such a
branch may have what only a GPU can run, such as PTX. Then the host gets the branch of the newest architecture that it
can run, or in the end that of a compiler without CUDA. If this branch is empty in a function, the code ends with an
error when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .brackets import match_brackets
from .conditions import ARCH, NVCC_WORDS, Directive, Token, evaluate
from .names import ASM, GPU_ONLY, TEXTURES

# A new GPU, older ones whose branches may be taken instead, and 0: a compiler without CUDA.
NEWEST = 900
ARCHITECTURES = (NEWEST, 800, 750, 700, 600, 530, 350, 300, 0)

MOST_TOKENS = 4000  # of an asm statement
# CUDA's headers that need a GPU.
NOT_ON_THE_HOST = re.compile(
    r"(cub/(?!cub\.cuh|block/block_(reduce|scan|load|store|exchange)|warp/warp_(reduce|scan)|device/device_(reduce|scan|radix_sort))\S+"
    r"|thrust/(async|mr|shuffle|detail/(?!config)|device_(make|allocator|\w+_allocator)|(allocate|per)_|addressof|universal_alloc|system/(tbb|\w+/detail)"
    r"|iterator/(iterator_[af]|tabulate|offset|retag|transform_input)|random/(discard|linear_feed|subtract|xor))\S*"
    r"|cuda/(?!(atomic|barrier|pipeline|std/[a-z_]+)$)\S+|nv/\S+)|(cuda_pipeline_helpers|cuda_awbarrier\w*|cuda_fp[64]|cuda\w+_interop"
    r"|cuda(GL|EGL|VDPAU)\w*|cuda_occupancy|cublas(?!_(v2|api)\.h)\w*"
    r"|cudnn\w*|cusparse\w*|cusolver\w*|cufft\w*|nccl|nvrtc|nvToolsExt|surface_\w+)(\.h)?$"
)
FOR_DEVICES = {"__device__", "__global__"}
# A macro that another file defines, such as HOST_DEVICE_INLINE.
DEVICE_MACRO = re.compile(r"[A-Z0-9_]*(DEVICE|GLOBAL|KERNEL|CUDA|GPU|HD)[A-Z0-9_]*\Z")


class Choice(NamedTuple):
    """How the conditions of one #if ... #endif are read."""

    defined: Mapping[str, int]
    arch: int
    refused: tuple[int, int] | None = (
        None  # the branch that ends with an error when it runs: its directive's end, its end
    )

    def words(self, tokens: list[Token]) -> list[tuple[Token, Token, str]]:
        """The parts of a condition that ask for nvcc, with their values: (first token, last token, value)."""
        found, i = [], 0
        while i < len(tokens):
            wrapped = (
                2
                if tokens[i].text == "defined" and tokens[i + 1 : i + 2] and tokens[i + 1].text == "("
                else 1
            )
            name = i + wrapped if tokens[i].text == "defined" else i
            if name >= len(tokens) or tokens[name].text not in NVCC_WORDS:
                i += 1
                continue
            value = self.defined.get(tokens[name].text, 0)
            last = name + 1 if name == i + 2 else name
            if name == i and value and tokens[name].text == ARCH:
                value = self.arch
            found.append((tokens[i], tokens[min(last, len(tokens) - 1)], str(value)))
            i = last + 1
        return found


class _Branch:
    def __init__(self, directive: Directive):
        self.directive, self.end = directive, directive.end
        self.items: list[Token | Directive | _Group] = []


class _Group:
    """One #if ... #endif."""

    def __init__(self, directive: Directive, place: str, statement: bool):
        self.branches = [_Branch(directive)]
        self.place, self.statement = place, statement  # device, host or file; does it stand for a statement?
        self.bad = False  # its live branches have what the host cannot run

    @property
    def asks(self) -> bool:
        return any(t.text in NVCC_WORDS for b in self.branches for t in b.directive.tokens)

    def live(self, defined: Mapping[str, int], arch: int) -> list[_Branch]:
        """The branches that a compiler with these macros may get."""
        found = []
        for branch in self.branches:
            value = 1 if branch.directive.word == "else" else evaluate(branch.directive, defined, arch)
            if value != 0:
                found.append(branch)
            if value:
                return found
        return found


def choose(listed: Iterable[Token | Directive], defined: Mapping[str, int]) -> dict[int, Choice]:
    """How to read each #if that asks for nvcc, by the offset of the #if and of its #elif."""
    listed = list(listed)
    choices: dict[int, Choice] = {}
    if not any(t.text in NVCC_WORDS for i in listed if isinstance(i, Directive) for t in i.tokens):
        return choices
    stack: list[_Group] = []
    places = _Places(listed)
    for item in listed:
        if isinstance(item, Token):
            if item.kind == "punct" and item.text in ";{}":
                places.read(item.text)
            else:
                places.head.append(item.text)
            if stack:
                stack[-1].branches[-1].items.append(item)
        elif item.word in ("if", "ifdef", "ifndef"):
            stack.append(_Group(item, *places.now()))
            places.enter()
        elif item.word in ("elif", "else") and stack:
            stack[-1].branches[-1].end = item.start
            stack[-1].branches.append(_Branch(item))
            places.again()
        elif item.word == "endif" and stack:
            group = stack.pop()
            places.leave()
            group.branches[-1].end = item.start
            _decide(group, defined, choices)
            if stack:
                stack[-1].branches[-1].items.append(group)
        elif stack:
            stack[-1].branches[-1].items.append(item)
    return choices


def _decide(group: _Group, plain: Mapping[str, int], choices: dict[int, Choice]):
    if not group.asks:
        group.bad = any(_is_bad(branch) for branch in group.live(plain, 0))
        return
    ways = []
    on_host = group.place == "host"
    for arch in (NEWEST, 0) if on_host else ARCHITECTURES:
        nvcc = {"__CUDACC__": 1, "__NVCC__": 1, ARCH: int(not on_host)} if arch else {}
        way = Choice({**plain, **nvcc}, 0 if on_host else arch)
        ways.append((way, group.live(way.defined, arch)))
    first, wanted = ways[0]
    if group.place == "file" and not any(branch.items for branch in wanted):
        ways = _host_pass(group, ways)
    way, live = next(((w, b) for w, b in ways if not any(map(_is_bad, b))), (first, wanted))
    empty = not any(branch.items for branch in live)
    if empty and group.place == "device" and any(branch.items for branch in wanted):
        way = first
        if group.statement and len(wanted) == 1:
            way = first._replace(refused=(wanted[0].directive.end, wanted[0].end))
    group.bad = way.refused is None and any(map(_is_bad, group.live(way.defined, way.arch)))
    for branch in group.branches:
        choices[branch.directive.start] = way


def _host_pass(group: _Group, ways: list) -> list:
    """nvcc reads a file twice. What is outside of functions and has no device code may be for its second reading."""
    way = Choice({**ways[0][0].defined, ARCH: 0}, 0)
    live = group.live(way.defined, 0)
    words = {item.text for branch in live for item in branch.items if isinstance(item, Token)}
    return ways if words & FOR_DEVICES else [(way, live), *ways]


def _is_bad(branch: _Branch) -> bool:
    """Does a branch have what the host cannot run?"""
    tokens = [item for item in branch.items if isinstance(item, Token)]
    if any(_is_bad_asm(tokens, i) for i, t in enumerate(tokens) if t.kind == "name" and t.text in ASM):
        return True
    for item in branch.items:
        if isinstance(item, _Group):
            if item.bad:
                return True
        elif isinstance(item, Directive):
            named = re.sub(r'[<>"]', "", "".join(t.text for t in item.tokens))
            if item.word == "include" and NOT_ON_THE_HOST.match(named):
                return True
            if any(_is_bad_asm(item.tokens, i) for i, t in enumerate(item.tokens) if t.text in ASM):
                return True
        else:
            text = item.text
            if item.kind == "name" and TEXTURES.fullmatch(text):
                return True
            if item.kind == "name" and GPU_ONLY.fullmatch(text):
                return True
    return False


def _is_bad_asm(tokens: list[Token], at: int) -> bool:
    """Is this asm statement one that the host cannot run? Of one that macros make nobody knows it here."""
    # Most files have none, and a build starts this program for each.
    from .ptx.statement import asm_statement
    from .ptx.text import PtxError
    from .ptx.translate import covered

    tokens = tokens[at : at + MOST_TOKENS]
    try:
        statement = asm_statement(tokens, match_brackets(tokens), 0)
    except PtxError:
        return False
    if statement is None or statement.template is None:
        return False
    return bool(covered(statement.template))


class _Places:
    """Where each directive stands: in device code, in host code, or outside of functions ("file")."""

    def __init__(self, listed: Iterable[Token | Directive]):
        self.devices = set(FOR_DEVICES)
        for item in listed:
            is_macro = isinstance(item, Directive) and item.word == "define"
            if is_macro and any(t.text in self.devices for t in item.tokens[1:]):
                self.devices.add(item.tokens[0].text)
        self.braces: list[str] = []
        self.head: list[str] = []
        self.saved: list[tuple[list[str], list[str]]] = []

    def now(self) -> tuple[str, bool]:
        place = self.braces[-1] if self.braces else "file"
        return place, not self.head

    def enter(self):
        self.saved.append((list(self.braces), list(self.head)))

    def again(self):
        """Another branch starts where the first one did."""
        self.braces, self.head = (list(part) for part in self.saved[-1])

    def leave(self):
        self.saved.pop()

    def read(self, text: str):
        """Read a brace or a semicolon. Other tokens go into `head`."""
        if text == "{":
            self.braces.append(self._opened())
        elif text == "}" and self.braces:
            self.braces.pop()
        self.head = []

    def _opened(self) -> str:
        """What the braces after this head are."""
        if self.braces and self.braces[-1] != "file":
            return self.braces[-1]
        ends = (")", "const", "noexcept", "override", "final", "mutable")
        if ")" not in self.head or self.head[-1] not in ends:
            return "file"
        words = set(self.head[: self.head.index("(")] if "(" in self.head else self.head)
        if words & self.devices or any(map(DEVICE_MACRO.match, words)):
            return "device"
        return "device" if any(word in self.devices for word in self.head) else "host"
