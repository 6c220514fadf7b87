"""What a CUDA source file contains: its functions, kernel launches, classes and local includes.

Tokens and brackets come from the lexer, which macros cannot confuse. Launches are parsed by tree-sitter's CUDA
grammar, and a result counts only if it agrees with the brackets. Nothing is left out silently: every `<<<` and every
`__global__` that cannot be located reliably becomes a `Problem`.
"""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

import tree_sitter
import tree_sitter_cuda

from ..files import read
from .lexer import CLOSING, IS_DEFINED, OPENING, Directive, Lexed, Token
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
    """tree-sitter's root node for a text from mask()."""
    return _PARSER.parse(masked.encode("latin-1")).root_node


class Problem(NamedTuple):
    """Why a file cannot be rewritten. The text tells its author what to do."""

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
    head: int  # offset of its first token
    at: int  # offset of its name
    body: int  # offset of its `{`
    end: int  # offset after its `}`
    member: bool  # defined inside a class
    scope: str  # the class that it is a member of, or ""

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def is_device_only(self) -> bool:
        return self.is_kernel or ("__device__" in self.words and "__host__" not in self.words)


class Part(NamedTuple):
    """A part of the file that is in no function and no class."""

    # function (its definition), declaration; open, close (the braces of a namespace or of extern "C"); rest (of a
    # namespace or of the file: neither)
    kind: str
    first: int  # index of its first token
    last: int  # of its last
    scope: str  # the namespace that it is in: "caffe::"


class Launch(NamedTuple):
    """callee<template arguments> <<<grid, block, shared memory, stream>>> (arguments)"""

    kernel: str  # the callee's plain name; "" if the callee is an expression
    line: int
    grid: str
    block: str
    shmem: str
    stream: str
    arguments: tuple[str, ...]
    template_arguments: tuple[str, ...]
    function: str  # the function that contains it; "" in a macro's body
    start: int  # offset of the launch
    chevrons: tuple[int, int]  # offsets of <<<...>>>
    config: tuple[int, int]  # offsets of the text between <<< and >>>
    end: int  # offset after the launch


class Source:
    """One parsed file. `problems` are the reasons that it cannot be built for the host."""

    def __init__(self, text: str, path: str, defined: dict[str, int] = IS_DEFINED):
        self.text, self.path, self.defined = text, path, defined
        self.lexed = Lexed(text, defined)
        self.functions: list[Function] = []
        self.classes: dict[str, list[tuple[int, int]]] = {}  # name -> token ranges of its bodies
        self.declared: list[
            tuple[int, int]
        ] = []  # token ranges of heads: functions' declarations and definitions
        self.parts: list[Part] = []
        self.problems: list[Problem] = []
        self.lost_launches: list[Problem] = []  # the problems that are a `<<<` of no known launch
        self._outline(0, len(self.lexed.tokens), inside="", scope="")
        self.macros = [d for d in self.lexed.directives if d.word == "define" and d.tokens]
        self.launches = self._launches() + [x for macro in self.macros for x in self._macro_launches(macro)]
        self._check_kernels()

    @functools.cached_property
    def defined_at(self) -> set[int]:
        """The offsets of the names of all functions that the file defines."""
        return {function.at for function in self.functions}

    def problem(self, offset: int, text: str):
        self.problems.append(Problem(self.path, *self.lexed.position(offset), text))

    def function_around(self, offset: int) -> Function | None:
        return next((f for f in self.functions if f.body <= offset < f.end), None)

    def includes(self, angles: bool = False):
        """The names of the includes in quotes, in order. With `angles`, also of those in <>."""
        for directive in self.lexed.directives:
            if directive.word != "include" or not directive.tokens:
                continue
            first, last = directive.tokens[0], directive.tokens[-1]
            if first.kind == "string":
                yield first.text[1:-1]
            elif angles and first.text == "<" and last.text == ">":
                yield self.text[first.end : last.start].strip()

    # ------------------------------------------------------------------------------- functions

    def _outline(self, index: int, end: int, inside: str, scope: str):
        """Record what a namespace, or the class `inside`, contains, and all scopes in it."""
        tokens, partner = self.lexed.tokens, self.lexed.partner
        head = index
        while index < end:
            text = tokens[index].text if tokens[index].kind == "punct" else ""
            if text in (";", "}"):
                if text == ";" and head_name(tokens, partner, head, index) is not None:
                    self.declared.append((head, index))
                if text == ";" and head < index and not inside:
                    self.parts.append(Part("declaration", head, index, scope))
                index = head = index + 1
            elif text == "{":
                close = partner.get(index)
                if close is None:  # the brackets do not match, so the rest of the file is unknown
                    break
                if self._braces(head, index, close, inside, scope):
                    head = close + 1
                index = close + 1
            elif text in ("(", "["):
                index = partner.get(index, index) + 1
            elif text == ":" and tokens[index - 1].text in ("public", "private", "protected"):
                index = head = index + 1
            else:
                index += 1
        if head < end and not inside:
            self.parts.append(Part("rest", head, end - 1, scope))

    def _braces(self, head: int, index: int, close: int, inside: str, scope: str) -> bool:
        """Record the function or scope that `head {` begins. False if the braces are only part of a declaration."""
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
            if not inside:
                self.parts.append(Part("function", head, close, scope))
            return True
        name = class_name(tokens, partner, head, index)
        if "namespace" in words or (tokens[index - 1].kind == "string" and "extern" in words):
            self.parts.append(Part("open", head, index, scope))
            self._outline(index + 1, close, inside, scope + _namespaces(tokens[head:index]))
            self.parts.append(Part("close", close, close, scope))
            return True
        if name is not None:
            self.classes.setdefault(name, []).append((index, close))
            self._outline(index + 1, close, name or "?", scope)
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
            type_tokens = [token for token in tokens[:stop] if token is not tokens[at]]
            type_text = mask(type_tokens, type_tokens[0].start, type_tokens[-1].end) if type_tokens else ""
            yield Parameter(tidy(type_text), tokens[at].text)

    def _check_kernels(self):
        """Report every live `__global__` that belongs to no known function, and every kernel that cannot be built."""
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
        lexed, launches = self.lexed, []
        for launch, at in self._find_launches(lexed.tokens, lexed.partner):
            if launch is None:
                text = "cannot make out this kernel launch; write it as a statement `kernel<<<...>>>(...);`"
                self._lost_launch(at, text)
                continue
            launches.append(launch)
            function = self.function_around(at)
            if function and function.is_device_only:
                text = f"dynamic parallelism: {function.name} runs on the GPU itself; launch from host code"
                self.problem(launch.start, text)
        return launches

    def _macro_launches(self, macro: Directive) -> list[Launch]:
        """The launches in a macro's body."""
        tokens, launches = macro_body(macro), []
        for launch, at in self._find_launches(tokens, match_brackets(tokens)):
            place = f"launch in macro {macro.tokens[0].text}; write the launch outside the macro"
            if launch is None:
                self._lost_launch(at, f"cannot make out the kernel {place}")
            elif any(
                t.text in ("#", "##") and launch.start <= t.end and t.start <= launch.end for t in tokens
            ):
                self._lost_launch(at, f"# or ## inside the kernel {place}")
            else:
                launches.append(launch)
        return launches

    def _lost_launch(self, at: int, text: str):
        self.problem(at, text)
        self.lost_launches.append(self.problems[-1])

    def _find_launches(self, tokens, partner):
        """Yields (launch or None, offset) of each `<<<`.

        All tokens are parsed together first, because context helps. If a macro confused the parser, the statement or
        macro argument of the launch is parsed alone.
        """
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
        """The syntax tree of these tokens, and the number to add to its offsets to get the text's offsets."""
        start, before = (tokens[0].start, "void f(){") if tokens is not self.lexed.tokens else (0, "")
        root = parse(before + mask(tokens, start, tokens[-1].end) + (";}" if before else ""))
        return root, start - len(before)

    def _locate(self, root, shift: int, at: int, tokens, partner) -> Launch | None:
        """The launch whose `<<<` is at `at`, or None unless the syntax tree has it and the brackets agree."""
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
        # In a launch, every bracket of a part closes within that part.
        for low, high in ((start, at), config, (arguments.start_byte + shift, end)):
            inside = range(position_from(tokens, low), position_from(tokens, high))
            brackets = [i for i in inside if tokens[i].text in OPENING or tokens[i].text in CLOSING]
            if not all(i in partner and partner[i] in inside for i in brackets):
                return None
        return self._launch(node, shift)

    def _launch(self, node, shift: int) -> Launch:
        """The launch of a <<<...>>> node, whose parent is the call."""

        def text(child) -> str:
            return tidy(self.text[child.start_byte + shift : child.end_byte + shift])

        def texts(parent) -> list[str]:
            return [text(c) for c in parent.named_children if c.type not in ("comment", "ERROR")]

        call = node.parent
        name, templates = call.child_by_field_name("function"), ()
        while name.type == "qualified_identifier":
            name = name.child_by_field_name("name")
        if name.type in ("template_function", "template_method"):
            templates = tuple(texts(name.child_by_field_name("arguments")))
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


def _namespaces(head: list[Token]) -> str:
    """What the names in a head have in front of them: "a::b::" for `namespace a::b`, "" for `extern "C"`."""
    words = [token.text for token in head]
    names = words[words.index("namespace") + 1 :] if "namespace" in words else []
    return "".join(f"{name}::" for name in names if name.isidentifier())


def local_headers(source: Source, folder: str, name: str, find=None) -> dict[str, Source]:
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
            headers[relative] = Source(read(path), path, source.defined)
            visit(headers[relative], relative)

    visit(source, name)
    return headers
