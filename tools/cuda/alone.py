"""May the threads of a kernel run one after the other, each to its end, in a plain loop (kBlocks)?

Not if a thread may wait for another one, or see which threads run: at a barrier, a shuffle or a vote, in a loop that
reads volatile memory or the result of an atomic. All that a kernel may call is looked at. So a header that is not read
here, and is not one of those that are known, means no. If in doubt, the result is no: then the launcher can switch
between the threads.
"""

from __future__ import annotations

import glob
import os
import re
from bisect import bisect_left
from collections.abc import Collection

from .branches import FOR_DEVICES
from .conditions import Token
from .lexer import may_wait
from .names import THREAD
from .outline import Function
from .source import Source
from .tokens import LOOP, Spans, position_from
from .unit_names import NUMBERS

LOOPS = {"for", "while", "do", "goto"}
# Stand in a set of words for what is no word.
WAITING_LOOP, ATOMIC_VALUE = "a loop that waits", "the value of an atomic"

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def own_folders(root: str) -> list[str]:
    """The folders of the toolkit's headers, and of its wings'."""
    wings = glob.glob("cuffi/*/include", root_dir=root)  # root's own name may have brackets
    return [os.path.join(root, folder) for folder in ("include", "include/host", *wings)]


OWN_FOLDERS = own_folders(ROOT)
# Headers of C, C++ and torch, without the folders in which torch has code for GPUs.
KNOWN_HEADER = re.compile(
    r"([a-z_\d]+|(assert|ctype|errno|float|inttypes|limits|math|memory|stdbool|stddef|stdint|stdio|stdlib|string|time|unistd)\.h"
    r"|(sys/\w+|bits/stdc\+\+)\.h|(cublas|cudnn|cufft|curand|cusolver|cusparse)\w*\.h|(mpi|nccl|omp|nvml|nvToolsExt)\.h|Python\.h|pybind11/[\w/]+\.h|(torch|c10|ATen|THC?)/(?!(native|.*detail)/)[\w/]+\.h)\Z"
)


def is_known(header: str) -> bool:
    """Does the header, which is not read here, have no function by which threads meet, or that asks for its thread?"""
    if os.path.isabs(header) or ".." in header or header.startswith("cub/"):
        return False
    own = any(os.path.isfile(os.path.join(folder, header)) for folder in OWN_FOLDERS)
    return own or (bool(KNOWN_HEADER.match(header)) and "DeviceAssertion" not in header)


def in_loops(tokens: list[Token], partner: dict[int, int], first: int, last: int) -> set[int]:
    """The indices of the tokens that stand in a loop."""
    if any(token.text == "goto" for token in tokens[first:last]):
        return set(range(first, last))
    found: set[int] = set()
    for i in range(first, last):
        if tokens[i].text == "do" and tokens[i].kind == "name":
            end = partner.get(i + 1, last) if i + 1 < last and tokens[i + 1].text == "{" else last
        elif tokens[i].text in ("for", "while") and i + 1 < last and tokens[i + 1].text == "(":
            end = _end_of_statement(tokens, partner, partner.get(i + 1, last) + 1, last)
        else:
            continue
        found |= set(range(i, end))
    return found


def _end_of_statement(tokens: list[Token], partner: dict[int, int], i: int, last: int) -> int:
    """The index behind the statement that begins there, and behind what may belong to it."""
    while i < last and tokens[i].text != ";":
        if tokens[i].text == "{":
            i = partner.get(i, last) + 1
            if i < last and tokens[i].text != "else":
                return i
            continue
        i = partner.get(i, last) + 1 if tokens[i].text in ("(", "[") else i + 1
    if i + 1 < last and tokens[i + 1].text == "else":
        return _end_of_statement(tokens, partner, i + 2, last)
    return i + 1


def waits(
    tokens: list[Token],
    partner: dict[int, int],
    first: int,
    last: int,
    own: Collection[str],
    at: list[int] | None = None,
    in_kernel: bool = False,
) -> dict[str, int]:
    """WAITING_LOOP if one of these tokens begins an empty loop, ATOMIC_VALUE if an atomic's value is used: the first.

    Args:
        own: the unit's functions. What these do is known by their text, and not by a name with "atomic" in it.
        at: the indices of all tokens that may_wait finds in the list; None: they are looked for.
        in_kernel: nobody calls what is here, so that a value outside of a loop comes once.
    """
    found: dict[str, int] = {}
    at = may_wait(tokens) if at is None else at
    counted = in_loops(tokens, partner, first, last) if in_kernel else range(first, last)
    for i in at[bisect_left(at, first) : bisect_left(at, last)]:
        word, after = tokens[i].text, tokens[i + 1].text if i + 1 < last else ""
        if word in ("while", "for") and after == "(":
            close = partner.get(i + 1, last)
            ends_do = (
                i > first and tokens[i - 1].text == "}" and tokens[partner.get(i - 1, 0) - 1].text == "do"
            )
            if not ends_do and close + 1 < last and tokens[close + 1].text == ";":
                found.setdefault(WAITING_LOOP, i)
        elif word not in ("while", "for") and i in counted and word not in own and after in ("(", "<"):
            before = tokens[i - 1].text if i > first else ""
            if before == ")":  # of `if (...)`, or a cast
                opening = partner.get(i - 1, 0)
                begins = opening > first and tokens[opening - 1].text in ("if", "for", "while")
                begins = begins or bool(opening > first and LOOP.match(tokens[opening - 1].text))
            else:
                begins = before in (";", "{", "}", "else")
            if not begins:
                found.setdefault(ATOMIC_VALUE, i)
    return found


def numbers_of(source: Source, function: Function) -> set[str]:
    """The numbers that a function's body declares, which no name makes functions."""
    tokens = source.lexed.tokens
    first, last = (position_from(tokens, at) for at in (function.body, function.end))
    triples = [[token.text for token in tokens[i - 1 : i + 2]] for i in range(first + 1, last - 1)]
    declared = {word for before, word, after in triples if before in NUMBERS and after in ("=", ";", ",")}
    return declared - {word for _, word, after in triples if after in ("(", "<", "::")}


def loose_words(source: Source) -> set[str]:
    """The words by which a template or an operator may come to code that no kernel names.

    These are all words outside of kernels and of plain functions for devices, which are called by their name, and
    without the declarations of those and of volatile variables.
    """
    skipped = [
        (f.head, f.end)
        for f in source.functions
        if f.is_kernel or (f.words & FOR_DEVICES and not f.member and "operator" not in f.words)
    ]
    tokens, found, volatile = source.lexed.tokens, set(), source.volatile
    skipped += [(tokens[a].start, tokens[b].end) for a, b in source.declared if tokens[b].text == ";"]
    inside = [(tokens[a].start, tokens[b].end) for ranges in source.classes.values() for a, b in ranges]
    classes, left_out = Spans(inside), Spans(skipped)
    for token in tokens:
        if token.kind != "name" or token.text in found:
            continue
        in_class = classes.have(token.start)
        if not in_class and left_out.have(token.start):
            continue
        if in_class or source.function_around(token.start) or token.text not in volatile:
            found.add(token.text)
    return found


def asks_as_itself(source: Source, function: Function) -> bool:
    """Can the names threadIdx ... in the kernel's own text be parameters of its body?

    Not in a class, in a lambda that captures nothing, or as ::threadIdx.
    """
    tokens = source.lexed.tokens
    first, last = (position_from(tokens, at) for at in (function.body + 1, function.end - 1))
    for i in range(first, last):
        text, before = tokens[i].text, tokens[i - 1]
        if text in ("struct", "class", "union"):
            return False
        if text == THREAD and before.text == "::":
            return False
        is_subscript = (before.kind == "name" and before.text != "return") or before.text in (")", "]")
        is_lambda = text == "[" and not is_subscript
        captures = tokens[i + 1].text in ("=", "&") and tokens[i + 2].text in ("]", ",")
        if is_lambda and not captures:
            return False
    return True
