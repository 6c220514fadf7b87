"""Where the layers of a prototxt text stand. What is in them, protobuf reads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<skip>[ \t\r\n,;:]+|\#[^\n]*)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[{}<>]|[^\s{}<>"'#:,;]+"""
)


@dataclass
class Block:
    """`layer { ... }`, or `layers` as the older form has it: the offsets of its inside, its name and type."""

    word: str
    start: int
    end: int = 0
    name: str = ""
    type: str = ""

    def inside(self, text: str) -> str:
        """What stands in the braces, on the lines where it stands in the text."""
        return "\n" * text.count("\n", 0, self.start) + text[self.start : self.end]


def blocks(text: str) -> Iterator[Block]:
    """The layers of a text; none if the text is the inside of one. ValueError if its braces do not match."""
    depth, word, block = 0, "", None
    for at, token in _tokens(text):
        if token in "{<":
            if depth == 0 and word in ("layer", "layers"):
                block = Block(word, at + 1)
            depth += 1
        elif token in "}>":
            depth -= 1
            if depth < 0:
                raise ValueError(f"line {_line(text, at)}: '{token}' closes nothing")
            if depth == 0 and block is not None:
                block.end = at
                yield block
                block = None
        elif depth == 1 and block is not None and word in ("name", "type"):
            setattr(block, word, token.strip("\"'"))
            token = ""  # a value: not the name of what comes next
        word = token
    if depth:
        raise ValueError(f"line {_line(text, len(text))}: {depth} '}}' missing at the end")


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"line {_line(text, at)}: a string without its end")
        if match["skip"] is None:
            yield at, match[0]
        at = match.end()


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
