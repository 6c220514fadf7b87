"""Split C++/CUDA text into what the preprocessor sees: tokens, directives, brackets.

All other modules use the lexer, because macros cannot confuse it. It knows only comments, (raw) strings, characters,
line continuations and preprocessor lines.

The text is latin-1: one character is one byte. So an index is also tree-sitter's byte offset, and a comment in GBK or
a stray byte is not an error.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from .brackets import CLOSING, OPENING
from .branches import Choice, choose
from .conditions import HOST_BUILD, Directive, Token, evaluate
from .names import ATOMIC

# The blanks before a token are its own, and what is frequent is tried first: so reading takes half the time.
TOKEN = re.compile(
    r"""
      [ \t\r\f\v]* (?:
      (?P<name>    (?!(?:u8|[uUL])?R?["'])[A-Za-z_$\x80-\xff][\w$\x80-\xff]* )
    | (?P<newline> \n )
    | (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<string>  (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
                 | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<char>    (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
    | (?P<rest>    [A-Za-z_$\x80-\xff][\w$\x80-\xff]* )
    | (?P<number>  \.?\d(?:[eEpP][+-]|'\w|[\w.])* )
    | (?P<splice>  \\\r?\n )
    | (?P<punct>   <<=|>>=|<<|>>|::|->|\#\#|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|\.\.\.|\S ) )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
BLANKS = " \t\r\f\v"


class Imbalance(NamedTuple):
    """A conditional whose branches leave different brackets open, or a bracket with no partner."""

    start: int
    end: int


class Lexed:
    """The live part of a text, which a host compiler may see. If an #if is undecided, all its branches are live.

    tokens      live tokens outside directives, in order
    partner     index of a bracket token -> index of the matching bracket
    directives  live directives without the conditionals
    conditions  live #if, #ifdef, #ifndef and #elif
    choices     how conditions that ask for nvcc are read (branches.py), by their offsets
    undecided   the parts of the text that an #if decides whose macros are not known
    imbalances  places where the brackets may not match
    """

    def __init__(self, text: str, defined: Mapping[str, int] = HOST_BUILD):
        self.text, self._defined = text, defined
        self.tokens: list[Token] = []
        self.partner: dict[int, int] = {}
        self.directives: list[Directive] = []
        self.conditions: list[Directive] = []
        self.imbalances: list[Imbalance] = []
        self.undecided: list[tuple[int, int]] = []
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        every = list(tokens_and_directives(text))
        self.choices = choose(every, defined) if defined.get("CAFFE_HOST_BACKEND") else {}
        self._keep_live(every)

    @cached_property
    def may_wait(self) -> list[int]:
        return may_wait(self.tokens)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset. Both count from 1."""
        line = bisect_right(self._newlines, offset - 1)
        return line + 1, offset - (self._newlines[line - 1] if line else -1)

    def value(self, directive: Directive) -> int | None:
        """The value of a condition, or None if it depends on macros that are not known."""
        choice = self.choices.get(directive.start, Choice(self._defined, 0))
        return 1 if directive.word == "else" else evaluate(directive, choice.defined, choice.arch)

    def is_undecided(self, offset: int) -> bool:
        return any(start <= offset < end for start, end in self.undecided)

    def _keep_live(self, items):
        """Leave out dead branches, and match the brackets of every live branch."""
        stack: list[int] = []  # open brackets, as token indices
        guards = {
            first.start
            for first, second in pairwise(items)
            if type(first) is Directive and first.word == "ifndef" and _is_guard(first, second)
        }
        conditionals: list[_Conditional] = []
        tokens, live = self.tokens, True
        for item in items:
            if isinstance(item, Token):
                if live and item.kind == "punct":
                    self._match(item, stack)
                elif live:
                    tokens.append(item)
            elif item.word in ("if", "ifdef", "ifndef"):
                if live:
                    self.conditions.append(item)
                conditionals.append(_Conditional(item, live, stack, self.value(item), self._refused(item)))
                live = conditionals[-1].live
            elif item.word in ("elif", "else", "endif") and conditionals:
                self._next_branch(item, conditionals, stack, guards)
                live = not conditionals or conditionals[-1].live
            elif live:
                self.directives.append(item)
        self.imbalances += [Imbalance(tokens[i].start, len(self.text)) for i in stack]

    def _next_branch(
        self, item: Directive, conditionals: list[_Conditional], stack: list[int], guards: set[int]
    ):
        """Read an #elif, #else or #endif."""
        top = conditionals[-1]
        if top.live:
            top.exits.append(list(stack))
        if item.word != "endif":
            if top.outer and item.word == "elif":
                self.conditions.append(item)
            top.next_branch(item, self.value(item), self._refused(item))
            stack[:] = top.entry
            return
        conditionals.pop()
        if top.doubt is not None and top.start not in guards:
            self.undecided.append((top.doubt, item.end))
        exits = top.exits + ([] if top.decided or not top.outer else [top.entry])
        stack[:] = exits[0] if exits else top.entry
        shapes = {tuple(self.tokens[i].text for i in exit) for exit in exits}
        if len(shapes) > 1:
            self.imbalances.append(Imbalance(top.start, item.end))

    def _refused(self, directive: Directive) -> bool:
        """Does the branch end with an error when it runs? Then nothing in it is live."""
        choice = self.choices.get(directive.start)
        return choice is not None and choice.refused is not None and choice.refused[0] == directive.end

    def _match(self, token: Token, stack: list[int]):
        index = len(self.tokens)
        self.tokens.append(token)
        if token.text in OPENING:
            stack.append(index)
        elif token.text in CLOSING:
            opening = CLOSING[token.text]
            if token.text == "}":  # parentheses that are open in the braces were forgotten
                while stack and self.tokens[stack[-1]].text != opening:
                    unmatched = self.tokens[stack.pop()]
                    self.imbalances.append(Imbalance(unmatched.start, token.end))
            if stack and self.tokens[stack[-1]].text == opening:
                self.partner[index] = stack[-1]
                self.partner[stack.pop()] = index
            else:
                self.imbalances.append(Imbalance(token.start, token.end))


def may_wait(tokens: list[Token]) -> list[int]:
    """The indices of loops and of what may be atomics, by which a thread may wait for another one."""
    return [i for i, token in enumerate(tokens) if token.kind == "name" and _may_wait(token.text)]


@lru_cache(maxsize=1 << 16)
def _may_wait(word: str) -> bool:
    return word in ("while", "for") or bool(ATOMIC.fullmatch(word))


def tokens_and_directives(text: str):
    """Yields the tokens and directives of the whole text in order, also of dead branches."""
    word, tokens, start = None, [], None  # the directive being read
    line_is_fresh, make = True, tuple.__new__
    for match in TOKEN.finditer(text, 0, len(text.rstrip(BLANKS))):
        kind = match.lastgroup or ""
        if kind in ("comment", "splice"):
            continue
        if kind == "newline":
            if start is not None:
                yield Directive(word or "", tokens, start, match.end() - 1)
                word, tokens, start = None, [], None
            line_is_fresh = True
            continue
        # Token(...) takes twice the time.
        token = make(Token, ("name" if kind == "rest" else kind, match[kind], match.start(kind)))
        if line_is_fresh and token.text == "#":
            start = token.start
        elif start is None:
            yield token
        elif word is None:
            word = token.text
        else:
            tokens.append(token)
        line_is_fresh = False
    if start is not None:
        yield Directive(word or "", tokens, start, len(text))


def _is_guard(first: Token | Directive, second: Token | Directive) -> bool:
    """Do these begin a header: #ifndef NAME, #define NAME?"""
    words = [
        (one.word, [t.text for t in one.tokens[:1]]) for one in (first, second) if isinstance(one, Directive)
    ]
    return len(words) == 2 and (words[0][0], words[1]) == ("ifndef", ("define", words[0][1]))


class _Conditional:
    """One #if ... #endif while it is being read."""

    def __init__(self, directive: Directive, outer: bool, stack: list[int], value: int | None, refused: bool):
        self.start, self.outer = directive.start, outer
        self.entry, self.exits = list(stack), []
        self.decided = False  # a branch is certainly compiled, so all later branches are dead
        self.doubt: int | None = None  # where the first branch begins that may be compiled or not
        self.next_branch(directive, value, refused)

    def next_branch(self, directive: Directive, value: int | None, refused: bool):
        if value is None and self.doubt is None:
            self.doubt = directive.start
        self.live = self.outer and not self.decided and value != 0 and not refused
        self.decided = self.decided or bool(value)
