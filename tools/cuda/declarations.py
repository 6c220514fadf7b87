"""What one declaration says: a class with its members, variables with their types, other names of types.

    class_of(tokens)           of `struct P : Q { int n; };`
    members(class_.body)       its variables and functions
    variables_of(tokens)       of `const float *x, y[3] = {}`: the type's words, and each name with its stars and sizes

By tokens and brackets, which macros cannot confuse, as outline.py finds the declaration itself. What is written in
another way is None: who asks takes it for unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .brackets import match_brackets
from .conditions import Token
from .outline import skip_angles, split_commas
from .tokens import mask, tidy

# Words whose parentheses belong to them.
ATTRIBUTE = re.compile(r"(__\w+__|alignas|decltype)\Z")
ACCESS = ("public", "private", "protected")


class Class(NamedTuple):
    word: str  # struct or class
    name: str  # "" of one without a name
    after: str  # the name behind its braces: another one of a typedef, else a variable
    is_typedef: bool
    is_template: bool
    bases: list[Token]
    body: list[Token]  # between its braces

    @property
    def names(self) -> set[str]:
        return ({self.name, self.after} if self.is_typedef else {self.name}) - {""}


class Member(NamedTuple):
    tokens: list[Token]  # of a function without its body
    is_function: bool

    @property
    def texts(self) -> list[str]:
        return [token.text for token in self.tokens]


class Declarator(NamedTuple):
    name: str
    stars: int
    sizes: tuple[str, ...]  # the texts in its brackets


class Variables(NamedTuple):
    type: list[str]  # the words, without stars
    declarators: list[Declarator]


def text_of(tokens: list[Token]) -> str:
    return tidy(mask(tokens, tokens[0].start, tokens[-1].end)) if tokens else ""


def class_of(tokens: list[Token]) -> Class | None:
    """The class that a declaration defines."""
    partner, texts = match_brackets(tokens), [token.text for token in tokens]
    at = int(texts[:1] == ["typedef"])
    is_typedef, is_template = bool(at), texts[at : at + 1] == ["template"]
    if is_template:
        at = skip_angles(tokens, partner, at + 1, len(tokens))
    word = texts[at] if at < len(texts) else ""
    if word not in ("struct", "class"):
        return None
    at += 1
    if texts[at : at + 1] in (["__align__"], ["alignas"]):
        at = partner.get(at + 1, at) + 1
    opening = next((i for i in range(at, len(texts)) if texts[i] in ("{", ";")), len(texts))
    head = tokens[at:opening]
    name = head.pop(0).text if head and head[0].kind == "name" and head[0].text != "final" else ""
    head = head[1:] if head and head[0].text == "final" else head
    close = partner.get(opening, 0) if texts[opening : opening + 1] == ["{"] else 0
    rest = [token for token in tokens[close + 1 :] if token.text != ";"]
    if not close or (head and head[0].text != ":") or len(rest) > 1 or any(t.kind != "name" for t in rest):
        return None
    after = rest[0].text if rest else ""
    return Class(word, name, after, is_typedef, is_template, head[1:], tokens[opening + 1 : close])


def members(body: list[Token]) -> list[Member]:
    """The members between the braces of a class. Labels such as `public:` are left out."""
    partner, found, start, at = match_brackets(body), [], 0, 0
    while at < len(body):
        text = body[at].text if body[at].kind == "punct" else ""
        if text == "{" and is_function(body[start:at]) and not _is_initialiser(body[start:at]):
            found.append(Member(_without_labels(body[start:at]), True))
            at = start = partner.get(at, len(body)) + 1
            continue
        if text == ";":
            found.append(Member(_without_labels(body[start:at]), is_function(body[start:at])))
            start = at + 1
        at = partner.get(at, len(body)) + 1 if text in ("(", "[", "{") else at + 1
    return [member for member in found if member.tokens]


def is_function(tokens: list[Token]) -> bool:
    """Do the tokens of a member, up to its body, declare a function?"""
    plain = [token.text for token in _without_attributes(tokens, "[")]
    return "operator" in plain or "(" in plain[: plain.index("=") if "=" in plain else len(plain)]


def _is_initialiser(tokens: list[Token]) -> bool:
    """Does a brace behind these belong to one of a constructor's initialisers? `P(int n) : size{`"""
    texts = [token.text for token in tokens]
    begins = any(
        text == ":" and ")" in texts[max(0, i - 2) : i] and set(texts[max(0, i - 1) : i]) <= {")", "noexcept"}
        for i, text in enumerate(texts)
    )
    return begins and bool(tokens) and tokens[-1].kind == "name"


def _without_labels(tokens: list[Token]) -> list[Token]:
    texts = [token.text for token in tokens] + [""]
    labels = {i for i, text in enumerate(texts) if text in ACCESS and texts[i + 1] == ":"}
    return [token for i, token in enumerate(tokens) if i not in labels and i - 1 not in labels]


def _without_attributes(tokens: list[Token], *others: str) -> list[Token]:
    """Without `alignas(16)` and the like, and without what is in these other brackets."""
    partner, found, at = match_brackets(tokens), [], 0
    while at < len(tokens):
        is_attribute = ATTRIBUTE.match(tokens[at].text) and tokens[at + 1 : at + 2]
        if is_attribute and tokens[at + 1].text == "(":
            at = partner.get(at + 1, at + 1) + 1
        elif tokens[at].text in others:
            at = partner.get(at, at) + 1
        else:
            found.append(tokens[at])
            at += 1
    return found


def variables_of(tokens: list[Token]) -> Variables | None:
    """The variables that a declaration without its `;` declares. None if one has not the form `*name[size] = value`."""
    tokens = _without_attributes(tokens)
    partner, kind, found = match_brackets(tokens), list[str](), []
    for first, last in split_commas(tokens, partner, 0, len(tokens)):
        part = tokens[first:last]
        stop = next((i for i, token in enumerate(part) if token.text in ("=", "{", "[")), len(part))
        head, sizes = part[:stop], []
        while first + stop < last and tokens[first + stop].text == "[":
            close = partner.get(first + stop, last)
            sizes.append(text_of(tokens[first + stop + 1 : close]))
            stop = close + 1 - first
        if not head or head[-1].kind != "name" or (first + stop < last and part[stop].text not in ("=", "{")):
            return None
        stars = sum(token.text == "*" for token in head[:-1])
        before = head[: len(head) - 1 - stars]
        if (found and before) or any(token.text == "*" for token in before):
            return None
        kind = kind or text_of(before).split()
        found.append(Declarator(head[-1].text, stars, tuple(sizes)))
    return Variables(kind, found) if kind and found else None


def alias_of(tokens: list[Token]) -> tuple[str, str] | None:
    """(new name, the last word of the old one) of `using New = a::Old<int>;` and `typedef Old New;`."""
    tokens = [token for token in tokens if token.text not in (";", "typename", "struct")]
    texts = [token.text for token in tokens]
    if texts[:1] == ["typedef"]:
        tokens, new = tokens[1:-1], texts[-1]
    elif texts[:1] == ["using"] and texts[2:3] == ["="]:
        tokens, new = tokens[3:], texts[1]
    else:
        return None
    stop = next((i for i, token in enumerate(tokens) if token.text == "<"), len(tokens))
    closes = stop == len(tokens) or skip_angles(tokens, match_brackets(tokens), stop, len(tokens)) == len(
        tokens
    )
    old = tokens[:stop]
    if not old or not closes or any(token.kind != "name" and token.text != "::" for token in old):
        return None
    return new, old[-1].text


def words(tokens: list[Token]) -> Iterator[str]:
    """The names and the numbers."""
    return (token.text for token in tokens if token.kind in ("name", "number"))
