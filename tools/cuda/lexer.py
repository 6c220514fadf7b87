"""Split C++/CUDA text into what the preprocessor sees: tokens, directives, brackets.

All other modules use the lexer, because macros cannot confuse it. It knows only comments, (raw) strings, characters,
line continuations and preprocessor lines.

The text is latin-1: one character is one byte. So an index is also tree-sitter's byte offset, and a comment in GBK or
a stray byte is not an error.
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

# Words that only nvcc defines. In the host build they are undefined.
NVCC_WORDS = {"__CUDACC__", "__CUDA_ARCH__", "__NVCC__", "__CUDACC_RTC__", "__CUDA_ARCH_LIST__"}
IS_DEFINED = {**dict.fromkeys(NVCC_WORDS, 0), "__cplusplus": 1}

# The value of __CUDA_ARCH__ in a kernel's `#if __CUDA_ARCH__ >= 300`, though the macro is not defined on the host: that
# of the first GPUs with shuffles. Code for older GPUs relies on warps whose threads run in step, which the host's do
# not. Branches for newer GPUs have instructions that the host lacks.
ARCH, HOST_ARCH = "__CUDA_ARCH__", 300


class Token(NamedTuple):
    kind: str  # string, char, name, number, punct
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Directive(NamedTuple):
    """One preprocessor line, with its continuation lines: `# word tokens...`."""

    word: str
    tokens: list[Token]  # after the word
    start: int
    end: int


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
    atomics     the conditionals that choose an atomic for nvcc, which the host uses, too: their values by offset
    imbalances  places where the brackets may not match
    """

    def __init__(self, text: str, defined: dict[str, int] = IS_DEFINED):
        # Such branches may have inline PTX, which the host lacks. So a file with PTX gets its oldest branches.
        self.arch = 0 if re.search(r"\b(asm|__asm__|__asm)\b", text) else HOST_ARCH
        self.text, self._defined = text, defined
        self.tokens: list[Token] = []
        self.partner: dict[int, int] = {}
        self.directives: list[Directive] = []
        self.conditions: list[Directive] = []
        self.imbalances: list[Imbalance] = []
        self._newlines = [m.start() for m in re.finditer("\n", text)]
        every = list(items(text))
        self.atomics = chosen_atomics(every)
        self._keep_live(every)

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column of an offset. Both count from 1."""
        line = bisect_right(self._newlines, offset - 1)
        return line + 1, offset - (self._newlines[line - 1] if line else -1)

    def _keep_live(self, items):
        """Leave out dead branches, and match the brackets of every live branch."""
        stack: list[int] = []  # open brackets, as token indices
        conditionals: list[_Conditional] = []
        for item in items:
            live = not conditionals or conditionals[-1].live
            if isinstance(item, Token):
                if live:
                    self._match(item, stack)
            elif item.word in ("if", "ifdef", "ifndef"):
                if live:
                    self.conditions.append(item)
                value = self.atomics.get(item.start)
                conditionals.append(_Conditional(item, live, stack, self._defined, self.arch, value))
            elif item.word in ("elif", "else", "endif") and conditionals:
                top = conditionals[-1]
                if top.live:
                    top.exits.append(list(stack))
                if item.word != "endif":
                    if top.outer and item.word == "elif":
                        self.conditions.append(item)
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


def items(text: str):
    """Yields the tokens and directives of the whole text in order, also of dead branches."""
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

    def __init__(
        self,
        directive: Directive,
        outer: bool,
        stack: list[int],
        defined: dict[str, int],
        arch: int,
        value: int | None = None,
    ):
        """`value` is that of the first condition, if it is known."""
        self.start, self.outer, self.defined, self.arch = directive.start, outer, defined, arch
        self.entry, self.exits = list(stack), []
        self.decided = False  # a branch is certainly compiled, so all later branches are dead
        self.next_branch(directive, value)

    def next_branch(self, directive: Directive, value: int | None = None):
        if value is None:
            value = 1 if directive.word == "else" else evaluate(directive, self.defined, self.arch)
        self.live = self.outer and not self.decided and value != 0
        self.decided = self.decided or bool(value)


ATOMIC = re.compile(r"atomic[A-Z]\w*\Z")
# A branch without these words is a choice within code for both compilers.
WHOLE = {"__global__", "__device__", "include"}


def chosen_atomics(listed: list[Token | Directive]) -> dict[int, int]:
    """The value for nvcc of each `#ifdef __CUDACC__` whose branch has an atomic that its #else lacks, by offset.

    The host needs the atomic, because its threads also run in parallel.
    """
    found: dict[int, int] = {}
    opened: list[
        tuple[int, int | None, list[set[str]]]
    ] = []  # (offset, value for nvcc, words of each branch)
    for item in listed:
        words = [item] if isinstance(item, Token) else item.tokens
        if isinstance(item, Directive) and item.word in ("if", "ifdef", "ifndef"):
            opened.append((item.start, _for_nvcc(item), [set()]))
        elif isinstance(item, Directive) and item.word in ("elif", "else") and opened:
            opened[-1][2].append({"elif"} if item.word == "elif" else set())
        elif isinstance(item, Directive) and item.word == "endif" and opened:
            start, value, branches = opened.pop()
            if value is None or len(branches) != 2:
                continue
            own, other = branches if value else branches[::-1]
            has = [any(map(ATOMIC.match, branch)) for branch in (own, other)]
            if has == [True, False] and not WHOLE & (own | other) and "elif" not in other:
                found[start] = value
        elif isinstance(item, Directive):
            words = [*words, Token("name", item.word, item.start)]
        for _, _, branches in opened:
            branches[-1].update(word.text for word in words)
    return found


def _for_nvcc(directive: Directive) -> int | None:
    """The value, for nvcc's device code, of a condition that only tests for nvcc."""
    words = [token.text for token in directive.tokens if token.text not in ("(", ")")]
    if directive.word == "if":
        negated = words[:1] == ["!"]
        is_plain = words[negated : negated + 1] == ["defined"] and len(words) == negated + 2
        return int(not negated) if is_plain and words[-1] in NVCC_WORDS else None
    return int(directive.word == "ifdef") if len(words) == 1 and words[0] in NVCC_WORDS else None


def compared_arch(directive: Directive) -> list[Token]:
    """The #if and #elif that use the value of __CUDA_ARCH__, not only whether it is defined."""
    if directive.word not in ("if", "elif"):
        return []
    texts = ["", "", *(token.text for token in directive.tokens)]
    return [
        token
        for i, token in enumerate(directive.tokens)
        if token.text == ARCH and "defined" not in (texts[i + 1], texts[i] * (texts[i + 1] == "("))
    ]


def evaluate(directive: Directive, defined: dict[str, int] = IS_DEFINED, arch: int = 0) -> int | None:
    """The value of an #if condition, or None if it depends on macros that are not in `defined`."""
    compared = compared_arch(directive)
    words = [str(arch) if token in compared else token.text for token in directive.tokens]
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
    """The value of the expression at the start of `words`, or None if unknown. Removes its words from the list.

    This is precedence climbing: it stops at an operator that binds no tighter than `floor`.
    """
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
    if defined.get(word) == 0:  # the preprocessor treats an undefined macro as 0
        return 0
    if words and words[0] == "(":  # a call such as __has_include(...) has no known value
        raise ValueError
    return None
