"""The mistakes that are put into sources, and the places where they are possible.

They are few, and the same for Python, C++ and CUDA: a changed comparison or operator, a number that is off by one, a
negated condition, a missing statement.
"""

from __future__ import annotations

import io
import random
import re
import tokenize
from dataclasses import dataclass

SWAPS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "*": "+", "/": "*",
    "%": "*", "+=": "-=", "-=": "+=", "<<": ">>", ">>": "<<", "&&": "||", "||": "&&", "and": "or", "or": "and",
    "True": "False", "False": "True", "true": "false", "false": "true", "min": "max", "max": "min", "is": "is not",
    "in": "not in", "break": "continue", "continue": "break", "first": "last", "~": "", "++": "--",
}  # fmt: skip
# Comments, strings and directives are skipped.
_CPP_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*"
    r"|[A-Za-z_]\w*|\d[\w.]*|<<<|>>>|[-+*/%<>=!&|]=|&&|\|\||<<|>>|\+\+|--|->|::|\S",
    re.MULTILINE | re.DOTALL,
)
# A statement on its own line in a body, and not a declaration.
_STATEMENT = re.compile(
    r"^[ \t]+(?!(?:return|case|using|typedef|static|virtual|inline|void|const|explicit|template|friend|extern)\b"
    r"|[\w:<>, ]+[\s*&]+\w+(?:\(.*\))?\s*;)[\w.:>\-\[\]()]+[^;{}]*;[ \t]*$",
    re.MULTILINE,
)
# Conditions of code that the host's compiler does not read, and of code that only the host's compiler reads.
_GPU_ALONE = re.compile(
    r"ifdef (__CUDACC__|__CUDA_ARCH__)|if defined\((__CUDACC__|__CUDA_ARCH__)\)|if DEPTHWISE_FAST_KERNELS"
    r"|ifndef CAFFE_HOST_BACKEND|if !defined\(CAFFE_HOST_BACKEND\)"
)
_HOST_ALONE = re.compile(r"ifdef CAFFE_HOST_BACKEND|if !DEPTHWISE_FAST_KERNELS")
# Binary operators. clang-format puts spaces around them only if they are between two values.
_BINARY = ("+", "-", "*", "/", "%", "<", ">", "<<", ">>")


@dataclass(frozen=True)
class Mutation:
    """A mistake: a piece of a file, and the text that replaces it."""

    path: str
    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def line(self, source: str) -> int:
        return source.count("\n", 0, self.start) + 1

    def shown(self, source: str) -> str:
        """The line before and after."""
        begin, end = source.rfind("\n", 0, self.start) + 1, source.find("\n", self.end)
        after = source[begin : self.start] + self.text + source[self.end : end]
        return f"{source[begin:end].strip()}   ->   {after.strip() or '(gone)'}"


def mutations(path: str, source: str) -> list[Mutation]:
    """All mistakes that are possible in a file."""
    return [*(_python if path.endswith(".py") else _cpp)(path, source)]


def host_lines(source: str) -> set[int]:
    """The numbers, from 1, of the lines of a C++ source that not only nvcc reads."""
    lines: set[int] = set()
    gpu = []  # for each open #if: True in the GPU's part, False in the host's part, None if it decides something else
    for number, line in enumerate(source.splitlines(), 1):
        directive = re.match(r"\s*#\s*((if|else|elif|endif)\w*.*)", line)
        if directive is None:
            if True not in gpu:
                lines.add(number)
        elif directive[2] == "if":
            condition = directive[1]
            gpu.append(
                True if _GPU_ALONE.match(condition) else False if _HOST_ALONE.match(condition) else None
            )
        elif directive[2] == "endif" and gpu:
            gpu.pop()
        elif gpu and gpu[-1] is not None:
            gpu[-1] = not gpu[-1]
    return lines


def _of_token(path: str, at: int, text: str, before: str):
    if text in SWAPS and not (text in "+-*~" and before in ("", "(", ",", "=", "[", "return", "<", "{", ":")):
        yield Mutation(path, at, at + len(text), SWAPS[text], f"{text} -> {SWAPS[text] or 'nothing'}")
    elif re.fullmatch(r"\d+", text):
        other = str(int(text) + 1)
        yield Mutation(path, at, at + len(text), other, "number + 1")
    elif text == "not":
        yield Mutation(path, at, at + len(text), "", "not -> nothing")


def _python(path: str, source: str):
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        at = starts[token.start[0] - 1] + token.start[1]
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER):
            if token.string in ("if", "elif"):
                end = at + len(token.string)
                yield Mutation(path, end, end, " not", "condition negated")
            # zip's strict= only asserts, so no test can notice a change.
            if not source.endswith("strict=", 0, at):
                yield from _of_token(path, at, token.string, before)
        if token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            before = token.string if token.type != tokenize.NEWLINE else ""
    for match in re.finditer(
        r"^([ \t]+)([\w.\[\]]+\([^()\n]*\)|[\w.\[\]]+ [-+|&]?= [^\n]*[^\n,(\[{\\])$", source, re.M
    ):
        yield Mutation(path, match.start(2), match.end(2), "pass", "statement gone")


def _cpp(path: str, source: str):
    host = host_lines(source)
    yield from (m for m in _cpp_anywhere(path, source) if m.line(source) in host)


def _cpp_anywhere(path: str, source: str):
    before = ""
    for match in _CPP_TOKEN.finditer(source):
        text = match.group()
        if text[0] in "#\"'" or text.lstrip().startswith("#") or text.startswith(("//", "/*")):
            continue
        has_spaces = source[match.start() - 1 : match.start()] == " " == source[match.end() : match.end() + 1]
        if text not in _BINARY or has_spaces:
            yield from _of_token(path, match.start(), text, before)
        if text == "if" and re.match(r"\s*\(", source[match.end() :]):
            at = match.end() + source[match.end() :].index("(") + 1
            yield Mutation(path, at, at, "!", "condition negated")
        before = text
    for match in _STATEMENT.finditer(source):
        text = match.group()
        yield Mutation(
            path, match.start(), match.end(), re.sub(r"\S.*", ";", text, flags=re.S), "statement gone"
        )


def sample(files: dict[str, str], number: int, seed: int) -> list[Mutation]:
    """`number` random mistakes, at most one for each line. A longer file gets more of them."""
    everything = [
        m
        for path in sorted(files)
        for m in mutations(path, files[path])
        if m.apply(files[path]) != files[path]
    ]
    random.Random(seed).shuffle(everything)
    chosen, lines = [], set()
    for mutation in everything:
        place = mutation.path, mutation.line(files[mutation.path])
        if place not in lines:
            lines.add(place)
            chosen.append(mutation)
        if len(chosen) == number:
            break
    return chosen
