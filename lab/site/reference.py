"""The reference: a page for each public module, from the docstrings, which are read and not imported."""

from __future__ import annotations

from pathlib import Path

import griffe

import cuffi

from . import INNER

ROOT = Path(__file__).resolve().parents[2]
# The module, and what its page is called.
MODULES = {
    "caffe": "cuffi.caffe: pycaffe",
    "dnn": "cuffi.dnn: OpenCV's importer of Caffe",
    "train": "cuffi.train: solver files",
    "ffi": "cuffi.ffi: torch.utils.ffi",
    "judge": "cuffi.judge: is a kernel right?",
}
# Public names of modules without __all__.
NAMES = {"judge": ["judge"]}


class Undocumented(Exception):
    """Public names without a docstring."""


def package() -> griffe.Module:
    """The package, as griffe reads it."""
    return griffe.load("cuffi", search_paths=[ROOT], resolve_aliases=True, docstring_parser="google")


def target(found):
    """What a name stands for; None if it is no function, class or module of ours."""
    try:
        found = found.final_target if found.is_alias else found
    except griffe.AliasResolutionError:
        return None
    return found if found.kind.value in ("function", "class", "module") else None


def shown(thing) -> list[str]:
    """The members of a class that its part of a page has: its own public methods and properties, in their order."""
    own = [m for m in thing.members.values() if not m.is_alias and f"{thing.name}.{m.name}" not in INNER]
    kinds = [m.name for m in own if m.kind.value == "function" or "property" in m.labels]
    return [name for name in kinds if not name.startswith("_")]


def names() -> dict[str, str]:
    """The public names of `cuffi` itself, and the path of each."""
    inside = package()
    found = {}
    for name, place in cuffi._PUBLIC.items():
        thing = inside[f"{place}.{name}"]
        # A module of this name has the function in it.
        found[name] = f"cuffi.{place}.{name}.{name}" if thing.kind.value == "module" else target(thing).path
    return found


def of_module(module: str) -> dict[str, str]:
    """The public names of a public module, and the path of each."""
    inside = package()[module]
    wanted = NAMES.get(module) or [n for n in inside.exports if isinstance(n, str) and n[0] != "_"]
    found = {name: target(inside[name]) for name in sorted(wanted)}
    return {name: thing.path for name, thing in found.items() if thing}


def of_layers() -> dict[str, list[str]]:
    """The toolkit's own layers, and the public names of each: its operators, its modules and what takes Args."""
    found = {}
    for folder in sorted((ROOT / "layers").glob("[a-z]*/__init__.py")):
        layer = griffe.load(folder.parent.name, search_paths=[ROOT / "layers"])
        things = [m for m in layer.members.values() if not m.is_alias and not m.name.startswith("_")]
        found[folder.parent.name] = [m.name for m in things if m.kind.value == "class" or is_operator(m)]
    return found


def is_operator(thing) -> bool:
    """Is it a function that users call?"""
    if thing.kind.value != "function":
        return False
    decorated = any(str(d.value).startswith("operator(") for d in thing.decorators)
    return decorated or "Args:" in (thing.docstring.value if thing.docstring else "")


def entry(path: str, heading: str, members: list[str], level: int = 2) -> str:
    """What mkdocstrings makes a part of a page of."""
    lines = [f"::: {path}", "    options:", f"      heading: {heading}", f"      heading_level: {level}"]
    lines.append(f"      members: {members or 'false'}")
    return "\n".join(lines) + "\n"


def check(things: dict) -> None:
    """Each public name says what it is.

    Raises:
        Undocumented: these do not.
    """
    silent = [
        name for name, thing in things.items() if not (thing.docstring and thing.docstring.value.strip())
    ]
    if silent:
        raise Undocumented(f"without a docstring: {', '.join(sorted(silent))}")


def pages() -> dict[str, str]:
    """The pages of the reference, by file name.

    Raises:
        Undocumented: a public name has no docstring.
    """
    inside, things, made = package(), {}, {}

    def parts(public: dict[str, str], prefix: str) -> str:
        text = []
        for name, path in public.items():
            thing = things[f"{prefix}.{name}"] = target(inside[path.removeprefix("cuffi.")])
            members = shown(thing) if thing.kind.value == "class" else []
            things.update({f"{prefix}.{name}.{m}": thing[m] for m in members})
            if thing.kind.value == "module":
                members = [m.name for m in thing.members.values() if is_public_function(m)]
            text.append(entry(path, f"{prefix}.{name}", members))
        return "\n".join(text)

    made["cuffi.md"] = "# cuffi\n\n" + parts(names(), "cuffi")
    for module, title in MODULES.items():
        things[f"cuffi.{module}"] = inside[module]
        head = entry(f"cuffi.{module}", f"cuffi.{module}", [], 2)
        made[f"{module}.md"] = f"# {title}\n\n{head}\n" + parts(of_module(module), f"cuffi.{module}")
    text = "# The toolkit's own layers\n\n"
    for layer, public in of_layers().items():
        module = griffe.load(layer, search_paths=[ROOT / "layers"])
        things[f"cuffi.{layer}"] = module
        things.update({f"cuffi.{layer}.{name}": module[name] for name in public})
        text += entry(layer, f"cuffi.{layer}", []) + "\n"
        text += (
            "\n".join(
                entry(f"{layer}.{n}", f"cuffi.{layer}.{n}", [m for m in shown(module[n])], 3)
                if module[n].kind.value == "class"
                else entry(f"{layer}.{n}", f"cuffi.{layer}.{n}", [], 3)
                for n in public
            )
            + "\n"
        )
    made["layers.md"] = text
    check(things)
    return made


def is_public_function(thing) -> bool:
    """A function of a public module, such as caffe.io's."""
    return not thing.is_alias and thing.kind.value == "function" and not thing.name.startswith("_")
