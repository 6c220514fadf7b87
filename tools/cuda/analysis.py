"""Analyse how a kernel uses the grid. May it run as a plain loop over a range of indices?

    unit = Unit(read("foo.cu"), "foo.cu")
    for kernel in unit.kernels(unit.main):
        print(kernel.name, kernel.mode, [launch.grid for launch in kernel.launches])

If in doubt, the result is the safe one.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from .across import foreign_functions
from .alone import (
    ATOMIC_VALUE,
    LOOPS,
    WAITING_LOOP,
    asks_as_itself,
    in_loops,
    is_known,
    loose_words,
    numbers_of,
    waits,
)
from .body import Body
from .conditions import HOST_BUILD
from .expanding import Meeting
from .groups import WORDS as GROUPS
from .launches import Launch
from .lexer import Lexed
from .macro_texts import Macros
from .names import ASKS, ATOMIC, BARRIER, BLOCK, FENCE, IN_WARPS, INDEX, MEETS, SHARES, THREAD
from .number_types import Types
from .outline import Function, Parameter
from .reasons import Reason
from .source import Clock, Source, local_headers
from .tokens import LOOP, macro_body, match_brackets, position_from
from .unit_names import UnitNames

# The loops that can run over a part of the index range, and the names of their variants that
# do so (include/host/cuda_launch.h).
RANGE_LOOPS = {"CUDA_KERNEL_LOOP": "CUDA_KERNEL_RANGE", "CUDA_2D_KERNEL_LOOP": "CUDA_2D_KERNEL_RANGE"}

# Constant memory that other files may name, also without CUDA's word: `extern __constant__ int n;`, `extern float x[];`
EXTERN_CONSTANT = re.compile(r"\bextern\s([^;{}()\"]*);")
ASSIGNMENTS = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
CHANGES = ASSIGNMENTS | {"++", "--"}
# What a kernel's statements may have, by the field of Kernel.
IN_BODY = {
    "nested_loop": "a kernel loop within a kernel loop",
    "returns_in_loop": "a return in the loop ends the thread",
    "breaks_loop": "a break of the loop, or a goto",
    "carries": "the loop changes a variable from outside, which the next index would see",
    "writes_outside_loop": "each thread writes outside of the loop",
}
HARMLESS_CALLS = {"assert", "CUDA_KERNEL_ASSERT", "static_assert"}


class Kernel(NamedTuple):
    name: str
    path: str
    line: int
    parameters: tuple[Parameter, ...]
    has_loop: bool  # has a CUDA_KERNEL_LOOP or a similar loop
    range_loop: bool  # all its loops can run over a part of the range
    nested_loop: bool  # has a kernel loop inside a kernel loop, maybe in a function that it calls
    returns_in_loop: bool  # has a `return` inside the loop, which ends the thread
    breaks_loop: bool  # has a `break` of the kernel loop itself, or a goto
    carries: bool  # the loop's body changes a variable from outside, and a thread's next index would see it
    uses_thread_identity: bool  # threadIdx, __shared__, a barrier ..., maybe in a function that it calls
    meets: bool  # its threads may wait for each other, or see which threads run
    in_phases: bool  # they meet at __syncthreads() in the kernel's own text, and nowhere else
    in_warps: bool  # the same, and at meetings of whole warps, such as shuffles
    names_itself: bool  # in its own text threadIdx can be a parameter
    asks_as_itself: bool  # the same, and no function asks for it
    in_rows: bool  # nobody sees whether threads of other blocks run between those of one: no atomics, nothing shared
    writes_outside_loop: bool  # may write memory outside the loops, so each thread would write once
    dynamic_shared: bool  # uses `extern __shared__`, maybe in a function or class that it names
    launches: tuple[Launch, ...]
    body: tuple[int, int]  # offsets of `{` and just after `}`
    meets_by: tuple[str, ...]  # the words by which its threads may meet
    asks_by: tuple[str, ...]  # the words by which others than its own text ask for the thread
    no_range: tuple[Reason, ...]  # why its loops cannot run over a part of the range

    @property
    def mode(self) -> str:
        """kRange: a few calls run the kernel, each for a part of the indices. kBlocks: a plain loop runs the threads of
        blocks, one after the other. kThreads: the launcher calls each thread, and can switch between them."""
        whole = self.has_loop and self.range_loop and not self.nested_loop
        leaves = self.returns_in_loop or self.breaks_loop
        personal = self.uses_thread_identity or self.writes_outside_loop or self.carries
        if whole and not leaves and not personal:
            return "kRange"
        return "kThreads" if self.meets else "kBlocks"


class Unit:
    """A source file and the local headers that it includes."""

    def __init__(
        self,
        text: str,
        path: str,
        defined: Mapping[str, int] = HOST_BUILD,
        find=None,
        replaced: Collection[str] = (),
        root: str | None = None,
    ):
        """`root` is the folder in which headers may lie, if not the file's own. `find` looks for headers that are not
        beside the file that includes them. `replaced` are macros of the file that the toolkit's will replace.
        """
        self.main, self._find = Source(text, path, defined), functools.cache(find) if find else None
        self._made = text, path, find, replaced, root
        root = root or os.path.dirname(path)
        self.clock = Clock()
        name = os.path.relpath(path, root or ".")
        self.headers = local_headers(self.main, root, name, self._find, self.clock)
        self.sources = [self.main, *self.headers.values()]
        self.functions = {f.name for s in self.sources for f in s.functions}
        self._words = _words_by_name(self.sources, self.functions)
        for name in replaced:
            self._words.pop(name, None)
        self._launches = [launch for source in self.sources for launch in source.launches]
        self._code = {f.name for s in self.sources for f in s.functions if not f.is_kernel}
        self._code |= {name for source in self.sources for name in source.classes}
        self.macros: dict[str, list] = {}
        for macro in (macro for source in self.sources for macro in source.macros):
            self.macros.setdefault(macro.tokens[0].text, []).extend(macro_body(macro))
        loose = set().union(*(loose_words(source) for source in self.sources))
        self._loose = self.reachable(loose)
        # What another file defines may ask for its thread, and wait for others.
        self.foreign = foreign_functions(self.sources)
        self.volatile = set().union(*(source.volatile for source in self.sources))
        self.unread = [reason for source in self.sources for reason in self._unread(source)]

    def where(self, known: Mapping[str, int]) -> Unit:
        """The same files, where these macros are defined (1) or not (0)."""
        text, path, find, replaced, root = self._made
        return Unit(text, path, {**self.main.defined, **known}, find, replaced, root)

    @functools.cached_property
    def types(self) -> Types:
        """What the files' names mean to a conversion."""
        return Types(self.sources)

    @functools.cached_property
    def kernel_names(self) -> set[str]:
        return {
            function.name for source in self.sources for function in source.functions if function.is_kernel
        }

    @functools.cached_property
    def extern_constants(self) -> set[str]:
        """The words of declarations of constant memory that is elsewhere."""
        if not any("__constant__" in source.text for source in self.sources):
            return set()
        declared = [text for source in self.sources for text in EXTERN_CONSTANT.findall(source.text)]
        return {word for text in declared for word in re.findall(r"\w+", text)}

    @functools.cached_property
    def own_types(self) -> set[str]:
        """The names behind `struct`, `class` and `using`."""
        return {
            name.text
            for source in self.sources
            for word, name in itertools.pairwise(source.lexed.tokens)
            if word.text in ("struct", "class", "using")
        }

    @functools.cached_property
    def plain_macros(self) -> Macros:
        meetings = {BARRIER, *IN_WARPS, *GROUPS, *INDEX}
        return Macros(self.sources, meetings)

    @functools.cached_property
    def names(self) -> UnitNames:
        return UnitNames(self.sources, self.macros, self._words)

    def names_macro(self, name: str) -> bool:
        """Do the files use a macro, or does one of their other macros?"""
        in_macros = (token.text for body in self.macros.values() for token in body)
        return name in in_macros or any(
            t.text == name for source in self.sources for t in source.lexed.tokens
        )

    def finds(self, name: str) -> bool:
        """Is this a header that the caller knows where to find?"""
        return self._find is not None and self._find(name) is not None

    def _unread(self, source: Source) -> Iterator[Reason]:
        """The source's headers that are neither read nor known."""
        read_here = {os.path.normpath(header.path) for header in self.headers.values()}
        folder = os.path.dirname(source.path)

        def is_read(name: str) -> bool:
            beside = os.path.normpath(os.path.join(folder, name)) in read_here
            return beside or self.finds(name)

        for directive in source.lexed.directives:
            if directive.word in ("include", "include_next", "import"):
                name = source.included(directive) if directive.word == "include" else None
                if name is None or not (is_read(name) or is_known(name)):
                    what = f"<{name}>" if name else f"a header by #{directive.word} or by a macro"
                    line = source.lexed.position(directive.start)[0]
                    yield Reason(source.path, line, f"includes {what}, which is not read here")

    def kernels(self, source: Source) -> list[Kernel]:
        found = []
        for function in (f for f in source.functions if f.is_kernel):
            self.clock.check(len(self.headers))
            found.append(self._kernel(source, function))
        return found

    def reachable(self, words: set[str]) -> set[str]:
        """These words, and all words in the functions, classes and macros that they name, and so on."""
        seen, todo = set(words), list(words)
        while todo:
            for word in self._words.get(todo.pop(), ()):
                if word not in seen:
                    seen.add(word)
                    todo.append(word)
        return seen

    def way_to(self, words: Collection[str], wanted: str) -> list[str]:
        """One of these words, what it names, and so on to the wanted one; [] if none leads there."""
        before: dict[str, str] = dict.fromkeys(sorted(words), "")
        todo = list(before)
        for word in todo:
            if word == wanted:
                way = [word]
                while before[way[0]]:
                    way.insert(0, before[way[0]])
                return way
            new = sorted(self._words.get(word, set()) - before.keys())
            before.update(dict.fromkeys(new, word))
            todo += new
        return []

    def leading_to(self, words: Collection[str]) -> set[str]:
        """The words from which one of these is reachable, and these."""
        seen, todo = set(words), list(words)
        while todo:
            for word in self._users.get(todo.pop(), ()):
                if word not in seen:
                    seen.add(word)
                    todo.append(word)
        return seen

    @functools.cached_property
    def _users(self) -> dict[str, set[str]]:
        """The functions, classes and macros that have a word."""
        users: dict[str, set[str]] = {}
        for name, words in self._words.items():
            for word in words:
                users.setdefault(word, set()).add(name)
        return users

    @functools.cached_property
    def leads_to_atomics(self) -> set[str]:
        return self.leading_to({word for word in self._users if self.is_atomic(word)})

    @functools.cached_property
    def by_name(self) -> dict[str, list[tuple[Source, Function]]]:
        found: dict[str, list[tuple[Source, Function]]] = {}
        for source in self.sources:
            for function in source.functions:
                found.setdefault(function.name, []).append((source, function))
        return found

    def used_by(self, source: Source, function: Function) -> set[str]:
        """All words in a function of the source, and in what it names."""
        return self.reachable(self._words_of(source, function.body, function.end))

    @functools.cached_property
    def meetings(self) -> dict[str, list[Meeting]]:
        """The functions in which the lanes of a warp, or the threads of a block, meet."""
        found: dict[str, list[Meeting]] = {}
        meets = self.leading_to({BARRIER, *IN_WARPS, *GROUPS})
        for source in self.sources:
            for function in source.functions:
                plain = "__device__" in function.words and not function.member and not function.is_kernel
                if plain and self._words_of(source, function.head, function.end) & meets:
                    found.setdefault(function.name, []).append(Meeting(source, function))
        return found

    def _meets(self, reachable: set[str]) -> tuple[str, ...]:
        """The words by which code with these words may wait for another thread, or see which threads run."""
        words = reachable | self._loose
        found = {word for word in words if MEETS.fullmatch(word)}
        found |= words & {WAITING_LOOP, *self.volatile, *self.foreign}
        found |= words & {ATOMIC_VALUE} if words & LOOPS else set()
        return tuple(sorted(found))

    def _asks(self, reachable: set[str]) -> tuple[str, ...]:
        """The words by which others than the kernel's own text ask for the thread."""
        called = self._loose | self.reachable(reachable & self._code)
        asks = {word for word in called if ASKS.fullmatch(word)} | (reachable & self.foreign)
        asks |= {word for word in reachable if ASKS.fullmatch(word) and word != THREAD}
        return tuple(sorted(asks))

    def is_atomic(self, word: str) -> bool:
        """By its name; a function of the unit is known by its text."""
        return bool(ATOMIC.fullmatch(word)) and word not in self.functions

    def _words_of(self, source: Source, start: int, end: int, in_kernel: bool = False) -> set[str]:
        return _words(source.lexed, start, end, self.functions, in_kernel)

    def _shares(self, reachable: set[str]) -> bool:
        """Are the threads not alike?"""
        return any(SHARES.fullmatch(word) for word in reachable) or bool(reachable & self.foreign)

    def _in_rows(self, source: Source, function: Function, reachable: set[str]) -> bool:
        """Does nobody see the order of blocks, and nothing but the kernel's own text ask for a thread or a block?"""
        elsewhere = self._loose | self.reachable(reachable & (self._code | set(self.macros)))
        words = (reachable - numbers_of(source, function)) | self._loose
        seen = any(self.is_atomic(w) or w in ("__shared__", "printf") for w in words)
        return not seen and not elsewhere & {THREAD, BLOCK}

    def _kernel(self, source: Source, function: Function) -> Kernel:
        launches = tuple(x for x in self._launches if x.kernel == function.name)
        words = self._words_of(source, function.body, function.end, in_kernel=True)
        # A launch passes functors and functions as template arguments or values.
        passed = {
            word
            for launch in launches
            for text in (*launch.template_arguments, *launch.arguments)
            for word in re.findall(r"[A-Za-z_]\w*", text)
        }
        reachable = self.reachable(words | passed)
        own = self._words_of(source, function.head, function.end, in_kernel=True) | passed
        called = self.reachable(own)
        loops = {word for word in words if LOOP.match(word)}
        body = _Body(self, source, function)
        called_loops = any(LOOP.match(word) for word in self.reachable(words - loops))
        meets_by, asks_by, knows_all = self._meets(called), self._asks(called), not self.unread
        return Kernel(
            function.name,
            source.path,
            source.lexed.position(function.at)[0],
            function.parameters,
            has_loop=bool(loops),
            range_loop=loops <= set(RANGE_LOOPS),
            nested_loop="nested_loop" in body.notes or (bool(loops) and called_loops),
            returns_in_loop="returns_in_loop" in body.notes,
            breaks_loop="breaks_loop" in body.notes,
            carries="carries" in body.notes,
            uses_thread_identity=self._shares(reachable),
            meets=not knows_all or bool(meets_by),
            in_phases=knows_all and BARRIER in own and not self._meets(self.reachable(own - {BARRIER})),
            in_warps=knows_all
            and bool(own & IN_WARPS)
            and not self._meets(self.reachable(own - {BARRIER, *IN_WARPS})),
            names_itself=asks_as_itself(source, function),
            asks_as_itself=not asks_by and asks_as_itself(source, function),
            in_rows=self._in_rows(source, function, called),
            writes_outside_loop="writes_outside_loop" in body.notes,
            dynamic_shared=any(
                function.name in s.dynamic_shared or reachable & s.dynamic_shared for s in self.sources
            ),
            launches=launches,
            body=(function.body, function.end),
            meets_by=meets_by,
            asks_by=asks_by,
            no_range=tuple(body.reasons()),
        )


def _words(
    lexed: Lexed, start: int, end: int, functions: Collection[str], in_kernel: bool = False
) -> set[str]:
    first, last = position_from(lexed.tokens, start), position_from(lexed.tokens, end)
    words = {token.text for token in lexed.tokens[first:last] if token.kind == "name"}
    if in_kernel and any(word.startswith(FENCE) for word in words):
        # Outside of a loop a fence waits for nobody.
        inside = in_loops(lexed.tokens, lexed.partner, first, last)
        kept = {lexed.tokens[i].text for i in inside}
        words = {word for word in words if word in kept or not word.startswith(FENCE)}
    return (
        words | waits(lexed.tokens, lexed.partner, first, last, functions, lexed.may_wait, in_kernel).keys()
    )


def _words_by_name(sources: list[Source], functions: Collection[str]) -> dict[str, set[str]]:
    """The words in the definition of each function, class and macro, by its name."""
    by_name: dict[str, set[str]] = {}
    for source in sources:
        for function in source.functions:
            if not function.is_kernel:  # nobody calls it from a device
                words = _words(source.lexed, function.at, function.end, functions)
                by_name.setdefault(function.name, set()).update(words)
        for name, ranges in source.classes.items():
            for first, last in ranges:
                tokens = source.lexed.tokens
                words = {t.text for t in tokens[first:last] if t.kind == "name"}
                words |= waits(
                    tokens, source.lexed.partner, first, last, functions, source.lexed.may_wait
                ).keys()
                by_name.setdefault(name, set()).update(words)
        for macro in source.macros:
            body = macro_body(macro)
            words = {t.text for t in body if t.kind == "name"}
            words |= waits(body, match_brackets(body), 0, len(body), functions).keys()
            by_name.setdefault(macro.tokens[0].text, set()).update(words)
    return by_name


def _may_be_changed(type_text: str) -> bool:
    """Is this type a reference to something that is not const? `const T*&` is one: its pointer is not const."""
    referenced, reference, _ = type_text.partition("&")
    words = referenced.replace("*", " * ").split()
    is_const = "const" in (words[-1:] if "*" in words else words)
    return bool(reference) and not is_const


def _is_const(source: Source, function: Function) -> bool:
    """Is the function a const member function, such as `int rows() const {`?"""
    return "const" in source.text[function.at : function.body].rpartition(")")[2].split()


class _Body:
    """The findings about a kernel's statements."""

    def __init__(self, unit: Unit, source: Source, function: Function):
        body = Body(source, function)
        self._unit, self._source, self._of, self._shift = unit, source, body.of, body.shift
        self._macros = {macro.tokens[0].text for s in unit.sources for macro in s.macros}
        self._changing_macros = {
            macro.tokens[0].text
            for s in unit.sources
            for macro in s.macros
            if any(t.text in CHANGES for t in macro_body(macro))
        }
        self._values = {parameter.name for parameter in function.parameters}
        self._arrays: set[str] = set()
        self._of_the_loop: set[str] = set()  # variables declared in the bodies of kernel loops
        self.notes: dict[str, int] = {}  # what of IN_BODY it has, and the offset of the first
        root = body.tree
        self._declare(root)
        self._visit(root, in_loop=False, breakable=False)
        if root.has_error:  # the parser does not understand some statement, so the results are the safe ones
            words = body.words
            at = body.unread() or root
            self._note("returns_in_loop", "return" in words, at)
            self._note("breaks_loop", "break" in words or "goto" in words, at)
            self._note("writes_outside_loop", True, at)

    def reasons(self) -> Iterator[Reason]:
        for what, at in self.notes.items():
            yield Reason(self._source.path, self._source.lexed.position(at)[0], IN_BODY[what])

    def _note(self, what: str, holds, node):
        if holds:
            self.notes.setdefault(what, node.start_byte + self._shift)

    def _declare(self, node, in_loop: bool = False):
        """Collect the local variables. A write to one does not leave the thread, or the iteration of the loop."""
        if node.type in ("declaration", "for_range_loop", "parameter_declaration"):
            for declarator in node.children_by_field_name("declarator"):
                self._declarator(declarator, array=False)
                if in_loop:
                    self._of_the_loop.add(self._declared(declarator))
        in_loop = in_loop or (node.type == "while_statement" and self._is_kernel_loop(node))
        for child in node.named_children:
            self._declare(child, in_loop)

    def _declared(self, node) -> str:
        """The name in a declarator of a value, a pointer, an array or a reference."""
        while node.type != "identifier":
            inner = node.child_by_field_name("declarator") or next(iter(node.named_children), None)
            if inner is None:
                return ""
            node = inner
        return self._of(node)

    def _declarator(self, node, array: bool):
        if node.type == "identifier":
            self._values.add(self._of(node))
            if array:
                self._arrays.add(self._of(node))
        elif node.type in ("init_declarator", "pointer_declarator"):
            self._declarator(node.child_by_field_name("declarator"), array)
        elif node.type == "array_declarator":
            inner = node.child_by_field_name("declarator")
            self._declarator(inner, array=inner.type in ("identifier", "array_declarator"))
        # a reference_declarator names other memory

    def _visit(self, node, in_loop: bool, breakable: bool):
        kind = node.type
        if kind == "lambda_expression":
            self._visit_lambda(node, in_loop)
            return
        if kind == "while_statement" and self._is_kernel_loop(node):
            self._note("nested_loop", in_loop, node)
            self._visit(node.child_by_field_name("body"), in_loop=True, breakable=False)
            return
        if kind in ("for_statement", "while_statement", "do_statement", "switch_statement", "for_range_loop"):
            breakable = True
        elif kind == "return_statement" and in_loop:
            self._note("returns_in_loop", True, node)
        elif kind == "goto_statement" or (kind == "break_statement" and in_loop and not breakable):
            self._note("breaks_loop", True, node)
        elif kind == "identifier" and in_loop and self._of(node) in self._macros:
            hidden = self._unit.reachable({self._of(node)})
            self._note("returns_in_loop", "return" in hidden, node)
            self._note("breaks_loop", hidden & {"break", "goto"}, node)
            self._note("carries", hidden & self._changing_macros, node)
        if in_loop:
            self._check_change(node)
        else:
            self._check_write(node)
        for child in node.named_children:
            self._visit(child, in_loop, breakable)

    def _visit_lambda(self, node, in_loop: bool):
        """A `return` in a lambda does not leave the kernel. Writes in a lambda count as the kernel's."""
        before = "returns_in_loop" in self.notes
        for child in node.named_children:
            self._visit(child, in_loop, breakable=True)
        if not before:
            self.notes.pop("returns_in_loop", None)

    def _is_kernel_loop(self, node) -> bool:
        tokens = self._source.lexed.tokens
        return bool(LOOP.match(tokens[position_from(tokens, node.start_byte + self._shift)].text))

    def _check_write(self, node):
        if node.type == "assignment_expression":
            wrote = not self._is_private(node.child_by_field_name("left"))
        elif node.type == "update_expression":
            wrote = not self._is_private(node.child_by_field_name("argument"))
        elif node.type == "call_expression":
            name = self._of(node.child_by_field_name("function"))
            statement = node.parent.type == "expression_statement"
            words = set(re.findall(r"[A-Za-z_]\w*", name))
            atomic = any(self._unit.is_atomic(word) for word in words) or words & self._unit.leads_to_atomics
            wrote = bool(atomic) or (statement and name not in HARMLESS_CALLS)
        else:
            return
        self._note("writes_outside_loop", wrote, node)

    def _check_change(self, node):
        """Does a node in a loop change a variable that the next iteration may read, or pass it on to be changed?"""
        address = node.type == "pointer_expression" and node.child_by_field_name("operator").type == "&"
        if node.type == "assignment_expression":
            place = node.child_by_field_name("left")
        elif node.type == "update_expression" or address:
            place = node.child_by_field_name("argument")
        elif self._is_reference(node):
            place = node.child_by_field_name("value")
        elif node.type == "call_expression":
            for argument in self._changed_by(node):
                self._check_place(argument)
            return
        else:
            return
        self._check_place(place)

    def _changed_by(self, call) -> list:
        """Nodes that a call may change: arguments of the unit's functions or of swap, a member function's object."""
        function = call.child_by_field_name("function")
        of_object = (
            function.type == "field_expression" and function.child_by_field_name("operator").type == "."
        )
        name_node = function.child_by_field_name("field") if of_object else function
        name = re.split(r"[^\w:]", self._of(name_node), maxsplit=1)[0].split("::")[-1]
        known = self._unit.by_name.get(name, [])
        arguments = call.child_by_field_name("arguments").named_children
        if name == "swap" and not known:
            return arguments
        changed = [
            argument
            for _, callee in known
            for argument, parameter in zip(arguments, callee.parameters, strict=False)
            if _may_be_changed(parameter.type)
        ]
        if of_object and not (
            known and all(_is_const(*source_and_function) for source_and_function in known)
        ):
            changed.append(function.child_by_field_name("argument"))
        return changed

    def _check_place(self, place):
        element = False
        while place.type in ("parenthesized_expression", "field_expression", "subscript_expression"):
            if place.type == "parenthesized_expression":
                place = place.named_children[0]
                continue
            if place.type == "field_expression" and place.child_by_field_name("operator").type != ".":
                return  # memory
            # In x.a[0] the array may be part of x.
            element = place.type == "subscript_expression"
            place = place.child_by_field_name("argument")
        if place.type != "identifier" or self._of(place) in self._of_the_loop:
            return  # memory, or a variable of this iteration
        self._note("carries", not element or self._of(place) in self._arrays, place)

    def _is_reference(self, node) -> bool:
        """Is the node `T& name = value`? The name can then change the value."""
        if node.type != "init_declarator" or node.child_by_field_name("value") is None:
            return False
        declarator = node.child_by_field_name("declarator")
        while declarator.type == "pointer_declarator":  # const T*& name
            declarator = declarator.child_by_field_name("declarator")
        is_reference = declarator.type == "reference_declarator"
        return is_reference and _may_be_changed(self._of(node.parent).split("=")[0])

    def _is_private(self, node) -> bool:
        """Is the node a variable of the thread, or a part of one?"""
        if node.type == "identifier":
            return self._of(node) in self._values
        inner = node.child_by_field_name("argument")
        if node.type == "subscript_expression":
            while inner.type == "subscript_expression":
                inner = inner.child_by_field_name("argument")
            return inner.type == "identifier" and self._of(inner) in self._arrays
        if node.type == "field_expression" and node.child_by_field_name("operator").type == ".":
            return self._is_private(inner)
        return False
