"""Replaces the asm statements of a file by C++.

What the host cannot run is an error: of the file if one of its kernels may come to the instruction, else of the code
when it runs. So a header may have what nobody calls.
"""

from __future__ import annotations

import os

from ..analysis import Unit
from ..brackets import match_brackets
from ..branches import DEVICE_MACRO, FOR_DEVICES
from ..conditions import Directive, Token
from ..conversions import of_text
from ..lexer import tokens_and_directives
from ..names import ASM
from ..outline import Function
from ..rewrite import Rewriter, quoted
from ..tokens import macro_body
from .macros import Macros
from .statement import Asm, asm_statement
from .text import PtxError
from .translate import as_cpp

WHY = "inline PTX: {}; write it in C++, or put it in #ifdef __CUDA_ARCH__ with an #else for the host"
MADE = "a macro makes its text"


class AsmPass:
    """The asm statements of one file."""

    def __init__(self, file: Rewriter, unit: Unit):
        self.file, self.unit = file, unit
        self._reached: set[str] | None = None
        self.macros = Macros(macro for source in unit.sources for macro in source.macros)
        made = {
            macro.tokens[0].text
            for source in unit.sources
            for macro in source.macros
            if any(
                t.text in ASM and self._is_made(macro_body(macro), i) for i, t in enumerate(macro_body(macro))
            )
        }
        self.made = self.macros.users_of(made)  # the macros whose uses are expanded
        self._code()
        for macro in file.source.macros:
            self._macro(macro)

    @staticmethod
    def _is_made(body: list[Token], at: int) -> bool:
        """Does this asm of a macro's body get its text, or its operands, from elsewhere?"""
        try:
            asm = asm_statement(body, match_brackets(body), at)
        except PtxError:
            return True
        return asm is None or asm.template is None

    # ------------------------------------------------------------------------- where

    def _is_for_devices(self, offset: int) -> bool:
        """Elsewhere an asm is the processor's own."""
        function = self.file.source.function_around(offset)
        words = function.words if function else frozenset()
        return bool(words & FOR_DEVICES) or any(map(DEVICE_MACRO.match, words))

    def _defines_for_devices(self, token: Token) -> bool:
        """Is this the use of a macro, outside of functions, that makes whole functions for devices?"""
        if self.file.source.function_around(token.start) is not None:
            return False
        words = self.macros.words_of(token.text)
        return any(word in FOR_DEVICES or DEVICE_MACRO.match(word) for word in words)

    def _may_run(self, name: str) -> bool:
        """May a kernel of these files come to what has this name?"""
        if self._reached is None:
            kernels = [(s, f) for s in self.unit.sources for f in s.functions if f.is_kernel]
            used = (self.unit.used_by(source, kernel) for source, kernel in kernels)
            self._reached = {kernel.name for _, kernel in kernels}.union(*used)
        return name in self._reached

    def _code(self):
        tokens, partner = self.file.source.lexed.tokens, self.file.source.lexed.partner
        done = 0  # what is behind an expanded use
        for i, token in enumerate(tokens):
            if i < done or token.kind != "name":
                continue
            if token.text in ASM:
                after = tokens[i + 1].text if i + 1 < len(tokens) else ""
                if after in ("(", "volatile", "__volatile__", "__volatile") and self._is_for_devices(
                    token.start
                ):
                    self._statement(tokens, partner, i)
            elif self._makes(tokens, partner, i) and (
                self._is_for_devices(token.start) or self._defines_for_devices(token)
            ):
                done = self._use(tokens, partner, i)

    def _makes(self, tokens: list[Token], partner: dict[int, int], at: int) -> bool:
        """Does this use of a macro make an asm statement: itself, or by the macro that it is given?"""
        if tokens[at].text in self.made or not self.made:
            return tokens[at].text in self.made
        if tokens[at].text not in self.macros or at + 1 not in partner or tokens[at + 1].text != "(":
            return False
        given = range(at + 2, partner[at + 1])
        return any(tokens[k].text in self.made and tokens[k + 1].text != "(" for k in given)

    # ------------------------------------------------------------------------- edits

    def _statement(self, tokens: list[Token], partner: dict[int, int], at: int):
        """Replace an asm statement of the file's code."""
        try:
            asm = _parsed(tokens, partner, at)
            if asm is None:
                last = self._closing(tokens, partner, at)
                return self._expanded(tokens, at, last + 1)
            pieces = _pieces(asm)
        except PtxError as error:
            return self._refused(tokens[at], self._closing(tokens, partner, at), str(error))
        self._replace(tokens, asm, pieces, in_macro=False)

    @staticmethod
    def _closing(tokens: list[Token], partner: dict[int, int], at: int) -> int:
        opening = next((i for i in range(at + 1, min(at + 4, len(tokens))) if tokens[i].text == "("), at)
        return partner.get(opening, at)

    def _refused(self, token: Token, last: int, why: str):
        """An error of the file, or of the code when it runs."""
        function = self.file.source.function_around(token.start)
        why = WHY.format(why)
        if function is None or self._must_be_known(function, token):
            self.file.gpu_only(token, why)
            return
        tokens = self.file.source.lexed.tokens
        line = self.file.source.lexed.position(token.start)[0]
        lines = self.file.text.count("\n", token.start, tokens[last].end)
        self.file.edit(token.start, tokens[last].end, self._ends(line, why) + "\n" * lines)

    def _must_be_known(self, function: Function, token: Token) -> bool:
        """Is this an error of the file? Not if a macro decides about it, and its name says little, as of a method."""
        if function.scope and self.file.source.lexed.is_undecided(token.start):
            return False
        return self._may_run(function.name) or "operator" in function.words

    def _ends(self, line: int, why: str) -> str:
        name = quoted(os.path.basename(self.file.source.path))
        return f'::cuda_host::refuse("{name}:{line}: {_quotable(why)}")'

    def _replace(self, tokens: list[Token], asm: Asm, pieces: list, in_macro: bool):
        start, end = tokens[asm.first].start, tokens[asm.last].end

        def text() -> str:
            whole = "".join(
                piece
                if isinstance(piece, str)
                else self.file.render(tokens[piece[0]].start, tokens[piece[1] - 1].end)
                for piece in pieces
            )
            left = self.file.text.count("\n", start, end) - whole.count("\n")
            return whole + ("\\\n" if in_macro else "\n") * left

        self.file.edit(start, end, text)

    def _use(self, tokens: list[Token], partner: dict[int, int], at: int) -> int:
        """Replace the use of a macro that makes an asm statement. Returns the index behind it."""
        try:
            end = self.macros.end_of_use(tokens, partner, at)
        except PtxError as error:
            self._refused(tokens[at], at, str(error))
            return at + 1
        if end > at:
            self._expanded(tokens, at, end)
        return max(end, at + 1)

    def _expanded(self, tokens: list[Token], at: int, end: int):
        try:
            text = " ".join(token.text for token in self.macros.expand(tokens[at:end]))
            made = _rewritten(of_text(text, self.unit.types, False))
        except PtxError as error:
            return self._refused(tokens[at], end - 1, str(error))
        lines = self.file.text.count("\n", tokens[at].start, tokens[end - 1].end)
        self.file.edit(tokens[at].start, tokens[end - 1].end, made + "\n" * lines)

    def _macro(self, macro: Directive):
        """Replace the asm statements of a macro's body. One that is expanded at its uses stays as it is."""
        name, body = macro.tokens[0].text, macro_body(macro)
        if name in self.made:
            return
        partner = match_brackets(body)
        for i, token in enumerate(body):
            if token.text not in ASM:
                continue
            try:
                asm = _parsed(body, partner, i)
                if asm is None:
                    raise PtxError(MADE)
                self._replace(body, asm, _pieces(asm), in_macro=True)
            except PtxError as error:
                self._refused_in_macro(name, body, i, self._closing(body, partner, i), str(error))

    def _refused_in_macro(self, name: str, body: list[Token], at: int, last: int, why: str):
        if self._may_run(name):
            self.file.gpu_only(body[at], WHY.format(why))
            return
        line = self.file.source.lexed.position(body[at].start)[0]
        start, end = body[at].start, body[last].end
        splices = "\\\n" * self.file.text.count("\n", start, end)
        self.file.edit(start, end, self._ends(line, WHY.format(why)) + splices)


def _quotable(text: str) -> str:
    return text.replace("\\", "/").replace('"', "'").replace("\n", " ")


def _parsed(tokens: list[Token], partner: dict[int, int], at: int) -> Asm | None:
    """The statement, or None if a macro makes a part of it."""
    try:
        asm = asm_statement(tokens, partner, at)
    except PtxError:
        return None
    return asm if asm is not None and asm.template is not None else None


def _pieces(asm: Asm) -> list:
    given = ([(constraint, (a, b)) for constraint, a, b in part] for part in (asm.outputs, asm.inputs))
    return as_cpp(asm.template or "", *given)


def _rewritten(text: str) -> str:
    """Expanded text, with its asm statements as C++."""
    tokens = [item for item in tokens_and_directives(text) if isinstance(item, Token)]
    partner = match_brackets(tokens)
    edits: list[tuple[int, int, list]] = []
    for i, token in enumerate(tokens):
        if token.text in ASM:
            asm = _parsed(tokens, partner, i)
            if asm is None:
                raise PtxError(MADE)
            edits.append((token.start, tokens[asm.last].end, _pieces(asm)))
    done, at = "", 0
    for start, end, pieces in edits:
        done += text[at:start] + "".join(
            piece if isinstance(piece, str) else text[tokens[piece[0]].start : tokens[piece[1] - 1].end]
            for piece in pieces
        )
        at = end
    return done + text[at:]
