"""Cooperative groups of a block and of tiles in a kernel's body, as the barriers, shuffles and votes that they are.

    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    v += tile.shfl_down(v, 1);           v += __group_shfl_down_sync(0xffffffff, v, 1, 16);

Then phases.py and warps.py see one text, in which a block's rows are whole warps. A group of another kind, or one that
is used in another way, leaves the body as it is: then the kernel's threads run on fibres.
"""

from __future__ import annotations

from typing import NamedTuple

from .conditions import HOST_BUILD, Token
from .lexer import Lexed
from .outline import split_commas

WORDS = {"this_thread_block", "tiled_partition", "thread_block", "thread_block_tile", "thread_group"}
SPACES = {"cg", "cooperative_groups"}
OPERATIONS = {"plus", "less", "greater", "bit_and", "bit_or", "bit_xor"}
SIZES = {"1", "2", "4", "8", "16", "32"}
PLACE = "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x)"
THREADS = "(blockDim.x * blockDim.y * blockDim.z)"
FULL = "0xffffffff"
# What a group's methods are. {n}: the lanes of a tile, {a}: the arguments.
OF_BLOCK = {
    "sync": "__syncthreads()",
    "thread_rank": PLACE,
    "size": THREADS,
    "num_threads": THREADS,
    "group_index": "dim3(blockIdx)",
    "thread_index": "dim3(threadIdx)",
    "group_dim": "dim3(blockDim)",
    "dim_threads": "dim3(blockDim)",
}
VOTE = f"__ballot_sync({FULL}, {{a}})"
PART = f"(({VOTE} >> (threadIdx.x & (32u - {{n}}u))) & ((1u << {{n}}) - 1u))"
OF_TILE = {
    "sync": "__syncwarp()",
    "thread_rank": "(threadIdx.x % {n}u)",
    "size": "{n}u",
    "num_threads": "{n}u",
    "meta_group_rank": f"({PLACE} / {{n}}u)",
    "meta_group_size": f"(({THREADS} + {{n}}u - 1u) / {{n}}u)",
    "ballot": PART,
    "any": f"int({PART} != 0u)",
    "all": f"int({PART} == (1u << {{n}}) - 1u)",
}
OF_WARP = {
    "ballot": VOTE,
    "any": f"__any_sync({FULL}, {{a}})",
    "all": f"__all_sync({FULL}, {{a}})",
}
SHUFFLES = {"shfl", "shfl_up", "shfl_down", "shfl_xor"}


class _Other(Exception):
    """The body stays as it is."""


class Group(NamedTuple):
    lanes: str  # of a tile; "" of a block


class Groups:
    """The groups of a body, and the edits that replace them."""

    def __init__(self, body: str):
        lexed = Lexed(body, HOST_BUILD)
        self.body, self.tokens, self.partner = body, lexed.tokens, lexed.partner
        self.edits: list[tuple[int, int, str]] = []
        self.groups: dict[str, Group] = {}
        self.declared: set[int] = set()  # the tokens of declarations
        self.has_tiles = False

    def rewritten(self) -> str:
        self._declarations()
        for i, token in enumerate(self.tokens):
            if i not in self.declared and token.kind == "name":
                self._use(i, token)
        text = self.body
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + "\n" * text.count("\n", start, end) + text[end:]
        return text

    def _at(self, i: int) -> str:
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def _behind_space(self, i: int) -> int:
        """The index behind `cg::`."""
        return i + 2 if self._at(i) in SPACES and self._at(i + 1) == "::" else i

    def _declarations(self):
        for i in range(1, len(self.tokens)):
            if self._at(i - 1) not in (";", "{", "}", ":"):
                continue
            alias = [self._at(k) for k in range(i, i + 5)]
            if (
                alias[0] == "namespace"
                and alias[1] in SPACES
                and alias[2:] == ["=", "cooperative_groups", ";"]
            ):
                self.declared |= set(range(i, i + 5))
                self.edits.append((self.tokens[i].start, self.tokens[i + 4].end, ";"))
                continue
            found = self._declaration(i)
            if found is None:
                continue
            name, group, end = found
            if self.groups.setdefault(name, group) != group:
                raise _Other
            self.declared |= set(range(i, end + 1))
            self.edits.append((self.tokens[i].start, self.tokens[end].end, ";"))

    def _declaration(self, i: int) -> tuple[str, Group, int] | None:
        """The name and the group that is declared at a token, and the index of its `;`."""
        while self._at(i) in ("const", "static", "auto"):
            i += 1
        typed = self._behind_space(i)
        if self._at(typed) in ("thread_block", "thread_group", "thread_block_tile"):
            i = typed + 1
            if self._at(i) == "<":
                while self._at(i) not in (">", ";", ""):
                    i += 1
                i += 1
        elif self._at(i - 1) != "auto":
            return None
        i += self._at(i) == "&"
        name, opening = self._at(i), self._at(i + 1)
        if opening not in ("=", "("):
            return None
        found = self._group(i + 2)
        if found is None:
            return None
        group, end = found
        end += opening == "("
        if self._at(end) != ";":
            raise _Other
        return name, group, end

    def _group(self, i: int) -> tuple[Group, int] | None:
        """The group that an expression at a token is, and the index behind it."""
        i = self._behind_space(i)
        name = self._at(i)
        if name == "this_thread_block" and [self._at(i + 1), self._at(i + 2)] == ["(", ")"]:
            return Group(""), i + 3
        if name == "tiled_partition":
            lanes, i = "", i + 1
            if self._at(i) == "<":
                lanes, i = self._at(i + 1), i + 2
                i = next((k for k in range(i, i + 8) if self._at(k) == ">"), i) + 1
            parent = self._group(i + 1)
            if self._at(i) != "(" or parent is None:
                raise _Other
            (of, _), i = parent, parent[1]
            if not lanes and self._at(i) == ",":
                lanes, i = self._at(i + 1), i + 2
            if self._at(i) != ")" or lanes not in SIZES or (of.lanes and int(lanes) > int(of.lanes)):
                raise _Other
            self.has_tiles = True
            return Group(lanes), i + 1
        return (
            (self.groups[name], i + 1) if name in self.groups and self._at(i + 1) in (";", ",", ")") else None
        )

    def _use(self, i: int, token: Token):
        """Replace what a token begins."""
        before = self._at(i - 1)
        if before in (".", "->") or any(start <= token.start < end for start, end, _ in self.edits):
            return
        first = i - 2 if before == "::" and self._at(i - 2) in SPACES else i
        if token.text in ("sync", "synchronize", "reduce") and self._at(i + 1) == "(":
            found = self._group(i + 2)
            if found is not None:
                self._call(first, i, *found)
                return
        found = self._group(i) if token.text in WORDS else None
        found = found or ((self.groups[token.text], i + 1) if token.text in self.groups else None)
        if found is not None:
            group, dot = found
            if before == "::" and first == i:
                raise _Other
            self._method(first, dot, group)

    def _call(self, first: int, i: int, group: Group, end: int):
        """sync(group), reduce(group, value, operation)."""
        close = self.partner.get(i + 1)
        if close is None:
            raise _Other
        if self._at(i) != "reduce":
            if end != close:
                raise _Other
            of = OF_TILE if group.lanes else OF_BLOCK
            self._replace(first, close, of["sync"])
            return
        parts = list(split_commas(self.tokens, self.partner, end + 1, close)) if self._at(end) == "," else []
        if not group.lanes or len(parts) != 2 or not self._is_operation(*parts[1]):
            raise _Other
        self._replace(first, end, f"__group_reduce_sync({FULL},")
        comma, operation = self.tokens[parts[1][0] - 1], parts[1][0]
        self.edits.append((comma.start, comma.end, f", {group.lanes},"))
        if self._at(operation) == "cg":
            self._replace(operation, operation, "cooperative_groups")

    def _is_operation(self, first: int, last: int) -> bool:
        """Is it cg::plus<float>() or the like?"""
        texts = [token.text for token in self.tokens[first:last]]
        if texts[:1] and texts[0] in SPACES and texts[1:2] == ["::"]:
            texts = texts[2:]
        is_call = texts[-2:] in (["(", ")"], ["{", "}"]) and texts[0] in OPERATIONS and texts[1:2] == ["<"]
        return is_call and texts[-3] == ">" and all(text.isidentifier() for text in texts[2:-3])

    def _method(self, first: int, dot: int, group: Group):
        name, opening = self._at(dot + 1), dot + 2
        close = self.partner.get(opening)
        if self._at(dot) != "." or self._at(opening) != "(" or close is None:
            raise _Other
        has_arguments = close > opening + 1
        if group.lanes and name in SHUFFLES and has_arguments:
            self._replace(first, opening, f"__group_{name}_sync({FULL}, ")
            self.edits.append((self.tokens[close].start, self.tokens[close].start, f", {group.lanes}"))
            return
        of = OF_BLOCK if not group.lanes else {**OF_TILE, **OF_WARP} if group.lanes == "32" else OF_TILE
        text = of.get(name, "").replace("{n}", group.lanes)
        if not text or ("{a}" in text) != has_arguments:
            raise _Other
        if has_arguments:
            before, _, after = text.partition("{a}")
            self._replace(first, opening, before)
            self.edits.append((self.tokens[close].start, self.tokens[close].end, after))
            return
        if text.startswith("dim3(") and self._at(close + 1) == ".":
            text = text[5:-1]
        self._replace(first, close, text)

    def _replace(self, first: int, last: int, text: str):
        self.edits.append((self.tokens[first].start, self.tokens[last].end, text))


def names_of_groups(body: str) -> set[str]:
    """The names of the groups that a body declares."""
    groups = Groups(body)
    try:
        groups._declarations()
    except _Other:
        return set()
    return set(groups.groups)


def without_groups(body: str) -> tuple[str, bool]:
    """The body with barriers, shuffles and votes in place of its groups, or as it is; and whether it has tiles, which
    need rows of whole warps.
    """
    groups = Groups(body)
    try:
        text = groups.rewritten()
    except _Other:
        return body, False
    return text, groups.has_tiles
