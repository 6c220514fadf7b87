"""Find names that a layer's files use and that nothing declares. No compiler accepts such files.

A fork's last commit may not compile. Or a source and its header may be of different versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ..cuda.lexer import Token
from ..cuda.source import Source
from ..cuda.tokens import position_from
from .core import OF_A_LAYER
from .items import Class
from .plan import Pick, Problem
from .tree import SOURCE_KINDS

# A data member's name in Caffe's style. The system has no such names.
MEMBER = re.compile(r"[a-z]\w*[a-z0-9]_\Z")
# Other names may be macros, constants and types. Libraries have many of these.
NAME = re.compile(r"[a-z]\w*\Z")
# Tokens before a name that is used and not declared, and words that do not begin a declaration.
USED_BEHIND = re.compile(r"[(,=;{}!<+\-/[?|%]|return|&&|\|\||<<|[=!<>+\-*/]=|->")
NO_TYPE = re.compile(r"return|else|case|goto|new|delete|throw|do|using|namespace")
WORDS = re.compile(
    "and|auto|bool|break|case|catch|char|class|const|const_cast|constexpr|continue|decltype|default|delete|do|double|"
    "dynamic_cast|else|enum|explicit|extern|false|float|for|friend|goto|if|inline|int|long|mutable|namespace|new|"
    "noexcept|not|nullptr|operator|or|private|protected|public|register|reinterpret_cast|return|short|signed|sizeof|"
    "static|static_assert|static_cast|struct|switch|template|this|throw|true|try|typedef|typeid|typename|union|"
    "unsigned|using|virtual|void|volatile|while"
)
# Macros that take a class and define no functions of it.
KNOWN = re.compile("(INSTANTIATE|REGISTER)_|DISABLE_COPY")


def undeclared(pick: Pick) -> Iterator[Problem]:
    yield from functions_lacking(pick)
    yield from names_lacking(pick)
    yield from static_lacking(pick)
    yield from virtual_lacking(pick)


def functions_lacking(pick: Pick) -> Iterator[Problem]:
    """Functions that a source defines and its class does not declare."""
    for file in (file for file in pick.files if file.endswith(SOURCE_KINDS)):
        source = pick.tree[file].source
        for name in sorted(n for n in pick.tree[file].implements if n.lower().endswith("layer")):
            if name not in pick.toolkit.classes and not is_visible(pick, name, file):
                at = next(token for token in source.lexed.tokens if token.text == name)
                text = f"{name} is defined or instantiated here, and no header that this file includes declares it"
                yield Problem(pick.tree[file].place(at), text, True)
        for function in (function for function in source.functions if not function.member):
            name = function.name.lstrip("~")
            words_of_classes = [words_of(cls) for cls in pick.tree.classes(function.scope)]
            if words_of_classes and not any(words is None or name in words for words in words_of_classes):
                text = (
                    f"{function.scope}'s {function.name} is defined here, and its class does not declare it"
                )
                yield Problem(pick.tree[file].place(function.at), text, True)


def names_lacking(pick: Pick) -> Iterator[Problem]:
    """Variables and functions that a source uses, and that neither its headers nor the system declare."""
    names = pick.names
    for file in (file for file in pick.files if file.endswith(SOURCE_KINDS)):
        used = names_used(pick.tree[file].source)
        unknown = used.keys() - names.words_seen(file)
        free = [name for name in unknown if not MEMBER.match(name)]
        if free:
            declared = set(free) - names.compiler.undeclared(free, names.systems_headers(file))
            unknown -= {name for name in free if name in declared or names.is_messages(name)}
        defines = "".join(f"#define {switch}\n" for switch in ("USE_CUDA", *pick.switches))
        for token, user in sorted((used[name] for name in unknown), key=lambda use: use[0].start):
            if names.compiler.is_reached(defines + pick.tree[file].text, len(defines) + token.start):
                text = f"{user} uses {token.text}, which no header that this file includes declares"
                yield Problem(pick.tree[file].place(token), text, True)
                break


def names_used(source: Source) -> dict[str, tuple[Token, str]]:
    """The names that functions use and that the source does not declare: {name: (first use, its function or class)}."""
    declared, uses = declared_in(source), {}
    tokens = source.lexed.tokens
    for i, token in enumerate(tokens[1:-1], 1):
        if token.text not in declared and is_name(token.text) and is_used(tokens, i):
            around = source.function_around(token.start)
            # Compilers of kernels have functions that no header declares.
            is_gpus = around and around.is_device_only and tokens[i + 1].text in ("(", "<")
            if around and not is_gpus:
                uses.setdefault(token.text, (token, around.scope or around.name))
    return uses


def is_name(text: str) -> bool:
    return bool(NAME.match(text)) and not WORDS.fullmatch(text)


def is_used(tokens: list[Token], i: int) -> bool:
    """Is the token a variable or function, and not a label, a scope, or a member of another object?"""
    before, after = tokens[i - 1].text, tokens[i + 1]
    if before == "->":
        return tokens[i - 2].text == "this" and bool(MEMBER.match(tokens[i].text))
    is_label = after.text == ":" and before in (";", "{", "}")
    return (
        bool(USED_BEHIND.fullmatch(before)) and after.kind != "name" and after.text != "::" and not is_label
    )


def declared_in(source: Source) -> set[str]:
    """The names that a source may declare: those outside of functions, of macros, and those after a type."""
    tokens, names, outer = source.lexed.tokens, set(), []
    is_declaring = False  # a statement that declares a name may declare others after commas
    for i, token in enumerate(tokens[1:], 1):
        before = tokens[i - 1]
        if token.text in ("(", "[", "{"):
            outer.append(is_declaring)
            is_macros = token.text == "(" and before.text.isupper()  # FOR(i, n)
            is_binding = token.text == "[" and before.text in ("auto", "&")  # auto& [a, b]
            is_declaring = is_macros or is_binding or "enum" in (before.text, tokens[i - 2].text)
        elif token.text in (")", "]", "}"):
            is_declaring = bool(outer) and outer.pop() and token.text != "}"
        elif token.text == ";":
            is_declaring = False
        elif token.kind == "name":
            is_typed = before.kind == "name" and not NO_TYPE.fullmatch(before.text)
            is_typed = is_typed or before.text in ("*", "&", ">", "&&", ">>", "]", "...")
            is_declaring = is_declaring or is_typed
            if is_typed or (is_declaring and before.text in (",", "(", "[", "{")):
                names.add(token.text)
    at = 0
    for function in (f for f in source.functions if f.body > at):
        body = position_from(tokens, function.body)
        names.update(token.text for token in tokens[at:body])
        at = position_from(tokens, function.end)
    names.update(token.text for token in tokens[at:])
    return names.union(*({token.text for token in line.tokens} for line in source.lexed.directives))


def static_lacking(pick: Pick) -> Iterator[Problem]:
    """X::name, where the fork's class X has neither this member nor a base class."""
    for file, tokens in pick.scanned:
        for i, token in enumerate(tokens[:-2]):
            if tokens[i + 1].text != "::" or tokens[i + 2].kind != "name":
                continue
            classes = pick.tree.classes(token.text) if token.text in pick.tree.class_names else []
            if len(classes) == 1 and classes[0].file in pick.files:
                words = words_of(classes[0])
                if not classes[0].bases and words is not None and tokens[i + 2].text not in words:
                    text = f"{pick.target.name} uses {token.text}::{tokens[i + 2].text}, which that class does not have"
                    yield Problem(pick.tree[file].place(token), text, True)
                    break


def virtual_lacking(pick: Pick) -> Iterator[Problem]:
    """Virtual functions that no source defines. The linker needs them, even if nobody calls them.

    Missing GPU functions do not count: the build adds these.
    """
    sources = [pick.tree[file].source for file in pick.files]
    by_macros = set().union(*map(named_in_macros, sources))
    defined: dict[str, set[str]] = {}
    for function in (function for source in sources for function in source.functions):
        defined.setdefault(function.scope, set()).add(function.name)
    for name in sorted(pick.class_names & defined.keys() - by_macros):
        for cls in (cls for cls in pick.tree.classes(name) if cls.file in pick.files):
            for item in cls.members:
                words = [token.text for token in item.tokens]
                is_open = "virtual" in words and not item.defines and words[-3:-2] != ["="]
                if is_open and item.name not in {*defined[name], *OF_A_LAYER}:
                    text = f"{name}'s {item.name} is virtual, and no source that is compiled defines it"
                    yield Problem(pick.tree[cls.file].place(item), text, True)


def named_in_macros(source: Source) -> set[str]:
    """The classes whose functions calls of macros may define, such as STUB_GPU(Name)."""
    tokens = source.lexed.tokens
    return {
        token.text
        for macro, before, token in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if before.text == "(" and macro.text.isupper() and not KNOWN.match(macro.text)
    }


def is_visible(pick: Pick, name: str, file: str) -> bool:
    """Does a file see a class of this name through its includes?"""
    return any(cls.file in pick.tree[file].visible for cls in pick.tree.classes(name))


def words_of(cls: Class) -> set[str] | None:
    """The words of a class; None if macros declare some of its members."""
    texts = [token.text for token in cls.tokens]
    macros = {text for text, after in pairwise(texts) if after == "(" and text.isupper() and len(text) > 1}
    return None if macros - {"DISABLE_COPY_AND_ASSIGN", "CHECK", "NOT_IMPLEMENTED"} else set(texts)
