"""A kernel's body in a form that phases.py and warps.py take, where it does the same.

    if (i < n) { ...; __syncthreads(); ... } }      if (!(i < n)) return; { ...; __syncthreads(); ... } }
    x += blockIdx.x * n;                            const float* caffe_own_x = x; caffe_own_x += blockIdx.x * n;

The first where the `if` is the last statement, the second for a parameter that is changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .conditions import HOST_BUILD
from .launches import parse
from .lexer import Lexed
from .outline import Parameter

HEAD = "void f()"
CHANGES = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}


def with_returns(body: str, meetings: Collection[str]) -> str:
    """The body, whose last `if` around a meeting lets the other threads return."""
    if not any(word in body for word in meetings):
        return body
    tree = parse(HEAD + re.sub(r"[^\x00-\x7f]", "_", body))
    if tree.has_error or not tree.named_children:
        return body
    block, edits = tree.named_children[0].child_by_field_name("body"), list[tuple[int, str]]()
    while block is not None and block.type == "compound_statement":
        inside = [node for node in block.named_children if node.type != "comment"]
        last = inside[-1] if inside else None
        if last is None or last.type != "if_statement" or last.child_by_field_name("alternative") is not None:
            break
        condition, block = (last.child_by_field_name(field) for field in ("condition", "consequence"))
        text = body[block.start_byte - len(HEAD) : block.end_byte - len(HEAD)]
        words = set(re.findall(r"\w+", text))
        known = condition.named_child_count == 1 and condition.named_children[0].type.endswith(
            ("expression", "identifier")
        )
        if block.type != "compound_statement" or not known or not words & set(meetings):
            break
        edits += [(condition.start_byte, "(!"), (condition.end_byte, ") return;")]
    for at, text in reversed(edits):
        body = body[: at - len(HEAD)] + text + body[at - len(HEAD) :]
    return body


def with_own_parameters(body: str, parameters: Sequence[Parameter]) -> str:
    """The body, with a variable in place of each parameter that is changed."""
    tokens = Lexed(body, HOST_BUILD).tokens
    declared = ""
    for parameter in parameters:
        kind = parameter.type.partition("=")[0].strip()
        uses = [i for i, token in enumerate(tokens) if token.text == parameter.name]
        uses = [i for i in uses if i and tokens[i - 1].text not in (".", "->", "::")]
        changed = any(
            tokens[i + 1].text in CHANGES or tokens[i - 1].text in ("++", "--")
            for i in uses
            if i + 1 < len(tokens)
        )
        if not changed or set(kind) & set("&[(<") or not parameter.name.isidentifier():
            continue
        own = f"caffe_own_{parameter.name}"
        declared += f" {kind} {own} = {parameter.name};"
        for i in reversed(uses):
            start = tokens[i].start
            body = body[:start] + own + body[start + len(parameter.name) :]
        tokens = Lexed(body, HOST_BUILD).tokens
    return body[:1] + declared + body[1:] if declared else body
