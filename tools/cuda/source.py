"""The content of a CUDA source file: its functions, kernel launches, classes and local includes.

Tokens and brackets come from the lexer, which macros cannot confuse. Launches are parsed by tree-sitter's CUDA
grammar, and a result counts only if it agrees with the brackets. Nothing is left out silently: every `<<<` and every
`__global__` that cannot be located reliably becomes a `RewriteProblem`.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from ..files import read
from .conditions import HOST_BUILD, Directive, Token
from .launches import Launch, find_launches
from .lexer import Lexed
from .outline import Outline
from .tokens import macro_body, match_brackets


class RewriteProblem(NamedTuple):
    """The reason why a file cannot be rewritten. The text tells its author what to do."""

    path: str
    line: int
    column: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}:{self.column}: error: {self.text}"


def _shared_places(tokens: list[Token]) -> Iterator[int]:
    """The index of each `extern` that declares shared memory."""
    for i, token in enumerate(tokens):
        if token.text != "extern":
            continue
        end = next((k for k in range(i, len(tokens)) if tokens[k].text in (";", "{")), len(tokens))
        if any(t.text == "__shared__" for t in tokens[i:end]):
            yield i


def _first_joined(tokens: list[Token], start: int) -> int:
    """Where `name_##type##_kernel<<<...>>>` begins, if the parser saw the launch begin at `start`."""
    first = next(i for i, token in enumerate(tokens) if token.end > start)
    if tokens[first].text == "##":
        first += 1
    while first > 1 and tokens[first - 1].text == "##":
        first -= 2
    return tokens[first].start


class Source(Outline):
    """One parsed file."""

    def __init__(self, text: str, path: str, defined: Mapping[str, int] = HOST_BUILD):
        super().__init__(Lexed(text, defined))
        self.text, self.path, self.defined = text, path, defined
        self.macros = [d for d in self.lexed.directives if d.word == "define" and d.tokens]

    @cached_property
    def defined_at(self) -> set[int]:
        """The offsets of the names of all functions that the file defines."""
        return {function.at for function in self.functions}

    @cached_property
    def volatile(self) -> set[str]:
        """The names of volatile memory, and of functions that read it."""
        tokens, names = self.lexed.tokens, {"volatile"}
        for i, token in enumerate(tokens):
            if token.text != "volatile":
                continue
            for j in range(i + 1, min(i + 12, len(tokens) - 1)):
                if tokens[j].kind == "name" and tokens[j + 1].text in (";", ",", ")", "=", "["):
                    names.add(tokens[j].text)
                    break
            around = self.function_around(token.start)
            if around is not None and not around.is_kernel:
                names.add(around.name)
        for function in self.functions:
            if not function.is_kernel and any("volatile" in p.type.split() for p in function.parameters):
                names.add(function.name)
        return names

    def includes(self, angles: bool = False):
        """The names of the includes in quotes, in order. With `angles`, also of those in <>."""
        for directive in self.lexed.directives:
            name = self.included(directive)
            in_quotes = bool(directive.tokens) and directive.tokens[0].kind == "string"
            if directive.word == "include" and name is not None and (angles or in_quotes):
                yield name

    def included(self, directive: Directive) -> str | None:
        """The name that an #include has in quotes or in <>; None if a macro has it."""
        if not directive.tokens:
            return None
        first, last = directive.tokens[0], directive.tokens[-1]
        if first.kind == "string":
            return first.text[1:-1]
        is_angle = first.text == "<" and last.text == ">"
        return self.text[first.end : last.start].strip() if is_angle else None

    @cached_property
    def dynamic_shared(self) -> set[str]:
        """The names by which code comes to an `extern __shared__`: functions, classes, macros, or the variables."""
        names = {m.tokens[0].text for m in self.macros if list(_shared_places(macro_body(m)))}
        tokens = self.lexed.tokens
        for i in _shared_places(tokens):
            around = self.function_around(tokens[i].start)
            classes = [n for n, found in self.classes.items() if any(a <= i <= b for a, b in found)]
            end = next((k for k in range(i, len(tokens)) if tokens[k].text == ";"), i)
            own = {tokens[k].text for k in range(i, end - 1) if tokens[k + 1].text == "["}
            names |= {around.name} | set(classes) if around else set(classes) or own
        return names

    @property
    def launches(self) -> list[Launch]:
        return self._launches[0]

    @property
    def lost_launches(self) -> list[RewriteProblem]:
        """The problems that are a `<<<` of no known launch."""
        return self._launches[1]

    @cached_property
    def problems(self) -> list[RewriteProblem]:
        """The reasons that the file cannot be built for the host. The rewriter finds others."""
        return [
            *self.lost_launches,
            *self._dynamic_parallelism(),
            *self._lost_kernels(),
            *self._bad_kernels(),
        ]

    def problem(self, offset: int, text: str) -> RewriteProblem:
        return RewriteProblem(self.path, *self.lexed.position(offset), text)

    # Launches are found at their first use, because many tools only read a file's functions.
    @cached_property
    def _launches(self) -> tuple[list[Launch], list[RewriteProblem]]:
        launches, lost = [], []
        for launch, at in find_launches(self, self.lexed.tokens, self.lexed.partner):
            if launch is None:
                text = "cannot parse this kernel launch; write it as a statement `kernel<<<...>>>(...);`"
                lost.append(self.problem(at, text))
            else:
                launches.append(launch)
        for macro in self.macros:
            tokens = macro_body(macro)
            for launch, at in find_launches(self, tokens, match_brackets(tokens)):
                place = f"launch in macro {macro.tokens[0].text}; write the launch outside the macro"
                inside = (t for t in tokens if launch and launch.start <= t.end and t.start <= launch.end)
                if launch is None:
                    lost.append(self.problem(at, f"cannot parse the kernel {place}"))
                elif any(token.text == "#" for token in inside):
                    lost.append(self.problem(at, f"# inside the kernel {place}"))
                else:
                    launches.append(launch._replace(start=_first_joined(tokens, launch.start)))
        return launches, lost

    def _dynamic_parallelism(self) -> Iterator[RewriteProblem]:
        for launch in self.launches:
            function = self.function_around(launch.start)
            in_macro = any(macro.start <= launch.start < macro.end for macro in self.macros)
            if function and function.is_device_only and not in_macro:
                text = f"dynamic parallelism: {function.name} runs on the GPU itself; launch from host code"
                yield self.problem(launch.start, text)

    def _lost_kernels(self) -> Iterator[RewriteProblem]:
        """Every live `__global__` that belongs to no known function."""
        tokens = self.lexed.tokens
        for index, token in enumerate(tokens):
            if token.text != "__global__" or token.kind != "name":
                continue
            if index and tokens[index - 1].text == "]":
                yield self.problem(token.start, "a kernel that is a lambda; write it as a named function")
            elif not any(first <= index < last for first, last in self.declared):
                text = "__global__ here is not a function definition that can be parsed; "
                yield self.problem(
                    token.start, f"{text}write the kernel as a plain function at namespace scope"
                )

    def _bad_kernels(self) -> Iterator[RewriteProblem]:
        """Every known kernel that cannot be built."""
        for function in (function for function in self.functions if function.is_kernel):
            if function.member:
                yield self.problem(function.at, "a kernel that is a member function; CUDA has none")
            for imbalance in self.lexed.imbalances:
                if function.head < imbalance.end and imbalance.start < function.end:
                    text = f"brackets of kernel {function.name} may not match; if preprocessor "
                    text += "branches open different ones, close them in each branch"
                    yield self.problem(max(imbalance.start, function.head), text)
                    break


MOST_SECONDS = 60.0  # of the processor's time, to read a file with its headers


class TooLong(OSError):
    """Reading takes too long."""

    def __init__(self, count: int):
        text = f"it and its {count} headers are not read after {MOST_SECONDS:g} s; include less"
        super().__init__(errno.ETIME, f'{text}, or build for CUDA only (backends="cuda", BACKENDS=cuda)')

    def __str__(self):
        return self.strerror


class Clock:
    """Ends the reading of a file with its headers with an error that says so, and never waits on."""

    def __init__(self):
        self.end = time.process_time() + MOST_SECONDS

    def check(self, count: int):
        """
        Raises:
            TooLong: the time is over.
        """
        if time.process_time() > self.end:
            raise TooLong(count)


def local_headers(
    source: Source, folder: str, name: str, find=None, clock: Clock | None = None
) -> dict[str, Source]:
    """The headers in `folder` that `source` (file `name` in this folder) includes directly or indirectly, in quotes.

    Returns {path relative to the folder: source}, in order of first inclusion. An include may name no file beside the
    including file. `find` then returns the path of the file in the folder, or None.
    """
    headers: dict[str, Source] = {}

    def visit(source: Source, name: str):
        for include in source.includes(angles=find is not None):
            relative = os.path.normpath(os.path.join(os.path.dirname(name), include))
            outside = os.path.isabs(include) or relative.split(os.sep)[0] == os.pardir
            if outside or not os.path.isfile(os.path.join(folder, relative)):
                relative = find(include) if find else None
            if relative is None or relative in headers:
                continue
            path = os.path.join(folder, relative)
            if clock is not None:
                clock.check(len(headers))
            headers[relative] = Source(read(path), path, source.defined)
            visit(headers[relative], relative)

    visit(source, name)
    return headers
