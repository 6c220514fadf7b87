"""Cooperative groups: the block, and parts of a warp. What holds of a block's barrier holds of its sync()."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .types import INT, UNSIGNED, NotFollowed
from .values import Group, Number, Opaque, Value, number

if TYPE_CHECKING:
    from .expressions import Expressions

NAMESPACES = ("cg", "cooperative_groups")
ALIAS = re.compile(r"namespace\s+cg\s*=\s*(::\s*)?cooperative_groups\s*;")
WORDS = re.compile(
    r"(const\s+)?((cg|cooperative_groups)\s*::\s*)?(thread_block|thread_block_tile\s*<.*>)\s*&?"
)
TILE = re.compile(
    r"(?:const\s+)?(?:cg|cooperative_groups)\s*::\s*thread_block_tile\s*<\s*\d+\s*>\s*(\w+)\s*="
)
OF_TILES = ("sync", "shfl", "shfl_up", "shfl_down", "shfl_xor", "any", "all", "ballot")


class Groups:
    def __init__(self, expressions: Expressions):
        self.its = expressions

    def made(self, name: str, words: list[str], arguments: list, node) -> Value | None:
        """What a function of cooperative groups gives, such as a group; None of another function."""
        if name == "this_thread_block" and not arguments:
            return Group()
        if name == "tiled_partition" and len(words) == 1 and len(arguments) == 1 and words[0].isdigit():
            its = self.its.value(arguments[0])
            if isinstance(its, Group) and int(words[0]) in (1, 2, 4, 8, 16, 32):
                return Group(int(words[0]))
        if (
            name == "sync"
            and len(arguments) == 1
            and isinstance(group := self.its.value(arguments[0]), Group)
        ):
            return self.value(group, name, [], node)
        return None

    def value(self, group: Group, name: str, arguments: list, node) -> Value:
        """What one of its functions gives."""
        its, thread = self.its, self.its.thread
        values = [its.value(one) for one in arguments]
        if name == "sync" and group.size == 0:
            thread.meet(its.line(node))
            return Opaque()
        if name == "thread_rank" and not arguments:
            rank = self._rank()
            return rank if not group.size else its.math.binary("%", rank, number(group.size, UNSIGNED))
        if name in ("size", "num_threads") and not arguments:
            return number(group.size, UNSIGNED) if group.size else self._count()
        if name == "meta_group_rank" and group.size:
            return its.math.binary("/", self._rank(), number(group.size, UNSIGNED))
        if name in OF_TILES and group.size:
            its.calls.has_shuffles = True
            if name.startswith("shfl") and values:
                sent = values[0]
                return thread.fresh(sent.type, "sent") if isinstance(sent, Number) else sent
            return thread.fresh(UNSIGNED if name == "ballot" else INT, "vote")
        raise NotFollowed(f"{its.of(node)[:40]}: this of a group is not followed", node)

    def _rank(self) -> Number:
        """The thread's number in its block. Who does not name threadIdx.y has one thread along y (proof.py)."""
        math = self.its.math
        self.its.used.add("threadIdx.x")
        if not re.search(r"threadIdx\s*\.\s*[yz]", self.its.text.source.text):
            return self.its.thread.index["threadIdx.x"]
        x, y, z = (self.its.thread.index[f"threadIdx.{axis}"] for axis in "xyz")
        wide, high = (self.its.thread.index[f"blockDim.{axis}"] for axis in "xy")
        rows = math.binary("+", math.binary("*", z, high), y)
        return math.binary("+", math.binary("*", rows, wide), x)

    def _count(self) -> Number:
        math, index = self.its.math, self.its.thread.index
        return math.binary(
            "*", math.binary("*", index["blockDim.x"], index["blockDim.y"]), index["blockDim.z"]
        )
