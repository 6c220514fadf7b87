"""Kernels whose lanes meet at shuffles, votes and __syncwarp(), where all of a warp come: warps become loops of 32.

    v += __shfl_xor_sync(~0, v, 1);    each_warp(... { each_lane(... { caffe_sent_0.put(caffe_t, v); });
                                                       each_lane(... { v += warp_xor(~0, caffe_sent_0..., 1); }); });

It is phases.py once more, for a warp instead of a block. A statement of a block between two barriers in which lanes
meet is a loop over warps. In it, loops over lanes run from one meeting to the next. What stands around a meeting must
be the same for the warp (uniform.py), and runs once for it. Masks are full. Phases and warps nest. Blocks must have
rows of whole warps: to_host.py keeps the kernel's own text beside this one, for fibres, and the launcher chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .body import walk
from .kept import KeptVariables
from .names import ALL, IN_WARPS, MERGE, SHUFFLES, VOTES, WARP_BARRIER, WARP_SIZE
from .outline import Function
from .phases import JUMPS, TYPES, Phases, Region, tried
from .reasons import Reason
from .source import Source
from .tokens import position_from
from .uniform import Uniform
from .unit_names import HALVES, NUMBERS, UnitNames
from .uses import LOOPS, Variable

MOVES = {name: lane.partition("_")[2] for name, lane in SHUFFLES.items() if "shfl" in name}
FULL = {"0xffffffff", "~0", "-1", "4294967295"}
MOST_SENT = 24  # of 8 KiB, on a stack of 640
# What stands between a meeting and its statement: all is done once, and in any order.
WITHIN = {
    "binary_expression",
    "unary_expression",
    "parenthesized_expression",
    "argument_list",
    "call_expression",
}
WITHIN |= {"cast_expression", "init_declarator", "subscript_argument_list", "subscript_expression"}
WITHIN |= {"assignment_expression"}


class Warps(Phases):
    """A kernel's text, as phases of its blocks and of their warps."""

    def __init__(
        self,
        source: Source,
        function: Function,
        names: UnitNames,
        render: Callable[[int, int], str],
        interchanges: bool = True,
    ):
        self.in_warp: set[int] = set()  # nodes around meetings
        self.meetings: dict[int, list] = {}  # those of a statement, or of a condition, by its id
        self.votes: set[int] = set()  # the ids of those whose value all lanes get
        self.groups: list[
            tuple[list, bool]
        ] = []  # statements that run warp by warp; whether they are a part of others
        self.sent: dict[int, int] = {}  # the number of what a meeting sends, by its id
        self.asked: list = []  # expressions that a warp asks once
        self.moved: set[int] = set()  # the shuffles whose values are moved once for the warp
        self.between = ""  # what a warp does once before its next region
        self.conditions: dict[int, str] = {}  # the same, before the answer of a condition in which lanes meet
        self.returns: list = []  # those of a warp
        self.before: list[tuple[Any, str]] = []  # the same, before a statement of the warp
        self.late: list[tuple[int, int, str]] = []  # edits that go behind all others at their offset
        self.render_text = render
        super().__init__(source, function, names, interchanges)

    def render(self, start: int, end: int) -> str:
        return self.render_text(start, end)

    def find_uniform(self) -> Uniform:
        for node in walk(self.body.root):
            if node.type == "call_expression" and self.of(node.named_children[0]) in IN_WARPS:
                self._meeting(node)
        self._check(bool(self.meetings), "no lanes meet in its own text")
        self._check(len(self.sent) <= MOST_SENT, "more meetings than a stack has places for")
        for node in walk(self.body.root):
            if self.of(node) in IN_WARPS:
                self._check(self._is_called(node), f"{self.of(node)} that is not called", node)
        return Uniform(self.uses, self.hoisted, self.in_warp, self.votes)

    def _of_the_block(self, node) -> bool:
        """Without a barrier all runs warp by warp."""
        return super()._of_the_block(node) if self.hoisted else node.type in TYPES

    @staticmethod
    def _is_called(node) -> bool:
        return node.parent.type == "call_expression" or node.type != "identifier"

    def _meeting(self, call):
        """Note a meeting, its statement, and what stands around that."""
        name, arguments = (
            self.of(call.named_children[0]),
            call.child_by_field_name("arguments").named_children,
        )
        full = not arguments or self._is_full(arguments[0])
        self._check(full, f"{name} with a mask that may not be of all lanes", call)
        if name != WARP_BARRIER:
            known = len(arguments) >= 2 and self.uses.names.is_builtin(name)
            self._check(known, f"{name} of another form", call)
            self.sent[call.id] = len(self.sent)
        if name in VOTES:
            self.votes.add(call.id)
        if name.startswith("__group"):
            for variable in self.uses.variables(arguments[1]):
                known = variable.stars is None or variable.is_of(NUMBERS | HALVES | self.uses.templates)
                self._check(known, f"{name[8:]} of what may have more than 8 bytes")
        statement = call
        while statement.type not in ("expression_statement", "declaration") and not self._is_asked(statement):
            self._check(statement.type in WITHIN, f"{name} in a {statement.type.replace('_', ' ')}", call)
            statement = statement.parent
            self._check(statement is not None, f"{name} in another place", call)
        self._check_order(statement, name)
        self.meetings.setdefault(statement.id, []).append(call)
        node = statement if not self._is_asked(statement) else statement.parent
        while node.id != self.body.root.id and node.id not in self.hoisted:
            self.in_warp.add(node.id)
            for child in node.named_children if node.type == "if_statement" else ():
                self._mark_warp_arm(child)
            node = node.parent

    def _mark_warp_arm(self, child):
        if child.type in ("compound_statement", "else_clause"):
            self.in_warp.add(child.id)
            for below in child.named_children if child.type == "else_clause" else ():
                self._mark_warp_arm(below)

    @staticmethod
    def _is_asked(node) -> bool:
        """Is it the condition of a loop or of an `if`?"""
        holds = node.parent is not None and node.parent.type in (LOOPS - {"for_range_loop"}) | {
            "if_statement"
        }
        return holds and node.parent.child_by_field_name("condition") == node

    def _check_order(self, statement, name: str):
        """Nothing in the statement may be done before a value is sent."""
        top = statement.named_children[0] if statement.type == "expression_statement" else None
        if statement.type == "declaration":
            alone = len(statement.children_by_field_name("declarator")) == 1
            self._check(alone, f"{name} in a row of variables", statement)
        for node in walk(statement):
            changes = node.type in ("assignment_expression", "update_expression", "comma_expression")
            self._check(not changes or node == top, f"{name} beside a change", node)
            chosen = node.type == "conditional_expression" and self._has_meeting(node)
            self._check(not chosen, f"{name} in a choice", node)
            if node.type == "binary_expression" and node.child_by_field_name("operator").type in ("&&", "||"):
                self._check(not self._has_meeting(node), f"{name} behind a condition", node)

    def _has_meeting(self, node) -> bool:
        return any(n.type == "identifier" and self.of(n) in IN_WARPS for n in walk(node))

    def _is_full(self, mask) -> bool:
        """Has the mask all lanes?"""
        text = "".join(self.of(mask).split()).strip("()").lower()
        if text in self.uses.names.macros or self.of(mask) in self.uses.names.macros:
            text = "".join(token.text for token in self.uses.names.macros[self.of(mask)]).strip("()").lower()
        variable = self.uses.variable(mask) if mask.type == "identifier" else None
        if variable is not None and variable.value is not None and not variable.changes:
            return self._is_full(variable.value)
        return text.rstrip("ul") in FULL

    def region(self, statements: list, is_last: bool) -> Iterator[Region]:
        if not any(statement.id in self.in_warp for statement in statements):
            yield from super().region(statements, is_last)
            return
        number = len(self.groups)
        self.groups.append((statements, False))
        for region in self._lanes(statements, is_last, in_loop=False):
            region.group = number
            yield region

    def _lanes(self, statements: list, is_last: bool, in_loop: bool) -> Iterator[Region]:
        """The regions of a warp's statements. in_loop: within one around a meeting."""
        beside: list = []
        for i, one in enumerate(statements):
            last = is_last and i + 1 == len(statements)
            inner = one.id in self.in_warp and one.id not in self.meetings
            if one.id in self.meetings:
                yield from self._sending(beside, one)
                beside = [] if self._is_syncwarp(one) else [one]
                if beside and self._of_the_warp(one, is_last, in_loop):
                    self.before.append((one, self.between))
                    beside, self.between = [], ""
            elif inner or self._of_the_warp(one, is_last, in_loop):
                if beside:
                    yield self._lane_region(beside, False)
                    beside = []
                if inner:
                    yield from self._around_warp(one, last, in_loop)
            elif (strided := self._strided(one, lanes=True)) is not None:
                if beside:
                    yield self._lane_region(beside, False)
                    beside = []
                region = self._lane_region([one], False)
                region.strided = strided
                yield region
            else:
                beside.append(one)
        if beside:
            yield self._lane_region(beside, is_last)

    def _is_syncwarp(self, statement) -> bool:
        return self.of(self.meetings[statement.id][0].named_children[0]) == WARP_BARRIER

    def _lane_region(self, statements: list, is_last: bool, at: int | None = None) -> Region:
        region = Region(statements, is_last, at)
        region.loop = "CAFFE_HOST_EACH_LANE"
        region.before, self.between = self.between, ""
        return region

    def _sending(self, beside: list, statement) -> Iterator[Region]:
        """The regions before a meeting: in the last one each lane gives what it sends. Inner meetings come first.

        statement: that of the meeting, or a condition.
        """
        calls = [call for call in self.meetings[statement.id] if call.id in self.sent]
        region: Region | None = self._lane_region(beside, False) if beside else None
        senders: list = []
        leaves = any(node.type == "return_statement" for one in beside for node in walk(one))
        if region is not None and leaves:
            yield region  # who leaves gives no type of what the others send
            region = None
        for call in sorted(calls, key=lambda c: (c.end_byte - c.start_byte, c.start_byte)):
            nested = any(o != call and call.start_byte <= o.start_byte < call.end_byte for o in calls)
            merges = senders and MERGE in (self.of(one.named_children[0]) for one in (call, senders[-1]))
            if region is not None and (nested or merges):
                self._end(region, senders)
                yield region
                region, senders = None, []
            region = region or self._lane_region([], False, statement.start_byte)
            name, value = (
                self.of(call.named_children[0]),
                call.child_by_field_name("arguments").named_children[1],
            )
            give = "(({}) != 0)" if name in VOTES else "{}"
            region.given.append((f"caffe_sent_{self.sent[call.id]}.put(caffe_t, {give});", value))
            senders.append(call)
        if region is not None:
            self._end(region, senders)
            yield region

    def _end(self, region: Region, senders: list):
        """What the warp does once with what a region has sent, before the next one."""
        if len(senders) == 1:
            self._move(region, senders[0])
        for call in senders:
            if self.of(call.named_children[0]) in VOTES:
                number = self.sent[call.id]
                ask, kind = (
                    ("all", "int") if self.of(call.named_children[0]) == ALL else ("vote", "unsigned int")
                )
                self.between += f" const {kind} caffe_vote_{number} = caffe_sent_{number}.{ask}(caffe_t);"

    def _move(self, region: Region, call):
        """Move what is sent once for the warp, if each lane's comes from as far."""
        name = self.of(call.named_children[0])
        arguments = call.child_by_field_name("arguments").named_children
        if name == MERGE:
            lanes, merge = (" ".join(self.of(one).split()) for one in arguments[2:])
            self._move_once(region, call, arguments[1], f"merge<{lanes}>(TYPE, caffe_t, {merge})")
            return
        if name not in MOVES or len(arguments) < 3:
            return
        width = self.of(arguments[3]) if len(arguments) > 3 else "32"
        once = [v for v in self.uses.variables(arguments[2]) if v.statement is not None and not v.is_uniform]
        if once or width not in ("32", WARP_SIZE) or not self.uniform.is_same(arguments[2], warp=True):
            return
        by = " ".join(self.of(arguments[2]).split())
        self._move_once(region, call, arguments[1], f"move_{MOVES[name]}(TYPE, caffe_t, {by})")

    def _move_once(self, region: Region, call, value, move: str):
        number = self.sent[call.id]
        region.loop = f"const auto caffe_type_{number} = {region.loop}"
        region.given.append(("return ::cuda_host::Type<decltype({})>();", value))
        self.moved.add(call.id)
        self.between = f" caffe_sent_{number}.{move};".replace("TYPE", f"caffe_type_{number}")

    def _of_the_warp(self, node, is_last: bool, in_loop: bool) -> bool:
        """Does this statement run once for the warp?"""
        kind = node.type
        if kind in TYPES:
            return True
        if kind == "declaration":
            beside = [v for v in self.uses.scopes if v.statement and v.statement == node]
            if not all(v.is_uniform for v in beside):
                return False
            self.asked += [v.value for v in beside if v.value is not None]
            return True
        if kind == "expression_statement":
            inside = node.named_children
            if inside and not self.uniform.is_step(inside[0]):
                return False
            self._ask_of_step(inside[0] if inside else None)
            return True
        if kind == "if_statement" and node.child_by_field_name("alternative") is None:
            way = node.child_by_field_name("consequence")
            if way.type == "compound_statement" and len(way.named_children) == 1:
                way = way.named_children[0]
            condition = node.child_by_field_name("condition")
            leaves = way.type in JUMPS and way.named_child_count == 0
            if not leaves or not self.uniform.is_same(condition, warp=True):
                return False
            self._check_jump(way, is_last, in_loop)
            self._ask(condition)
            return True
        if kind in JUMPS and node.named_child_count == 0:
            self._check_jump(node, is_last, in_loop)
            return True
        return False

    def _check_jump(self, jump, is_last: bool, in_loop: bool):
        if jump.type == "return_statement":
            if not is_last or in_loop:
                self.has_gone = True
            self.returns.append(jump)
            return
        self._check(in_loop, f"a {jump.type.split('_')[0]} of a warp", jump)

    def _ask(self, condition):
        """Have a condition asked once."""
        inner = condition.named_children
        self.asked += (
            inner if condition.type in ("condition_clause", "parenthesized_expression") else [condition]
        )

    def _ask_of_step(self, step):
        for node in walk(step) if step is not None else ():
            if node.type == "assignment_expression":
                self.asked.append(node.child_by_field_name("right"))

    def _around_warp(self, node, is_last: bool, in_loop: bool) -> Iterator[Region]:
        """The regions of a statement in which lanes meet."""
        part = node.child_by_field_name
        if node.type == "compound_statement":
            yield from self._lanes(node.named_children, is_last, in_loop)
            return
        known = node.type in (LOOPS - {"for_range_loop"}) | {"if_statement"}
        self._check(known, f"lanes meet in a {node.type.replace('_', ' ')}", node)
        condition = part("condition")
        if condition is not None:
            same = self.uniform.is_same(condition, warp=True)
            why = f"lanes meet under a condition that is not the same for a warp: {self.of(condition)}"
            self._check(same, why, condition)
            if condition.id in self.meetings:
                yield from self._condition(condition)
            self._ask(condition)
        if node.type == "if_statement":
            yield from self._arm(part("consequence"), is_last, in_loop)
            other = part("alternative")
            if other is not None:
                yield from self._arm(other.named_children[0], is_last, in_loop)
            return
        first, step = part("initializer"), part("update")
        if first is not None:
            once = (
                self._of_the_warp(first, False, False)
                if first.type == "declaration"
                else self.uniform.is_step(first)
            )
            why = "a loop in which lanes meet begins with what is not the same for a warp"
            self._check(once, why, first)
        same = step is None or self.uniform.is_step(step)
        self._check(same, "a step that is not the same for a warp", step)
        self._ask_of_step(step)
        yield from self._arm(part("body"), False, True)

    def _condition(self, condition) -> Iterator[Region]:
        """The regions of a condition in which lanes meet. They run within it, before its answer."""
        for region in self._sending([], condition):
            region.at = self._inner(condition).start_byte
            yield region
        self.conditions[self._inner(condition).id] = self.between
        self.between = ""

    @staticmethod
    def _inner(condition):
        wrapped = condition.type in ("condition_clause", "parenthesized_expression")
        return condition.named_children[0] if wrapped else condition

    def _arm(self, node, is_last: bool, in_loop: bool) -> Iterator[Region]:
        """The regions of a loop's body, or of an arm of an `if`."""
        if node.type == "compound_statement":
            yield from self._lanes(node.named_children, is_last, in_loop)
        elif node.id in self.meetings or node.id not in self.in_warp:
            # Without braces: several loops take the place of one statement.
            self.groups.append(([node], True))
            yield from self._lanes([node], is_last, in_loop)
        else:
            yield from self._around_warp(node, is_last, in_loop)

    def around_regions(self, regions: list[Region], kept: KeptVariables) -> list:
        edits: list[tuple[int, tuple[int, int, Any]]] = []
        for number, (statements, is_inner) in enumerate(self.groups):
            start, end = self.bounds(statements)
            inside = [i for i, region in enumerate(regions) if region.group == number]
            for variable in (v for v in kept.variables if v.region in inside and v.declarator is not None):
                named = [v for v in self.uses.variables(variable.declarator) if v is not variable]
                known = all(v.start < statements[0].start_byte for v in named)
                self._check(known, "a size that a warp knows", variable.declarator)
            opening = "".join(map(kept.structures, inside)) + " CAFFE_HOST_EACH_WARP "
            if self.has_gone:
                opening += "if (caffe_gone.nobody(caffe_t)) return; "
            edits.append((5 if is_inner else 4, (start, start, " {" if is_inner else opening)))
            edits.append((2 if is_inner else 3, (end, end, " }" if is_inner else " });")))
        return edits

    def once(self, kept: KeptVariables) -> list:
        edits: list[tuple[int, tuple[int, int, Any]]] = []
        for node in self.asked:
            used = [v for v in self._variables(node) if v.statement is not None and not v.is_uniform]
            votes = self.conditions.get(node.id, "")
            if used or votes:
                start, end = self.body.place(node)
                declared = kept.carried_into(-1, used)
                edits.append((0, (start, start, "[&] {")))
                edits.append((8, (start, start, f"{votes} {declared}return ")))
                self.late.append((end, end, "; }()"))
                self._check(
                    not self.has_gone or not any(v.is_kept for v in used), "what a lane that is gone has"
                )
        for node, text in self.before:
            start = self.body.place(node)[0]
            edits.append((8, (start, start, text)))
        for node in self.returns if self.has_gone else ():
            at = self.body.place(node)[0] + len("return")
            edits.append((0, (at, at, " caffe_gone.leave_warp(caffe_t)")))
        for calls in self.meetings.values():
            for call in calls:
                edits += self._receive(call)
        sent = "".join(f" ::cuda_host::Sent caffe_sent_{i};" for i in range(len(self.sent)))
        if self.has_gone:
            sent = sent.replace("::Sent", "::SentOf<::cuda_host::Gone>").replace(";", "{&caffe_gone};")
        self.places = sent
        return edits

    def _variables(self, node) -> list[Variable]:
        """Those of an expression that a warp computes once; what lanes send is no part of it."""
        if node.id in self.sent:
            return []
        if not any(n.id in self.sent for n in walk(node)):
            return self.uses.variables(node)
        return [v for child in node.named_children for v in self._variables(child)]

    def _receive(self, call) -> Iterator:
        """A meeting's call, of the values that its warp has sent."""
        number = self.sent.get(call.id)
        if number is None:
            return
        name = self.of(call.named_children[0])
        if name in VOTES:
            start, end = self.body.place(call)
            text = VOTES[name].format(f"caffe_vote_{number}")
            yield 0, (start, end, text + "\n" * self.source.text.count("\n", start, end))
            return
        value = call.child_by_field_name("arguments").named_children[1]
        if call.id in self.moved:
            start, end = self.body.place(call)

            def moved() -> str:
                kind = " ".join(self.render(*self.body.place(value)).split())
                return f"caffe_sent_{number}.got<decltype({kind})>(caffe_t)" + "\n" * self.source.text.count(
                    "\n", start, end
                )

            yield 0, (start, end, moved)
            return
        start, end = self.body.place(call.named_children[0])
        yield 0, (start, end, f"::cuda_host::{SHUFFLES[name]}")
        mask, value = (
            self.body.place(one) for one in call.child_by_field_name("arguments").named_children[:2]
        )
        after = self.tokens[
            position_from(self.tokens, value[1])
        ]  # with the comma, because edits may end at the value

        def received() -> str:
            kind = " ".join(self.render(*value).split())
            lines = "\n" * self.source.text.count("\n", mask[0], after.end)
            return f"~0u, caffe_sent_{number}.of<decltype({kind})>(caffe_t){lines}{after.text}"

        yield 0, (mask[0], after.end, received)


def warps_of(
    source: Source,
    function: Function,
    names: UnitNames,
    render: Callable[[int, int], str],
    shown: bool = False,
) -> tuple[list[tuple[int, int, Any]], list[tuple[int, int, str]]] | Reason:
    """The edits that make a kernel's warps loops, and those that go behind others, or why it must run on fibres.

    Args:
        render: gives a part of the text, with all edits.
        shown: functions that the kernel calls ask for the thread.
    """
    late: list = []

    def made(interchanges: bool) -> Warps:
        warps = Warps(source, function, names, render, interchanges)
        late[:] = [warps.late]
        return warps

    found = tried(source, function, made, shown)
    return found if isinstance(found, Reason) else (found, late[0])
