"""The members of a class, by its text: which are functions, and which variables have addresses in them.

members("P(int n) : n(n) {} int n; float* x;")    three members; the first one is a function
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..cuda.brackets import OPENING

CLASS = re.compile(
    r"(typedef\s+)?(?:template\s*<[^{};]*>\s*)?(struct|class)\s*((?:__align__|alignas)\s*\([^()]*\)\s*)?(\w*)\s*"
    r"(?:final\s*)?(:[^{;]*)?\{(.*)\}\s*(\w*)\s*;?",
    re.S,
)
ACCESS = re.compile(r"\b(public|private|protected)\s*:(?!:)")
ATTRIBUTE = re.compile(r"\b(__\w+__|alignas|decltype)\s*\((?:[^()]|\([^()]*\))*\)")
ALIAS = re.compile(
    r"(?:using\s+(?P<new>\w+)\s*=|typedef)\s*(?:typename\s+|struct\s+)?(?P<old>[\w:\s]+?)\s*(?:<[^;{}]*>)?\s*(?P<name>\w*)\s*;?"
)


# A constructor's text before the braces of one of its initialisers: `P(int n) : size{`.
INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:).*\w\s*\Z", re.S)


class Member(NamedTuple):
    text: str  # of a function without its body
    is_function: bool


def members(body: str) -> list[Member]:
    """The members between the braces of a class. Labels such as `public:` are left out."""
    found, start, at = [], 0, 0
    while at < len(body):
        letter = body[at]
        if letter == "{" and is_function(body[start:at]) and not INITIALISER.search(body[start:at]):
            found.append(Member(_tidy(body[start:at]), True))
            at = start = _after(body, at)
            continue
        if letter in OPENING:
            at = _after(body, at)
            continue
        if letter == ";":
            found.append(Member(_tidy(body[start:at]), is_function(body[start:at])))
            start = at + 1
        at += 1
    return [member for member in found if member.text]


def is_function(text: str) -> bool:
    """Does the text of a member, up to its body, declare a function?"""
    text = re.sub(r"\[[^\]]*\]", "", ATTRIBUTE.sub(" ", text))
    return bool(re.search(r"\boperator\b", text)) or "(" in text.split("=")[0]


def _after(text: str, at: int) -> int:
    """The place behind the bracket that closes the one here."""
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if not depth:
            return place + 1
    return len(text)


def _tidy(text: str) -> str:
    return " ".join(ACCESS.sub(" ", text).split())


def without_addresses(texts: Iterable[str]) -> set[str]:
    """The names of the classes of these declarations whose objects are plain bytes: they have no pointer or reference,
    no type that may own memory, and no destructor. So have other names of theirs: `using Real3 = Vector<double>`.

    Args:
        texts: without comments.
    """
    texts = [text.strip() for text in texts]
    named: dict[str, set[str] | None] = {}
    based: dict[str, set[str]] = {}
    for text in texts:
        if found := CLASS.fullmatch(text):
            is_typedef, _, _, own, bases, body, after = found.groups()
            words = _words(body)
            of_base = set(re.findall(r"\w+(?=\s*(?:<|,|\Z))", bases or ""))
            based |= dict.fromkeys((own, after), of_base)
            named |= dict.fromkeys({own, after} - {""} if is_typedef else {own} - {""}, words)
    plain = {name for name, words in named.items() if words is not None}
    while more := {n for n in plain if (named[n] or set()) & (named.keys() - plain) or based[n] - plain}:
        plain -= more
    for text in texts:
        if (alias := ALIAS.fullmatch(text)) and re.findall(r"\w+", alias["old"])[-1:]:
            name = alias["new"] or alias["name"]
            if name and re.findall(r"\w+", alias["old"])[-1] in plain:
                plain.add(name)
    return plain


def _words(body: str) -> set[str] | None:
    """The words of a class's variables; None if one may have an address."""
    found: set[str] = set()
    for text, function in members(body):
        if re.search(r"\bvirtual\b|\(\s*[*&]", text.split("=")[0]) or (
            function and "~" in text and "default" not in text
        ):
            return None
        if function or re.match(r"(static|using|typedef|friend|static_assert|enum)\b", text):
            continue
        if inner := re.match(r"(?:struct|union|class)\b[^{]*\{(.*)\}", text, re.S):
            words = _words(inner[1])
            if words is None:
                return None
            found |= words
            continue
        text = re.sub(r"\[[^\]]*\]|=[^,]*|\{[^{}]*\}", "", text)
        if re.search(r"[*&]|\bstd\s*::(?!\s*(array|u?int\d+_t|size_t)\b)", text):
            return None
        found |= set(re.findall(r"\w+", text)) - {"std"}
    return found
