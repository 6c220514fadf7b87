"""What a CUDA source file contains: its functions, kernel launches, shared variables, local includes.

Tokens and brackets come from the lexer, which nothing confuses; the shape of a launch, an expression, comes
from tree-sitter's CUDA grammar, and is believed only where the brackets agree. What cannot be located
reliably becomes a `Problem`, never a silent omission: every `<<<` and every `__global__` that the lexer
sees must be accounted for.
"""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import tree_sitter
import tree_sitter_cuda

from ..files import read
from .lexer import CLOSING, IS_DEFINED, OPENING, Directive, Lexed
from .tokens import (
    can_precede_expression,
    class_name,
    head_name,
    launch_openings,
    macro_body,
    mask,
    match_brackets,
    parameters_after,
    position_from,
    scope_name,
    split_commas,
    surroundings,
    tidy,
)

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def parse(masked: str):
    """tree-sitter's root node for text that the lexer's mask() made."""
    return _PARSER.parse(masked.encode("latin-1")).root_node


class Problem(NamedTuple):
    """Why a file cannot be rewritten, in words that tell its author what to do."""

    path: str
    line: int
    column: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}:{self.column}: error: {self.text}"


class Parameter(NamedTuple):
    type: str
    name: str


class Function(NamedTuple):
    """A function definition outside other functions. Offsets are into the text."""

    name: str  # without scope and template arguments
    words: frozenset[str]  # every word of its head: __global__, static, the return type, ...
    parameters: tuple[Parameter, ...]
    head: int  # its first token
    at: int  # its name
    body: int  # its `{`
    end: int  # just after its `}`
    member: bool  # defined inside a class
    scope: str  # the class that it is a member of, "" if of none

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_device_only(self) -> bool:
        return self.is_kernel or ("__device__" in self.words and "__host__" not in self.words)


class Launch(NamedTuple):
    """callee<template arguments> <<<grid, block, shared memory, stream>>> (arguments)"""

    kernel: str  # the callee's plain name; "" for a kernel called through an expression
    line: int
    grid: str
    block: str
    shmem: str
    stream: str
    arguments: tuple[str, ...]
    template_arguments: str
    function: str  # the function that it stands in; "" in a macro's body
    start: int  # offsets: the whole launch,
    chevrons: tuple[int, int]  # <<<...>>>,
    config: tuple[int, int]  # what is between them,
    end: int


class Source:
    """One file, read and understood. `problems` says what stands in the way of building it for the host."""

    def __init__(self, text: str, path: str, defined: dict[str, int] = IS_DEFINED):
        self.text, self.path, self.defined = text, path, defined
        self.lexed = Lexed(text, defined)
        self.functions: list[Function] = []
        self.classes: dict[str, list[tuple[int, int]]] = {}  # name -> token ranges of its bodies
        self.declared: list[tuple[int, int]] = []  # token ranges of heads: declarations and definitions
        self.problems: list[Problem] = []
        self.lost_launches: list[Problem] = []  # those of the problems that are a `<<<` not made out
        self._outline(0, len(self.lexed.tokens), inside="")
        self.macros = [d for d in self.lexed.directives if d.word == "define" and d.tokens]
        self.launches = self._launches() + [x for macro in self.macros for x in self._macro_launches(macro)]
        self._check_kernels()

    @functools.cached_property
    def defined_at(self) -> set[int]:
        """Where the names of its functions stand that it defines."""
        return {function.at for function in self.functions}

    def problem(self, offset: int, text: str):
        self.problems.append(Problem(self.path, *self.lexed.position(offset), text))

    def function_around(self, offset: int) -> Function | None:
        return next((f for f in self.functions if f.body <= offset < f.end), None)

    def includes(self, angles: bool = False):
        """Names of the quoted includes, in order; with `angles`, of those in <> too."""
        for directive in self.lexed.directives:
            if directive.word != "include" or not directive.tokens:
                continue
            first, last = directive.tokens[0], directive.tokens[-1]
            if first.kind == "string":
                yield first.text[1:-1]
            elif angles and first.text == "<" and last.text == ">":
                yield self.text[first.end : last.start].strip()

    # ------------------------------------------------------------------------------- functions

    def _outline(self, index: int, end: int, inside: str):
        """Walk one namespace's body, or class `inside`'s: note the functions in it, enter the scopes in it."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        head = index
        while index < end:
            text = tokens[index].text if tokens[index].kind == "punct" else ""
            if text in (";", "}"):
                if text == ";" and head_name(tokens, partner, head, index) is not None:
                    self.declared.append((head, index))
                index = head = index + 1
            elif text == "{":
                close = partner.get(index)
                if close is None:  # an imbalance; what follows is anybody's guess
                    return
                if self._braces(head, index, close, inside):
                    head = close + 1
                index = close + 1
            elif text in ("(", "["):
                index = partner.get(index, index) + 1
            elif text == ":" and tokens[index - 1].text in ("public", "private", "protected"):
                index = head = index + 1
            else:
                index += 1

    def _braces(self, head: int, index: int, close: int, inside: str) -> bool:
        """Understand `head {`; False if the braces are only part of what is being declared."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        words = {token.text for token in tokens[head:index]}
        name = head_name(tokens, partner, head, index)
        if name is not None:
            self.declared.append((head, index))
            parameters = self._parameters(*parameters_after(tokens, partner, name, index))
            self.functions.append(
                Function(
                    tokens[name].text,
                    frozenset(words),
                    tuple(parameters),
                    tokens[head].start,
                    tokens[name].start,
                    tokens[index].start,
                    tokens[close].end,
                    bool(inside),
                    inside or scope_name(tokens, name),
                )
            )
            return True
        scope = class_name(tokens, partner, head, index)
        if "namespace" in words or (tokens[index - 1].kind == "string" and "extern" in words):
            self._outline(index + 1, close, inside)
            return True
        if scope is not None:
            self.classes.setdefault(scope, []).append((index, close))
            self._outline(index + 1, close, inside=scope or "?")
        return False

    def _parameters(self, index: int, end: int):
        for first, last in split_commas(self.lexed.tokens, self.lexed.partner, index, end):
            tokens = self.lexed.tokens[first:last]
            stop = next((i for i, t in enumerate(tokens) if t.text == "="), len(tokens))
            names = [i for i, t in enumerate(tokens[:stop]) if t.kind == "name"]
            if not names or (tokens[0].text == "void" and stop == 1):
                continue
            at = names[-1]
            for i, token in enumerate(tokens[: stop - 1]):  # type (*name)(...), type (&name)[n]
                if token.text == "(" and tokens[i + 1].text in "*&" and i + 2 in names:
                    at = i + 2
                    break
            others = [token for token in tokens[:stop] if token is not tokens[at]]
            type_text = mask(others, others[0].start, others[-1].end) if others else ""
            yield Parameter(tidy(type_text), tokens[at].text)

    def _check_kernels(self):
        """Every live `__global__` must belong to a head that was understood."""
        lexed = self.lexed
        for index, token in enumerate(lexed.tokens):
            if token.text != "__global__" or token.kind != "name":
                continue
            if index and lexed.tokens[index - 1].text == "]":
                self.problem(token.start, "a kernel that is a lambda; write it as a named function")
            elif not any(first <= index < last for first, last in self.declared):
                self.problem(
                    token.start,
                    "__global__ here is no function definition that can be followed; "
                    "write the kernel as a plain function at namespace scope",
                )
        for macro in self.macros:
            for token in macro_body(macro):
                if token.text == "__global__" and token.kind == "name":
                    self.problem(
                        token.start,
                        "__global__ inside a macro; write the kernel outside (a template can "
                        "take the macro's place)",
                    )
        for function in self.functions:
            if not function.is_kernel:
                continue
            if function.member:
                self.problem(function.at, "a kernel that is a member function; CUDA has none")
            for imbalance in lexed.imbalances:
                if function.head < imbalance.end and imbalance.start < function.end:
                    self.problem(
                        max(imbalance.start, function.head),
                        f"brackets of kernel {function.name} do not surely match; where preprocessor "
                        "branches open different ones, close them in each branch",
                    )
                    break

    # -------------------------------------------------------------------------------- launches

    def _launches(self) -> list[Launch]:
        lexed, found = self.lexed, []
        for launch, at in self._find_launches(lexed.tokens, lexed.partner):
            if launch is None:
                text = "cannot make out this kernel launch; write it as a statement `kernel<<<...>>>(...);`"
                self._lost_launch(at, text)
                continue
            found.append(launch)
            function = self.function_around(at)
            if function and function.is_device_only:
                text = f"dynamic parallelism: {function.name} runs on the GPU itself; launch from host code"
                self.problem(launch.start, text)
        return found

    def _macro_launches(self, macro: Directive) -> list[Launch]:
        """Launches in a #define's body."""
        tokens, found = macro_body(macro), []
        for launch, at in self._find_launches(tokens, match_brackets(tokens)):
            what = f"launch in macro {macro.tokens[0].text}; write the launch outside the macro"
            if launch is None:
                self._lost_launch(at, f"cannot make out the kernel {what}")
            elif any(
                t.text in ("#", "##") and launch.start <= t.end and t.start <= launch.end for t in tokens
            ):
                self._lost_launch(at, f"# or ## inside the kernel {what}")
            else:
                found.append(launch)
        return found

    def _lost_launch(self, at: int, text: str):
        self.problem(at, text)
        self.lost_launches.append(self.problems[-1])

    def _find_launches(self, tokens, partner):
        """For each `<<<` the launch, or None, and its offset. First all is parsed together, because context
        helps; then, where some macro confused the parser, the statement or macro argument alone."""
        openings = launch_openings(tokens)
        whole = self._parse_statements(tokens) if openings else None
        for index in openings:
            at = tokens[index].start
            launch = self._locate(*whole, at, tokens, partner)
            for first, last in surroundings(tokens, partner, index):
                if launch is None:
                    part = self._parse_statements(tokens[first:last])
                    launch = self._locate(*part, at, tokens, partner)
            yield launch, at

    def _parse_statements(self, tokens):
        """Syntax tree of these tokens, and what to add to its offsets to get the text's."""
        start, before = (tokens[0].start, "void f(){") if tokens is not self.lexed.tokens else (0, "")
        root = parse(before + mask(tokens, start, tokens[-1].end) + (";}" if before else ""))
        return root, start - len(before)

    def _locate(self, root, shift: int, at: int, tokens, partner) -> Launch | None:
        """The launch whose `<<<` is at `at`, if the grammar knows it and the brackets agree."""
        node = root.descendant_for_byte_range(at - shift, at - shift + 2)
        while node is not None and node.type != "kernel_call_syntax":
            node = node.parent
        if node is None or node.start_byte + shift != at or node.parent.type != "call_expression":
            return None
        call = node.parent
        callee, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if callee is None or arguments is None or node.children[-1].type != ">>>":
            return None
        start, end = call.start_byte + shift, call.end_byte + shift
        config = node.children[0].end_byte + shift, node.children[-1].start_byte + shift
        first = position_from(tokens, start)
        opening = position_from(tokens, arguments.start_byte + shift)
        closing = position_from(tokens, end - 1)
        if partner.get(opening) != closing or tokens[closing].start != end - 1:
            return None
        if first and not can_precede_expression(tokens[first - 1]):
            return None
        # every bracket of a part closes within that part
        for low, high in ((start, at), config, (arguments.start_byte + shift, end)):
            inside = range(position_from(tokens, low), position_from(tokens, high))
            brackets = [i for i in inside if tokens[i].text in OPENING or tokens[i].text in CLOSING]
            if not all(i in partner and partner[i] in inside for i in brackets):
                return None
        return self._launch(node, shift)

    def _launch(self, node, shift: int) -> Launch:
        """Of a <<<...>>> node, whose parent is the call."""

        def text(child) -> str:
            return tidy(self.text[child.start_byte + shift : child.end_byte + shift])

        def texts(parent) -> list[str]:
            return [text(c) for c in parent.named_children if c.type not in ("comment", "ERROR")]

        call = node.parent
        name, templates = call.child_by_field_name("function"), ""
        while name.type == "qualified_identifier":
            name = name.child_by_field_name("name")
        if name.type in ("template_function", "template_method"):
            templates = text(name.child_by_field_name("arguments"))[1:-1].strip()
            name = name.child_by_field_name("name")
        function = self.function_around(node.start_byte + shift)
        start = call.start_byte + shift
        return Launch(
            text(name) if name.type in ("identifier", "field_identifier") else "",
            self.lexed.position(start)[0],
            *(texts(node) + [""] * 4)[:4],
            tuple(texts(call.child_by_field_name("arguments"))),
            templates,
            function.name if function else "",
            start,
            (node.start_byte + shift, node.end_byte + shift),
            (node.children[0].end_byte + shift, node.children[-1].start_byte + shift),
            call.end_byte + shift,
        )


def local_headers(source: Source, folder: str, name: str, find=None) -> dict[str, Source]:
    """The headers that `source` (file `name` in `folder`) includes by quotes and that lie in the folder.

    Keyed by their path relative to the folder, in order of first inclusion, theirs included. `find` tells which file
    of the folder, if any, an include means that names none beside its own file.
    """
    found: dict[str, Source] = {}

    def visit(source: Source, name: str):
        for include in source.includes(angles=find is not None):
            relative = os.path.normpath(os.path.join(os.path.dirname(name), include))
            outside = os.path.isabs(include) or relative.split(os.sep)[0] == os.pardir
            if outside or not os.path.isfile(os.path.join(folder, relative)):
                relative = find(include) if find else None
            if relative is None or relative in found:
                continue
            path = os.path.join(folder, relative)
            found[relative] = Source(read(path), path, source.defined)
            visit(found[relative], relative)

    visit(source, name)
    return found
