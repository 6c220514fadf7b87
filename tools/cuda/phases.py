"""Kernels whose threads wait for each other only at __syncthreads(), where all come: the block's phases become loops.

    s[t] = x[i];                                 each_thread(... { int t = ...; s[t] = x[i]; });
    __syncthreads();
    for (int d = 128; d > 0; d /= 2) {           for (int d = 128; d > 0; d /= 2) {
      if (t < d) s[t] += s[t + d];                 each_thread(... { int t = ...; if (t < d) s[t] += s[t + d]; });
      __syncthreads();
    }                                            }

The threads run in the launcher's order from one barrier to the next, as fibres do, but no thread needs a stack. What
stands around a barrier must be the same for all threads: arithmetic on parameters, blockIdx, blockDim, gridDim and
variables of which this is known (uniform.py). It runs once for the block. A thread's own variable that another phase
uses is computed again, if it is arithmetic on whole numbers that do not change, else it has a place for each thread
(kept.py). So has one whose address may be kept. A use of a variable is a change unless it is a known read (uses.py).
If anything is unclear, the threads run on fibres.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from .body import Body, component, walk
from .guard import is_along_x
from .interchange import Interchange, Strided, common_loops
from .kept import KeptVariables
from .names import BARRIER, THREAD, WIDTH
from .outline import Function
from .reasons import Reason, Unclear, check
from .source import Source
from .tokens import LOOP, position_from
from .uniform import Uniform
from .unit_names import INTEGERS, UnitNames
from .uses import LOOPS, Uses
from .variables import Variable

UNCLEAR = {"goto", "decltype", "typeof", "__typeof__", "caffe_t", "caffe_x"}
JUMPS = {"return_statement", "break_statement", "continue_statement"}
TYPES = {
    "type_definition",
    "alias_declaration",
    "static_assert_declaration",
    "using_declaration",
    "enum_specifier",
}
PLACE = f"{THREAD}, caffe_t, caffe_x"
SHOWN = f"::{THREAD} = {THREAD}; "
NO_BRACES = "a statement with a barrier, without braces"
NO_BARRIER = f" [[maybe_unused]] const auto {BARRIER} = [](int, int) {{}};"


class Region:
    """Statements of threads between two places where they meet."""

    def __init__(self, statements: list, is_last: bool, at: int | None = None):
        self.statements, self.is_last = statements, is_last  # is_last: the kernel ends there
        self.at = at  # the offset, if there are no statements
        self.loop = "CAFFE_HOST_EACH"
        self.group: int | None = None  # of regions that run warp by warp (warps.py)
        self.before = ""  # what runs once, before it
        self.leaves = False  # threads return there, and others go on
        self.strided: Strided | None = None  # it is such a loop
        self.given: list = []  # (what is written for each thread at the end, with the text of a node; the node)

    @property
    def start(self) -> int:
        return self.statements[0].start_byte if self.at is None else self.at


class Phases:
    """A kernel's text, as phases of its blocks."""

    places = ""  # what else is declared at the body's beginning
    shown = ""  # what a thread does first

    def __init__(self, source: Source, function: Function, names: UnitNames, interchanges: bool = True):
        self.source, self.function, self.interchanges = source, function, interchanges
        self.body = body = Body(source, function)
        self.of = body.of
        words = body.words
        self._check(not body.tree.has_error, "a statement that the parser does not know", body.unread())
        self._check(not words & UNCLEAR, "goto, decltype or the like", body.first(UNCLEAR))
        loops = {word for word in words if LOOP.match(word)}
        self._check(not loops, "a kernel loop beside a barrier", body.first(loops))
        directives = (*source.lexed.directives, *source.lexed.conditions)
        inside = [d for d in directives if function.body < d.start < function.end]
        for d in inside:
            is_unroll = d.word == "pragma" and [t.text for t in d.tokens[:1]] == ["unroll"]
            self._check(is_unroll, "a preprocessor line in the kernel", d.start)
        self.tokens, self.pragmas = source.lexed.tokens, [d.start for d in inside]
        head = self.tokens[
            position_from(self.tokens, function.head) : position_from(self.tokens, function.body)
        ]
        pairs = [(a.text, b.text) for a, b in pairwise(head)]
        types = {name for word, name in pairs if word in ("typename", "class")}
        self.uses = Uses(body, function, names, types)
        self.uses.constants |= {name for word, name in pairs if word in INTEGERS} - {
            p.name for p in function.parameters
        }
        self.hoisted: set[int] = set()  # nodes around barriers
        self.has_gone = False  # threads may have returned, while others go on
        self._find_barriers(body.root)
        if interchanges and self.hoisted:
            self._find_common_loops(body.root)
        self.uniform = self.find_uniform()
        self.interchange = Interchange(self.uses, self.uniform, self._value)

    def find_uniform(self) -> Uniform:
        self._check(bool(self.hoisted), "no barrier of its own")
        return Uniform(self.uses, self.hoisted)

    def _check(self, clear: bool, why: str = "a statement of another form", at=None):
        """Raise why, with the place of a node, or at an offset."""
        check(self.body, clear, why, at)

    def _find_barriers(self, node):
        """Find what stands around barriers."""
        if node.type == "identifier" and self.of(node) == BARRIER:
            while node.id != self.body.root.id:
                self.hoisted.add(node.id)
                self._mark_arms(node)
                node = node.parent
            return
        for child in node.named_children:
            self._find_barriers(child)

    def _find_common_loops(self, compound):
        for node in common_loops(self.uses, compound, self.hoisted):
            self.hoisted |= {node.id, node.child_by_field_name("body").id}
        for child in compound.named_children:
            if child.id in self.hoisted:
                self._find_common_loops(child)

    def _strided(self, node, lanes: bool) -> Strided | None:
        return self.interchange.strided(node, lanes) if self.interchanges and not self.shown else None

    def _mark_arms(self, node):
        for child in node.named_children if node.type in ("if_statement", "else_clause") else ():
            if child.type in ("compound_statement", "else_clause") or node.type == "else_clause":
                self.hoisted.add(child.id)
                self._mark_arms(child)

    def _of_the_block(self, node) -> bool:
        """Does this statement run once for the block?"""
        kind = node.type
        if kind in TYPES:
            return True
        if kind == "declaration":
            beside = [v for v in self.uses.scopes if v.statement and v.statement == node]
            return not beside or all(v.is_uniform for v in beside)
        if kind == "expression_statement":
            inside = node.named_children
            return not inside or self.uniform.is_step(inside[0])
        if kind == "if_statement" and node.child_by_field_name("alternative") is None:
            way = node.child_by_field_name("consequence")
            if way.type == "compound_statement" and len(way.named_children) == 1:
                way = way.named_children[0]
            condition = node.child_by_field_name("condition")
            return way.type in JUMPS and way.named_child_count == 0 and self.uniform.is_same(condition)
        return kind in JUMPS and node.named_child_count == 0

    def region(self, statements: list, is_last: bool) -> Iterator[Region]:
        """The regions of statements without a barrier between them."""
        yield Region(statements, is_last)

    def _regions(self, compound, follows: bool) -> Iterator[Region]:
        """The regions of a compound statement and of those in it. follows: something comes after the compound."""
        self._check(compound is not None and compound.type == "compound_statement", NO_BRACES, compound)
        statements = []
        children = compound.named_children
        for i, child in enumerate(children):
            after = follows or not all(self._is_barrier(c) for c in children[i + 1 :])
            strided = None
            if child.id not in self.hoisted and not self._of_the_block(child):
                strided = self._strided(child, lanes=False) if self.hoisted else None
                if strided is None:
                    statements.append(child)
                    continue
            if statements:
                yield from self.region(statements, False)
                statements = []
            if strided is not None:
                region = Region([child], False)
                region.strided = strided
                yield region
            if child.id in self.hoisted and not self._is_barrier(child):
                yield from self._around(child, after)
        if statements:
            yield from self.region(statements, not follows)

    def _is_barrier(self, node) -> bool:
        is_call = node.type == "expression_statement" and node.named_children[:1]
        return bool(is_call) and self.of(node).replace(" ", "") == f"{BARRIER}();"

    def _around(self, node, after: bool) -> Iterator[Region]:
        """The regions of a statement in which there is a barrier."""
        part = node.child_by_field_name
        if node.type == "compound_statement":
            yield from self._regions(node, after)
            return
        known = node.type in ("for_statement", "while_statement", "do_statement", "if_statement")
        self._check(known, f"a barrier in a {node.type.replace('_', ' ')}", node)
        condition = part("condition")
        same = condition is None or self.uniform.is_same(condition)
        self._check(same, "a barrier under a condition that may differ between threads", condition)
        if node.type == "if_statement":
            yield from self._regions(part("consequence"), after)
            other = part("alternative")
            if other is not None:
                yield from self._around(other.named_children[0], after)
            return
        first, step = part("initializer"), part("update")
        if first is not None:
            once = self._of_the_block(first) if first.type == "declaration" else self.uniform.is_step(first)
            self._check(once, "a loop with a barrier begins with what may differ between threads", first)
        same = step is None or self.uniform.is_step(step)
        self._check(same, "the step of a loop with a barrier may differ between threads", step)
        yield from self._regions(part("body"), True)

    def _jumps(self, node, region: Region, in_loop: bool = False, in_switch: bool = False):
        """No jump out of a region but a return."""
        kind = node.type
        if kind == "return_statement" and not region.is_last:
            region.leaves = self.has_gone = True
        stays = in_loop or (in_switch and kind == "break_statement")
        jumps = kind in ("break_statement", "continue_statement")
        self._check(not jumps or stays, "a jump out of what stands between two barriers", node)
        for child in node.named_children:
            self._jumps(child, region, in_loop or kind in LOOPS, in_switch or kind == "switch_statement")

    def edits(self) -> list[tuple[int, int, Any]]:
        body = self.body
        self.uniform.find()
        for parameter in (v for v in self.uses.scopes if v.start == 0):
            change = next((node for node in parameter.changes if node is not None), None)
            own = not parameter.changes or parameter.is_uniform
            self._check(own, f"the parameter {parameter.name} is changed", change)
        beside = [v for v in self.uses.scopes if v.statement is None or self.uniform.place(v.statement)]
        for one in beside:  # names that hide others
            hides = any(v.name == one.name and v.start < one.start < v.end for v in beside)
            self._check(not hides, f"{one.name} hides another variable", one.start + body.shift)
        regions = list(self._regions(self.body.root, False))
        used, kept = self._place_variables(regions)
        taken = any(region.strided for region in regions)
        self._check(not self.has_gone or not taken, "a loop turn by turn, where threads have returned")
        declarations = {v.declaration.id: v.declaration for v in kept.variables}.values()
        # Of those at one offset: what ends goes before what begins.
        edits = [(0, edit) for statement in declarations for edit in kept.declaration(statement)]
        for i, region in enumerate(regions):
            edits += self._region_edits(i, region, used[i], kept)
        edits += [*self.around_regions(regions, kept), *self.once(kept)]
        edits.sort(key=lambda edit: (edit[1][:2], edit[0]))
        at = self.function.body + 1
        gone = " ::cuda_host::Gone caffe_gone;" if self.has_gone else ""
        return [(at, at, NO_BARRIER + gone + self.places + kept.arrays()), *(edit for _, edit in edits)]

    def around_regions(self, regions: list[Region], kept: KeptVariables) -> list:
        """Edits around several regions, with their order at one offset."""
        return []

    def once(self, kept: KeptVariables) -> list:
        """Edits of what runs once for several threads."""
        return []

    def _region_edits(
        self, number: int, region: Region, used: list[Variable], kept: KeptVariables
    ) -> Iterator:
        if region.strided is not None:
            yield from self._strided_edits(number, region, region.strided, used, kept)
            return
        at = region.start + self.body.shift
        start, end = self.bounds(region.statements) if region.statements else (at, at)
        structures = kept.structures(number) if region.group is None else ""
        loop = region.loop
        if self.has_gone:
            loop = loop.replace("CAFFE_HOST_EACH", "CAFFE_HOST_EACH_LEFT")
        elif loop == "CAFFE_HOST_EACH" and self._counts_along_x(number, region, used):
            loop += "_ALONG"
        opening = f"{structures}{region.before} {loop} {self.shown}{kept.carried_into(number, used)}"
        here = "".join(
            f" (void){v.name};" for v in kept.carried if v.region == number
        )  # and maybe not used here
        closing = here + " });"
        if region.leaves:
            in_warp = region.group is not None
            closing += f" if (caffe_gone.{'nobody(caffe_t)' if in_warp else f'everyone({WIDTH})'}) return;"
            yield from self._leaving(region)
        if not region.statements:
            yield 6, (start, end, lambda: opening + self._given(region) + closing)
            return
        yield 7, (start, start, opening)
        yield 1, (end, end, closing if not region.given else lambda: self._given(region) + closing)
        yield from self._within(region)

    def _within(self, region: Region) -> Iterator:
        """Edits of expressions."""
        for node in (n for s in region.statements for n in walk(s) if self._is_along_x(n)):
            first, last = self.body.place(node)
            yield 0, (first, last, "caffe_x" + "\n" * self.source.text.count("\n", first, last))
        yield from self._comparisons(region)

    def _strided_edits(
        self, number: int, region: Region, strided: Strided, used: list[Variable], kept: KeptVariables
    ) -> Iterator:
        """Edits by which a loop's head runs once for a row of threads, or for a warp, and its body turn by turn."""
        variable, sign, end, head, body = strided
        (start, last), first = self.bounds(region.statements), self.body.place(body)[0]
        asked = [v for node in head for v in self.uses.variables(node) if v is not variable]
        lanes = region.loop != "CAFFE_HOST_EACH"
        width = 32 if lanes else f"{WIDTH}.x"
        opening = f"CAFFE_HOST_PLACE {{ {kept.carried_into(number, asked)}"
        opening = opening if lanes else f"::cuda_host::each_row(blockIdx, {WIDTH}, {opening}"
        to = " ".join(self._text_with_x(end).split())
        turn = (
            f" ::cuda_host::each_turn<{str(sign == '<=').lower()}>({PLACE}, {width}, {variable.name}, {to},"
        )
        turn += f" CAFFE_HOST_TURN({variable.name}) {{ {kept.carried_into(number, used)}"
        yield 7, (start, start, f"{region.before} {opening}")
        yield 7, (first, first, turn)
        yield 1, (last, last, f" }}); }}{f'({PLACE})' if lanes else ')'};")
        yield from self._within(region)

    def _counts_along_x(self, number: int, region: Region, used: list[Variable]) -> bool:
        """Has the region blockIdx.x * blockDim.x + threadIdx.x as an unsigned number?"""
        for node in (n for s in region.statements for n in walk(s) if self._is_along_x(n)):
            begins = node.parent.type == "init_declarator" and self.uses.begun_by(node)
            if not begins or not begins.is_of({"int"}):
                return True
        again = [v for v in used if v.region != number and not v.is_kept and not v.is_of({"int"})]
        return any(v.value is not None and self._is_along_x(v.value) for v in again)

    def _comparisons(self, region: Region) -> Iterator:
        """Edits by which `threadIdx.x < n` and `threadIdx.x >= n` end a loop: unsigned, they are its condition."""
        for node in (n for s in region.statements for n in walk(s) if n.type == "binary_expression"):
            left, sign, right = (node.child_by_field_name(field) for field in ("left", "operator", "right"))
            variable = self.uses.variable(left) if left.type == "identifier" else None
            is_int = variable is not None and variable.is_of({"int"})
            value = self._value(left)
            counts = component(self.body, value) == f"{THREAD}.x" or self._is_along_x(value)
            if sign.type not in ("<", ">=") or is_int or not counts:
                continue
            yield 0, (*[self.body.place(left)[0]] * 2, f"{'!' * (sign.type == '>=')}::cuda_host::below(")
            yield 0, (*self.body.place(sign), ",")
            yield 0, (*[self.body.place(right)[1]] * 2, ")")

    def _leaving(self, region: Region) -> Iterator:
        """Edits by which the threads that return say so."""
        for node in (n for s in region.statements for n in walk(s) if n.type == "return_statement"):
            at = self.body.place(node)[0] + len("return")
            yield 0, (at, at, " caffe_gone.leave(caffe_t)" + (", " if node.named_child_count else ""))

    def _given(self, region: Region) -> str:
        texts = [" ".join(self.render(*self.body.place(node)).split()) for _, node in region.given]
        return "".join(f" {text.format(value)}" for (text, _), value in zip(region.given, texts, strict=True))

    def render(self, start: int, end: int) -> str:
        """A part of the source, with its edits."""
        return self.source.text[start:end]

    def _place_variables(self, regions: list[Region]) -> tuple[list[list[Variable]], KeptVariables]:
        """The variables that each region uses, and those that are kept."""
        places = {}  # the region of each statement
        for number, region in enumerate(regions):
            for statement in region.statements:
                self._jumps(statement, region)
                places[statement.id] = number
        own = [v for v in self.uses.scopes if v.statement is not None and v.statement.id in places]
        for variable in own:
            variable.region = places[variable.declaration.id]
        nodes = [[*region.statements, *(node for _, node in region.given)] for region in regions]
        used = [[v for node in each for v in self.uses.variables(node) if v in own] for each in nodes]
        carried = [v for v in own if any(v in u and v.region != i for i, u in enumerate(used))]
        for variable in own:
            if not any(variable.start < region.start < variable.end for region in regions):
                continue  # it ends with its phase
            plain = self.uses.is_plain_at_its_end(variable)
            self._check(
                plain, f"{variable.name}: at its end more than its memory may go", variable.declaration
            )
            if None in variable.changes and variable not in carried:
                carried.append(variable)  # its address may be kept
        kept = KeptVariables(self.uniform, self._text_with_x)
        kept.choose(own, carried)
        return used, kept

    def bounds(self, statements: list) -> tuple[int, int]:
        """The offsets of statements. A pragma stays beside its loop."""
        start, end = self.body.place(statements[0])[0], self.body.place(statements[-1])[1]
        before = self.tokens[position_from(self.tokens, start) - 1].end
        return (before if any(before <= pragma < start for pragma in self.pragmas) else start), end

    def _text_with_x(self, value) -> str:
        """An expression's text, with caffe_x for the index along x."""
        text, start = self.of(value), value.start_byte
        for node in reversed([n for n in walk(value) if self._is_along_x(n)]):
            text = text[: node.start_byte - start] + "caffe_x" + text[node.end_byte - start :]
        return text

    def _is_along_x(self, node) -> bool:
        """Is it blockIdx.x * blockDim.x + threadIdx.x, or + a variable for the last one?"""
        return is_along_x(self.body, node, self._value)

    def _value(self, node):
        """What a variable stands for that each phase can compute again."""
        variable = self.uses.variable(node) if node.type == "identifier" else None
        known = variable and (variable.is_of({"int", "unsigned"}) or self.uniform.is_whole_auto(variable))
        return variable.value if known and self.uniform.is_again(variable) else node


def phases_of(
    source: Source, function: Function, names: UnitNames, shown: bool = False
) -> list[tuple[int, int, Any]] | Reason:
    """The edits that make a kernel's phases loops, or the reason why its threads must run on fibres.

    Args:
        names: those of the file and of its headers.
        shown: functions that the kernel calls ask for the thread.
    """
    return tried(source, function, lambda interchanges: Phases(source, function, names, interchanges), shown)


def tried(source: Source, function: Function, made: Callable[[bool], Phases], shown: bool) -> Any:
    """The edits of what is made with loops turn by turn, or without; or why there are none."""
    reason: Any = None
    for interchanges in (True, False):
        try:
            phases = made(interchanges)
            phases.shown = SHOWN if shown else ""
            return phases.edits()
        except Unclear as unclear:
            reason = unclear.reason(source, function)
    return reason
