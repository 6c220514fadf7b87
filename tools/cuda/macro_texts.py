"""A kernel's body with the unit's macros replaced by their texts, so that phases.py and warps.py see what they do.

    s[OFFSET(t, k, 32)] = FLOAT4(x[i]).x;      s[((t)*(32)+(k))] = (reinterpret_cast<float4 *>(&(x[i]))[0]).x;

Replaced are macros with parameters, and others by which threads meet or ask for themselves, if a macro has one
definition, before the kernel and under no condition that is not known. What stands on a line stays there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from .conditions import HOST_BUILD, Token
from .lexer import Lexed
from .source import Source
from .tokens import LOOP, macro_body, macro_parameters

ROUNDS = 8
LONGEST = 200_000  # characters of a body


class Macro(NamedTuple):
    parameters: list[str] | None  # None: it has no parentheses
    body: list[Token]


class Macros:
    """The macros of a unit that have one meaning."""

    def __init__(self, sources: Sequence[Source], meetings: Collection[str]):
        self.found: dict[str, Macro] = {}
        self._at: dict[str, tuple[Source, int]] = {}
        twice = set()
        for source in sources:
            for directive in source.lexed.directives:
                if directive.word == "undef" and directive.tokens:
                    twice.add(directive.tokens[0].text)
            for macro in source.macros:
                name = macro.tokens[0].text
                if name in self.found or LOOP.match(name) or source.lexed.is_undecided(macro.start):
                    twice.add(name)
                body = macro_body(macro)
                has_parameters = len(body) < len(macro.tokens) - 1
                self.found[name] = Macro(macro_parameters(macro) if has_parameters else None, body)
                self._at[name] = source, macro.start
        for name, macro in list(self.found.items()):
            texts = {token.text for token in macro.body}
            unclear = texts & {"#", "##", "__VA_ARGS__", "__VA_OPT__", "..."} or name in texts
            if unclear or name in twice:
                del self.found[name]
        self._personal = {name for name in self.found if self._asks(name, meetings)}

    def _asks(self, name: str, meetings: Collection[str]) -> bool:
        seen, waiting = {name}, [name]
        while waiting:
            for token in self.found[waiting.pop()].body:
                if token.text in meetings:
                    return True
                if token.text in self.found and token.text not in seen:
                    seen.add(token.text)
                    waiting.append(token.text)
        return False

    def replaced(self, body: str, source: Source, offset: int) -> str:
        """A body's text, which begins at an offset of a source, with the macros replaced."""
        for _ in range(ROUNDS):
            before, body = body, self._once(body, source, offset)
            if body == before or len(body) > LONGEST:
                break
        return body

    def _once(self, body: str, source: Source, offset: int) -> str:
        lexed = Lexed(body, HOST_BUILD)
        tokens, partner, pieces, at, i = lexed.tokens, lexed.partner, list[str](), 0, 0
        while i < len(tokens):
            token, macro = tokens[i], self.found.get(tokens[i].text)
            known = macro is not None and token.kind == "name" and self._is_before(token.text, source, offset)
            is_call = i + 1 < len(tokens) and tokens[i + 1].text == "(" and i + 1 in partner
            if not known or macro is None or (macro.parameters is not None and not is_call):
                i += 1
                continue
            if macro.parameters is None:
                last, arguments = i, list[str]()
                if token.text not in self._personal:
                    i += 1
                    continue
            else:
                last = partner[i + 1]
                arguments = self._arguments(tokens, partner, i + 1, last)
                if len(arguments) != len(macro.parameters):
                    i += 1
                    continue
            start, end = token.start, tokens[last].end
            pieces += [body[at:start], self._text(macro, arguments), "\n" * body.count("\n", start, end)]
            at, i = end, last + 1
        return "".join(pieces) + body[at:]

    def _is_before(self, name: str, source: Source, offset: int) -> bool:
        """Is the macro defined where the body stands? A header's is."""
        where, start = self._at[name]
        return where is not source or start < offset

    @staticmethod
    def _arguments(tokens: list[Token], partner: dict[int, int], opening: int, close: int) -> list[str]:
        """The texts of a call's arguments. To the preprocessor < and [ are no brackets."""
        found, first, i = [], opening + 1, opening + 1
        while i <= close:
            if i == close or tokens[i].text == ",":
                part = tokens[first:i]
                found.append(" ".join(token.text for token in part))
                first = i + 1
            i = partner.get(i, i) + 1 if tokens[i].text == "(" else i + 1
        return [] if found == [""] else found

    @staticmethod
    def _text(macro: Macro, arguments: list[str]) -> str:
        names = dict(zip(macro.parameters or (), arguments, strict=True))
        return " ".join(names.get(token.text, token.text) for token in macro.body)
