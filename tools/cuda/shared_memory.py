"""Shared and constant variables: `extern __shared__ T s[];` becomes a pointer, a `__constant__` the file's own."""

from __future__ import annotations

from typing import NamedTuple

from .conditions import Token
from .outline import split_commas
from .rewrite import Rewriter
from .tokens import match_brackets, position_from

RECORDS = {"struct", "union", "class"}


class _Array(NamedTuple):
    """An array of unknown size: T name[][32]."""

    types: list[Token]  # before the name
    name: Token
    opening: Token  # the bracket after the name, and its partner
    closing: Token
    sizes: str  # of each element: "[32]"
    end: int  # offset after it

    @classmethod
    def of(cls, tokens: list[Token]) -> _Array | None:
        """None if the tokens are another declaration."""
        at = next((i for i, token in enumerate(tokens) if token.text == "["), 0)
        shape = [token.text for token in tokens[at : at + 2]]
        partner, after = match_brackets(tokens), at + 2
        while after < len(tokens) and tokens[after].text == "[" and after in partner:
            after = partner[after] + 1
        if not at or shape != ["[", "]"] or tokens[at - 1].kind != "name" or after != len(tokens):
            return None
        sizes = "".join(token.text for token in tokens[at + 2 :])
        return cls(tokens[: at - 1], tokens[at - 1], tokens[at], tokens[at + 1], sizes, tokens[-1].end)

    def value(self, type_text: str) -> str:
        return f"::cuda_host::dynamic_shared<{type_text}{self.sizes}>()"


def constant(file: Rewriter, tokens, index: int, declared: set[str]):
    """Each file has its own `__constant__` variables but those that are declared `extern`. Name them to the race
    finder.
    """
    partner = file.source.lexed.partner
    last = names = index
    while names and tokens[names - 1].text not in (";", "}", "{"):
        names -= 1
    while last < len(tokens) and tokens[last].text != ";":
        last = partner.get(last, last) + 1 if tokens[last].text in ("(", "[", "{") else last + 1
    words = {token.text for token in tokens[names:last]}
    if last >= len(tokens) or words & {"extern", "template", "#"} or _in_scope(file, index):
        return
    found = [
        t.text
        for t, after in zip(tokens[index:last], tokens[index + 1 : last + 1], strict=True)
        if t.kind == "name" and after.text in (";", ",", "=", "[", "{")
    ]
    inside = {t.text for i in range(index, last) if i in partner for t in tokens[i : partner[i]]}
    given = "".join(f" CAFFE_HOST_CONSTANT({name})" for name in found if name not in inside)
    file.edit(tokens[last].end, tokens[last].end, given)
    if not words & {"static", "inline"} and not declared.intersection(found):
        file.edit(tokens[index].start, tokens[index].start, "static ")


def shared(file: Rewriter, tokens, index: int, in_macro: bool):
    """Rewrite the declaration around a `__shared__`: the tokens from its first word to its `;`."""
    first = index
    while first and tokens[first - 1].text not in (";", "{", "}", ")", ":", ">"):
        first -= 1
    last = index
    depth = body = 0  # body: the end of a type's definition
    while last < len(tokens) and not (tokens[last].text == ";" and depth == 0):
        depth += (tokens[last].text in ("(", "[", "{")) - (tokens[last].text in (")", "]", "}"))
        if tokens[last].text == "{" and {t.text for t in tokens[last - 2 : last]} & RECORDS:
            last = body = match_brackets(tokens)[last] + 1
            depth -= 1
            continue
        if (tokens[last].text == "=" and depth == 0) or tokens[last].text == "{":
            file.refuse(
                tokens[index].start,
                "a __shared__ variable with an initial value; CUDA has none, assign it in one thread",
            )
            return
        last += 1
    declaration = tokens[first:last]
    words = [token.text for token in declaration]
    if "extern" in words:
        _dynamic_shared(file, declaration, in_macro)
    else:
        for token in tokens[index:last] if not body else []:
            if token.text == "alignas":  # g++ wants it before `static`, or as an attribute
                file.edit(token.start, token.end, "__align__")
        for token in [*tokens[first:index], *tokens[max(body, index) : last]]:
            if token.text == "static":  # include/host defines __shared__ as static, too
                file.edit(token.start, token.end, "")
        if not in_macro and last < len(tokens):
            _fits(file, tokens, max(body, index), last)


def _fits(file: Rewriter, tokens, first: int, last: int):
    """Refuse more static shared memory than nvcc does, of this declaration and of those before it in its blocks."""
    partner = file.source.lexed.partner
    names = []
    for i in range(last - 1, first, -1):
        before = tokens[i - 1]
        is_name = tokens[i].kind == "name" and tokens[i + 1].text in (";", ",", "[")
        if is_name and (before.kind == "name" or before.text in (",", ">", ")", "}", "*")):
            names.insert(0, tokens[i].text)
    block = next((i for i in range(first, -1, -1) if tokens[i].text == "{" and partner.get(i, 0) > first), -1)
    above = [name for begin, end, found in file.static_shared for name in found if begin < first < end]
    file.static_shared.append((first, partner.get(block, last), names))
    if names and block >= 0 and _in_scope(file, first):
        sizes = " + ".join(f"sizeof({name})" for name in dict.fromkeys([*above, *names]))
        at = tokens[last].start
        file.edit(at, at, f"; static_assert({sizes} <= ::cuda_host::kMostStatic, CAFFE_HOST_TOO_MUCH)")


def _in_scope(file: Rewriter, index: int) -> bool:
    """Is this token in a function or a class?"""
    classes = (part for parts in file.source.classes.values() for part in parts)
    start = file.source.lexed.tokens[index].start
    return file.source.function_around(start) is not None or any(a <= index <= b for a, b in classes)


def _dynamic_shared(file: Rewriter, declaration, in_macro: bool):
    """extern __shared__ <alignment> T a[], b[];"""
    skipped, kept, depth = [], [], 0
    aligning = False
    # `__align__(16)` and the like are removed, too, because the host aligns for every type.
    for token in declaration:
        if aligning:
            depth += (token.text == "(") - (token.text == ")")
            aligning = depth > 0
            skipped.append(token)
        elif token.text in ("__align__", "alignas", "__attribute__"):
            aligning = True
            skipped.append(token)
        elif token.text in ("extern", "__shared__", "static"):
            skipped.append(token)
        else:
            kept.append(token)
    parts = list(split_commas(kept, match_brackets(kept), 0, len(kept)))
    arrays = [array for a, b in parts if (array := _Array.of(kept[a:b]))]
    types = arrays[0].types if arrays else []
    place = declaration[0].start
    in_function = in_macro or file.source.function_around(place) is not None
    unlike = not in_function and len({array.sizes for array in arrays}) > 1
    if not types or len(arrays) < len(parts) or any(array.types for array in arrays[1:]) or unlike:
        file.refuse(place, "extern __shared__ in an unusual form; write `extern __shared__ T name[];`")
        return
    for token in skipped:
        file.edit(token.start, token.end, "")
    type_text = " ".join(token.text for token in types)
    for array in arrays:
        name, bracket, end = array.name, array.opening.start, array.closing.end
        between, value = file.text[bracket + 1 : end - 1], array.value(type_text)
        if in_function and array.sizes:
            file.edit(name.start, name.start, "(*")
            file.edit(bracket, end, f"{between})")
            file.edit(array.end, array.end, f" = {value}")
        elif in_function:
            file.edit(name.start, name.start, "*")
            file.edit(bracket, end, f"{between} = {value}")
        else:
            _local_shared(file, name, f"auto* {name.text} = {value};")
            file.edit(bracket, array.end, between + "\n" * file.text.count("\n", end, array.end))
    if not in_function:
        file.edit(types[0].start, types[0].start, "static ::cuda_host::DynamicShared<")
        file.edit(types[-1].end, types[-1].end, f"{arrays[0].sizes}>")


def _local_shared(file: Rewriter, name, declaration: str):
    """Declare a pointer in each function of this file that uses dynamic shared memory from outside of it.

    An object cannot replace an array everywhere: reinterpret_cast cannot cast it, and a template cannot deduce T*
    from it. The object outside stays for macros and other files.
    """
    tokens = file.source.lexed.tokens
    for function in file.source.functions:
        if function.body < name.start or name.text in (p.name for p in function.parameters):
            continue
        first, last = position_from(tokens, function.body), position_from(tokens, function.end)
        uses = [i for i in range(first, last) if tokens[i].text == name.text]
        before = [tokens[i - 1] for i in uses if tokens[i - 1].text not in (".", "->", "::")]
        # A word before it is the type of a local variable of this name, which hides the one outside.
        if before and not any(token.kind == "name" and token.text != "return" for token in before):
            file.edit(function.body + 1, function.body + 1, f" {declaration}")
