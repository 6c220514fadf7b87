"""Macros that make asm statements: their uses are expanded, because a template is read here and not by the compiler.

#define LDMATRIX(n, ...) asm volatile("ldmatrix.sync.aligned.m8n8.x" #n ".shared.b16 ..." : ...)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..brackets import match_brackets
from ..conditions import Directive, Token
from .text import PtxError

NOTHING = Token("punct", "", 0)  # what an empty argument leaves beside a ##


class Macro(NamedTuple):
    parameters: list[str] | None  # None: without brackets
    body: list[Token]
    variadic: bool = False  # the last parameter takes all that is left


class _Item(NamedTuple):
    token: Token
    hidden: frozenset[str]  # the macros that it comes from


def _macro(directive: Directive) -> Macro:
    tokens = directive.tokens
    if len(tokens) < 2 or tokens[1].text != "(" or tokens[1].start != tokens[0].end:
        return Macro(None, tokens[1:])
    close = next((i for i, t in enumerate(tokens) if t.text == ")"), len(tokens) - 1)
    given = [t.text for t in tokens[2:close] if t.text != ","]
    variadic = given[-1:] == ["..."]
    if variadic:
        given.pop()
        if tokens[close - 2].kind != "name":
            given.append("__VA_ARGS__")
    return Macro(given, tokens[close + 1 :], variadic)


class Macros:
    """The macros of some sources."""

    def __init__(self, directives: Iterable[Directive]):
        self._found: dict[str, list[Macro]] = {}
        for directive in directives:
            if directive.word == "define" and directive.tokens:
                self._found.setdefault(directive.tokens[0].text, []).append(_macro(directive))

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def __getitem__(self, name: str) -> Macro | None:
        found = self._found.get(name)
        if not found:
            return None
        first = [t.text for t in found[0].body], found[0].parameters
        if any(([t.text for t in one.body], one.parameters) != first for one in found[1:]):
            raise PtxError(f"the macro {name} has several definitions")
        return found[0]

    def words_of(self, name: str) -> set[str]:
        """The words of its bodies."""
        return {token.text for macro in self._found.get(name, ()) for token in macro.body}

    def users_of(self, names: set[str]) -> set[str]:
        """These macros, and those whose bodies name them, and so on."""
        found = set(names)
        while True:
            more = {
                name
                for name, all_of in self._found.items()
                if name not in found and any(t.text in found for one in all_of for t in one.body)
            }
            if not more:
                return found
            found |= more

    def end_of_use(self, tokens: list[Token], partner: dict[int, int], at: int) -> int:
        """The index after the use of a macro, or `at` if its name stands alone."""
        macro = self[tokens[at].text]
        if macro is None:
            return at
        takes_brackets = macro.parameters is not None or (macro.body[-1:] and macro.body[-1].text != ")")
        if not takes_brackets:
            return at + 1
        has_brackets = at + 1 < len(tokens) and tokens[at + 1].text == "("
        return partner.get(at + 1, at - 1) + 1 if has_brackets else at

    def expand(self, tokens: list[Token]) -> list[Token]:
        return [item.token for item in self._expand([_Item(t, frozenset()) for t in tokens])]

    def _expand(self, items: list[_Item]) -> list[_Item]:
        out: list[_Item] = []
        todo = items[::-1]
        while todo:
            item = todo.pop()
            name = item.token.text
            macro = self[name] if item.token.kind == "name" and name not in item.hidden else None
            if macro is None:
                out.append(item)
                continue
            hidden = item.hidden | {name}
            if macro.parameters is None:
                todo += [_Item(t, hidden) for t in macro.body][::-1]
                continue
            if not todo or todo[-1].token.text != "(":
                out.append(item)
                continue
            rest = todo[::-1]
            partner = match_brackets([one.token for one in rest])
            if 0 not in partner:
                raise PtxError(f"the brackets of {name}")
            arguments = _arguments(macro, rest[1 : partner[0]], name)
            todo = (self._substitute(macro, arguments, hidden) + rest[partner[0] + 1 :])[::-1]
        return out

    def _substitute(
        self, macro: Macro, arguments: dict[str, list[_Item]], hidden: frozenset[str]
    ) -> list[_Item]:
        found: list[_Item] = []
        body, i = macro.body, 0
        while i < len(body):
            token, after = body[i], body[i + 1] if i + 1 < len(body) else None
            if token.text == "#" and after and after.text in arguments:
                found.append(_Item(_stringified(arguments[after.text], token.start), hidden))
                i += 2
            elif token.text == "##" and found and after:
                right = arguments.get(after.text, [_Item(after, hidden)]) or [_Item(NOTHING, hidden)]
                found += [_pasted(found.pop(), right[0], hidden), *right[1:]]
                i += 2
            elif token.text in arguments:
                pasted = after is not None and after.text == "##"
                own = arguments[token.text] or [_Item(NOTHING, hidden)]
                found += own if pasted else [_Item(t, h | hidden) for t, h in self._expand(own)]
                i += 1
            else:
                found.append(_Item(token, hidden))
                i += 1
        return [item for item in found if item.token.text]


def _arguments(macro: Macro, items: list[_Item], name: str) -> dict[str, list[_Item]]:
    parameters = macro.parameters or []
    given: list[list[_Item]] = [[]]
    depth = 0
    for item in items:
        text = item.token.text if item.token.kind == "punct" else ""
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        rest = len(given) == len(parameters) and macro.variadic
        if text == "," and depth == 0 and not rest:
            given.append([])
        else:
            given[-1].append(item)
    if macro.variadic and len(given) == len(parameters) - 1:
        given.append([])
    if not parameters and given == [[]]:
        given = []
    if len(given) != len(parameters):
        raise PtxError(f"the arguments of {name}")
    return dict(zip(parameters, given, strict=True))


def _pasted(left: _Item, right: _Item, hidden: frozenset[str]) -> _Item:
    text = left.token.text + right.token.text
    kind = left.token.kind if left.token.kind != "punct" else right.token.kind
    return _Item(Token(kind, text, left.token.start), hidden)


def _stringified(items: list[_Item], start: int) -> Token:
    text, end = "", None
    for token, _ in items:
        blank = end is not None and token.start != end
        text += (" " if blank else "") + token.text
        end = token.end
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return Token("string", f'"{escaped}"', start)
