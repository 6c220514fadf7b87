"""Split C++/CUDA text into what the preprocessor would see: tokens, directives, brackets.

The lexer is the ground that everything else stands on, because it cannot be confused by macros: it knows
comments, (raw) strings, characters, line continuations and preprocessor lines, and nothing else of C++.

Text is held as latin-1: one character is one byte, so an index is also tree-sitter's byte offset, and
a comment in GBK or a stray byte is no error.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

TOKEN = re.compile(
    r"""
      (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<string>  (?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)"
                 | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" )
    | (?P<char>    (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
    | (?P<name>    [A-Za-z_$\x80-\xff][\w$\x80-\xff]* )
    | (?P<number>  \.?\d(?:[eEpP][+-]|'\w|[\w.])* )
    | (?P<newline> \n )
    | (?P<splice>  \\\r?\n )
    | (?P<punct>   <<=|>>=|<<|>>|::|->|\#\#|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|\.\.\.|\S )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}

# Words that only nvcc defines. Code that asks for one of them vanishes in the host build.
NVCC_WORDS = {"__CUDACC__", "__CUDA_ARCH__", "__NVCC__", "__CUDACC_RTC__", "__CUDA_ARCH_LIST__"}
IS_DEFINED = {**dict.fromkeys(NVCC_WORDS, 0), "__cplusplus": 1}


class Token(NamedTuple):
    kind: str  # string, char, name, number, punct
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Directive(NamedTuple):
    """One preprocessor line: `# word tokens...`, continuation lines included."""

    word: str
    tokens: list[Token]  # after the word
    start: int
    end: int


class Imbalance(NamedTuple):
    """A conditional whose branches leave different brackets open, or a bracket with no partner."""

    start: int
    end: int


class Lexed:
    """The live part of a text: what a host compiler could see, every undecided #if branch included.

    tokens      live tokens outside directives, in order
    partner     index of a bracket token -> index of the bracket that matches it
    directives  live directives
    imbalances  places where matching brackets is not certain
    """

    def __init__(self, text: str, defined: dict[str, int] = IS_DEFINED):
        self.text, self._defined = text, defined
        self.tokens: list[Token] = []
        self.partner: dict[int, int] = {}
        self.directives: list[Directive] = []
        self.imbalances: list[Imbalance] = []
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        self._keep_live(items(text))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._newlines, offset - 1)
        return line + 1, offset - (self._newlines[line - 1] if line else -1)

    def _keep_live(self, items):
        """Drop dead branches; match brackets along every branch that may be compiled."""
        stack: list[int] = []  # open brackets, as token indices
        conditionals: list[_Conditional] = []
        for item in items:
            live = not conditionals or conditionals[-1].live
            if isinstance(item, Token):
                if live:
                    self._match(item, stack)
            elif item.word in ("if", "ifdef", "ifndef"):
                conditionals.append(_Conditional(item, live, stack, self._defined))
            elif item.word in ("elif", "else", "endif") and conditionals:
                top = conditionals[-1]
                if top.live:
                    top.exits.append(list(stack))
                if item.word != "endif":
                    top.next_branch(item)
                    stack[:] = top.entry
                    continue
                conditionals.pop()
                exits = top.exits + ([] if top.decided or not top.outer else [top.entry])
                stack[:] = exits[0] if exits else top.entry
                shapes = {tuple(self.tokens[i].text for i in exit) for exit in exits}
                if len(shapes) > 1:
                    self.imbalances.append(Imbalance(top.start, item.end))
            elif live:
                self.directives.append(item)
        self.imbalances += [Imbalance(self.tokens[i].start, len(self.text)) for i in stack]

    def _match(self, token: Token, stack: list[int]):
        index = len(self.tokens)
        self.tokens.append(token)
        if token.kind != "punct":
            return
        if token.text in OPENING:
            stack.append(index)
        elif token.text in CLOSING:
            wanted = CLOSING[token.text]
            if token.text == "}":  # a brace outweighs a forgotten parenthesis
                while stack and self.tokens[stack[-1]].text != wanted:
                    lost = self.tokens[stack.pop()]
                    self.imbalances.append(Imbalance(lost.start, token.end))
            if stack and self.tokens[stack[-1]].text == wanted:
                self.partner[index] = stack[-1]
                self.partner[stack.pop()] = index
            else:
                self.imbalances.append(Imbalance(token.start, token.end))


def items(text: str):
    """Tokens and directives of the whole text, in order, dead ones included."""
    word, tokens, start = None, [], None  # the directive being read
    line_is_fresh = True
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind in ("comment", "splice"):
            continue
        if kind == "newline":
            if start is not None:
                yield Directive(word or "", tokens, start, match.start())
                word, tokens, start = None, [], None
            line_is_fresh = True
            continue
        token = Token(kind, match.group(), match.start())
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


class _Conditional:
    """One #if ... #endif while it is being read."""

    def __init__(self, directive: Directive, outer: bool, stack: list[int], defined: dict[str, int]):
        self.start, self.outer, self.defined = directive.start, outer, defined
        self.entry, self.exits = list(stack), []
        self.decided = False  # a branch was certainly taken: all further ones are dead
        self.next_branch(directive)

    def next_branch(self, directive: Directive):
        value = 1 if directive.word == "else" else evaluate(directive, self.defined)
        self.live = self.outer and not self.decided and value != 0
        self.decided = self.decided or bool(value)


def evaluate(directive: Directive, defined: dict[str, int] = IS_DEFINED) -> int | None:
    """Value of an #if condition, or None where it depends on macros that `defined` says nothing of."""
    words = [token.text for token in directive.tokens]
    if directive.word in ("ifdef", "ifndef"):
        value = defined.get(words[0]) if words else None
        return 1 - value if value is not None and directive.word == "ifndef" else value
    try:
        value = _expression(words, 0, defined)
    except (IndexError, ValueError):
        return None
    return None if words else value


_BINDING = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4}
_COMPARE = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    ">": int.__gt__,
    "<=": int.__le__,
    ">=": int.__ge__,
}


def _expression(words: list[str], floor: int, defined: dict[str, int]) -> int | None:
    """Precedence climbing over 0, 1, numbers and None (unknown); consumes `words`."""
    left = _operand(words, defined)
    while words and _BINDING.get(words[0], 0) > floor:
        operator = words.pop(0)
        right = _expression(words, _BINDING[operator], defined)
        if operator == "||":
            left = 1 if left or right else 0 if left == right == 0 else None
        elif operator == "&&":
            left = 0 if left == 0 or right == 0 else 1 if left and right else None
        else:
            left = None if left is None or right is None else int(_COMPARE[operator](left, right))
    return left


def _operand(words: list[str], defined: dict[str, int]) -> int | None:
    word = words.pop(0)
    if word == "!":
        value = _operand(words, defined)
        return None if value is None else int(not value)
    if word == "(":
        value = _expression(words, 0, defined)
        if words.pop(0) != ")":
            raise ValueError
        return value
    if word == "defined":
        name = words.pop(0)
        if name == "(":
            name = words.pop(0)
            words.pop(0)
        return defined.get(name)
    if word[0].isdigit():
        return int(word.rstrip("uUlL"), 0)
    if defined.get(word) == 0:  # a macro that is not there is 0
        return 0
    if words and words[0] == "(":  # __has_include(...) and other things to leave alone
        raise ValueError
    return None
