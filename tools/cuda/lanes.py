"""The calls of functions that ask which lanes are at their place: each says where it stands."""

from __future__ import annotations

from .analysis import Unit
from .conditions import Token
from .names import LANES
from .outline import skip_angles
from .rewrite import Rewriter
from .tokens import macro_body, match_brackets


def column(file: Rewriter, token: Token, in_macro: bool) -> str:
    """What tells two places on one line: the column, or a number for each use of a macro."""
    return "4096 + __COUNTER__" if in_macro else str(file.source.lexed.position(token.start)[1])


def calls_to_lanes(file: Rewriter, unit: Unit):
    """Tell the calls of a function that asks for the lanes at its place: two arms of an `if` may call it."""
    functions = {f.name for source in unit.sources for f in source.functions if not f.is_kernel}
    asking = functions & unit.leading_to(LANES)
    bodies = [(file.source.lexed.tokens, file.source.lexed.partner)] if asking else []
    bodies += [(body, match_brackets(body)) for body in map(macro_body, file.source.macros) if asking]
    for tokens, partner in bodies:
        for i, token in enumerate(tokens[:-1]):
            if token.text not in asking or token.start in file.source.defined_at:
                continue
            after = i + 1
            if tokens[after].text == "<":
                after = skip_angles(tokens, partner, after, len(tokens))
            if after >= len(tokens) or tokens[after].text != "(" or after not in partner:
                continue
            if bodies[0][0] is tokens and not file.in_device_code(token.start):
                continue
            first = i
            while (
                first > 1 and tokens[first - 1].text in (".", "->", "::") and tokens[first - 2].kind == "name"
            ):
                first -= 2
            first -= first > 0 and tokens[first - 1].text == "::"
            if first and tokens[first - 1].text in (".", "->"):
                file.refuse(
                    token.start, f"{token.text} asks for the lanes at its place; call it by a variable"
                )
                continue
            at = column(file, token, in_macro=tokens is not bodies[0][0])
            file.edit(tokens[first].start, tokens[first].start, f"(::cuda_host::From(__LINE__, {at}), ")
            end = tokens[partner[after]].end
            file.edit(end, end, ")")
