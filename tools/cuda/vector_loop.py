"""Decide which kernel loops become vector loops. In a vector loop, a thread moves 16 bytes at once.

include/caffe_vector_loop.h explains them. The result must not change for any pointers: equal, overlapping, misaligned,
or NULL under a condition. So a loop must pass every test here, or it stays as it is.
`decide` names the first test that failed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .analysis import CHANGES, Kernel, Unit
from .certain import CONTROL, Loop, only_loop
from .source import Source

# Code with such words may read memory in another order, or more than once.
OTHER_CONTROL = CONTROL | {"asm", "__asm__", "new", "delete"}
# Longer bodies are limited by arithmetic, and several copies of them need too many registers.
LONGEST_BODY = 250
POINTER = re.compile(
    r"(?:const )?(?:unsigned )?[A-Za-z_]\w*(?: const)? ?\*(?: ?const)?(?: ?__restrict(?:__)?)?\Z"
)


class VectorLoop(NamedTuple):
    """Offsets are into the source's text."""

    head: tuple[int, int]  # CUDA_KERNEL_LOOP(i, n)
    body: tuple[int, int]  # the statement that it repeats
    index: str
    count: str
    windows: tuple[tuple[str, str], ...]  # (pointer, READ | WRITE | UPDATE)


class NoVectorLoop(Exception):
    """Why a loop stays as it is."""


def decide(unit: Unit, source: Source, kernel: Kernel) -> VectorLoop | str:
    """The kernel's vector loop, or the reason why it has none."""
    try:
        return _Loop(unit, source, kernel).vector_loop()
    except NoVectorLoop as reason:
        return str(reason)


def _require(condition: bool, reason: str):
    if not condition:
        raise NoVectorLoop(reason)


class _Loop:
    def __init__(self, unit: Unit, source: Source, kernel: Kernel):
        self.source, self.kernel = source, kernel
        self.tokens, self.partner = source.lexed.tokens, source.lexed.partner
        self.macros = {
            m.tokens[0].text: {t.text for t in m.tokens[1:]} for s in unit.sources for m in s.macros
        }

    def vector_loop(self) -> VectorLoop:
        kernel, tokens = self.kernel, self.tokens
        _require(kernel.has_loop, "no kernel loop")
        _require(not kernel.returns_in_loop, "a return in the loop")
        _require(not kernel.breaks_loop, "a break out of the loop")
        _require(not kernel.carries, "a variable from outside of the loop is changed")
        _require(kernel.mode == "kRange", "code that uses the thread's index, or more than one plain loop")
        loop = only_loop(self.source, kernel)
        if isinstance(loop, str):
            raise NoVectorLoop(loop)
        self._check_body(loop)
        windows = self._windows(loop)
        _require(bool(windows), "no pointer that is always used as [" + loop.index + "]")
        head, body = ((tokens[part[0]].start, tokens[part[-1]].end) for part in (loop.head, loop.body))
        return VectorLoop(head, body, loop.index, loop.count, windows)

    def _check_body(self, loop: Loop):
        """Check that an element's reads all come before its write."""
        tokens, first, last, index = self.tokens, loop.first, loop.last, loop.index
        self.pointers = {p.name for p in self.kernel.parameters if "*" in p.type}
        for p in self.kernel.parameters:
            _require(
                "*" not in p.type or bool(POINTER.match(p.type.strip())), f"{p.name} is of type {p.type}"
            )
        _require(last - first <= LONGEST_BODY, "a long body")
        for k in loop.kernel:
            word = tokens[k].text
            in_body = first <= k < last
            if word in self.pointers:
                _require(in_body and tokens[k + 1].text == "[", f"{word} is used other than as {word}[...]")
            hidden = self.macros.get(word)
            _require(
                not hidden or not hidden & (self.pointers | {"[", "*", "=", "return"}), f"the macro {word}"
            )
            if not in_body:
                continue
            _require(word not in OTHER_CONTROL, f"'{word}' in the loop")
            _require(word != "&", "an address or a reference is taken")
            if tokens[k + 1].text == "[" and word not in self.pointers:
                _require(
                    tokens[k].kind != "name" and word not in (")", "]"), f"{word}[...] is not a parameter"
                )
            if word == index:
                _require(tokens[k - 1].kind != "name", f"another {index}")
        self.writes = [k for k in range(first, last) if self._is_write(k)]
        _require(len(self.writes) == 1, f"{len(self.writes)} writes to memory")
        after = next(k for k in range(self.writes[0], last) if tokens[k].text == ";")
        reads_after = [t.text for t in tokens[after:last] if t.text in self.pointers]
        _require(not reads_after, "memory is read after the write")

    def _is_write(self, k: int) -> bool:
        if self.tokens[k].text not in self.pointers:
            return False
        behind = self.tokens[self.partner[k + 1] + 1].text
        return behind in CHANGES or self.tokens[k - 1].text in ("++", "--")

    def _windows(self, loop: Loop) -> tuple[tuple[str, str], ...]:
        """The pointers whose elements can be in registers: used only as p[i], and for every element.

        A pointer that is used only under a condition may be NULL otherwise, as optional bottoms are.
        """
        tokens, sure = self.tokens, loop.sure
        windows = []
        for parameter in self.kernel.parameters:
            name = parameter.name
            uses = [
                k for k in range(loop.first, loop.last) if tokens[k].text == name and name in self.pointers
            ]
            only_by_index = all(tokens[k + 2].text == loop.index and tokens[k + 3].text == "]" for k in uses)
            if not uses or not only_by_index or not any(k in sure for k in uses):
                continue
            write = self.writes[0]
            if write not in uses:
                windows.append((name, "READ"))
            elif len(uses) == 1 and write in sure and tokens[self.partner[write + 1] + 1].text == "=":
                windows.append((name, "WRITE"))
            else:
                windows.append((name, "UPDATE"))
        return tuple(windows)
