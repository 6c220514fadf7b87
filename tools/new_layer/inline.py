"""What load_inline's string lacks of a layer's folder: the declarations, and launchers for kernels that have none.

    python -m tools.new_layer.inline folder/foo.cu

reads foo.cu and writes foo.h beside it. Where the file exports functions, these are declared. Where it holds kernels
alone, foo.cu also gets a launcher for each, as `make new FROM=` writes them, below all that is in it. A declaration
stands on the line of its definition, so that an error in either names the same line.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..cuda.source import Function, Source
from ..cuda.tokens import mask
from ..files import read, write
from .caffe_file import split
from .launchers import CHECKED_INT, make_launchers

# What a definition may say and a C declaration may not.
NOT_IN_C = re.compile(r"\b(__restrict__|__restrict|__host__|noexcept)\b|__attribute__\s*\(\(.*?\)\)")


# Of an extension of torch's: none of it is needed here.
OF_TORCH = re.compile(r"(torch|ATen|c10|pybind11|THC?)/|(PYBIND11_MODULE|TORCH_LIBRARY)\Z")


class NothingExported(Exception):
    """Why Python could call nothing of the file; the text is the whole message."""


def exported(source: Source) -> list[tuple[int, str]]:
    """(line, declaration) of each function that is defined as `extern "C"`."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    at = {token.start: index for index, token in enumerate(tokens)}
    blocks = [
        (tokens[i].start, tokens[partner[i + 2]].end)
        for i, token in enumerate(tokens[:-2])
        if token.text == "extern" and _is_c(tokens[i + 1]) and tokens[i + 2].text == "{" and i + 2 in partner
    ]
    found = []
    for function in source.functions:
        head = at[function.head]
        single = tokens[head].text == "extern" and _is_c(tokens[head + 1])
        within = any(start < function.head < end for start, end in blocks)
        # An inline function that nobody calls is in no archive.
        unseen = function.is_device_only or function.words & {"static", "inline"}
        if (single or within) and not unseen:
            found.append(_declaration(source, function, head + 2 * single))
    return found


def _is_c(token) -> bool:
    return token.kind == "string" and token.text == '"C"'


def _declaration(source: Source, function: Function, first: int) -> tuple[int, str]:
    """Its head as C has it, on one line."""
    tokens = [t for t in source.lexed.tokens[first:] if t.start < function.body]
    text = NOT_IN_C.sub(" ", mask(tokens, tokens[0].start, function.body))
    return source.text.count("\n", 0, function.at) + 1, " ".join(text.split()) + ";"


def header_of(declarations: list[tuple[int, str]]) -> str:
    """Each declaration on its own line; two of one line share it."""
    lines: list[str] = []
    for line, text in sorted(declarations):
        lines += [""] * (line - len(lines))
        lines[line - 1] = f"{lines[line - 1]} {text}".strip()
    return "\n".join(lines) + "\n"


def completed(name: str, text: str, path: str) -> tuple[str, str]:
    """(the header, the source with what was added to it)."""
    source = Source(text, path)
    words = (*source.includes(angles=True), *(token.text for token in source.lexed.tokens))
    if found := next(filter(OF_TORCH.match, words), None):
        raise NothingExported(
            f"{found}: torch's headers are not needed here, and are not there. Leave it out, and "
            "the functions that take or give torch::Tensor: each kernel gets a launcher"
        )
    if declarations := exported(source):
        return header_of(declarations), text
    parts = split(text, path)
    launchers, left_out = make_launchers(name, parts)
    if not launchers:
        why = "; ".join(f"{kernel} {reason}" for kernel, reason in left_out)
        raise NothingExported(
            f"no launcher could be made for its kernels: {why}" if why else
            'it has neither a function that is `extern "C"` nor a kernel (`__global__`)'
        )  # fmt: skip
    definitions = [launcher.definition() for launcher in launchers]
    if any("checked_int(" in definition for definition in definitions):
        definitions.insert(0, CHECKED_INT.strip("\n"))
    added = "\n\n".join(["", "// Made by load_inline: a launcher for each kernel.", *definitions]) + "\n"
    return "".join(f"{launcher.declaration()}\n" for launcher in launchers), text.rstrip("\n") + "\n" + added


def main(path: str) -> int:
    file = Path(path)
    try:
        header, text = completed(file.stem, read(path), path)
    except NothingExported as why:
        print(f"{path}: error: {why}", file=sys.stderr)
        return 1
    write(str(file.with_suffix(".h")), header)
    write(path, text, if_changed=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
