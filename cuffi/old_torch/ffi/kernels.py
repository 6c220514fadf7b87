"""The .cu files of an extension's objects, and their options for nvcc."""

import json
import os
from pathlib import Path
from typing import NamedTuple

# Options of nvcc whose value is the next word.
TAKE_A_WORD = (
    "-o", "-D", "-I", "-x", "-arch", "-gencode", "-code", "-Xcompiler", "-Xptxas", "-ccbin", "-std", "-L", "-l",
    "-include", "--gpu-architecture", "--gpu-code", "--compiler-options", "--output-file", "--generate-code",
)  # fmt: skip
# The first bytes of an object's file that the stand-in for nvcc wrote: it contains the command.
NOTE = '{"cuffi nvcc": '


class Unit(NamedTuple):
    """A .cu file. flags: -D and -I of nvcc's command. folders: those of its -I."""

    source: Path
    flags: list[str]
    folders: list[Path]


def looks_like_cuda(path: Path) -> bool:
    return ".cu" in path.suffixes or "cuda" in path.name or "kernel" in path.name


def units_of(path: Path, base: Path) -> list[Unit]:
    """The kernels of an object: by the command from the stand-in for nvcc, otherwise by its name."""
    try:
        text = path.read_bytes()[: 1 << 16]
    except OSError:
        text = b""
    if text.startswith(NOTE.encode()):
        return [unit(note, Path(note["folder"])) for note in json.loads(text)["cuffi nvcc"]]
    found = _by_name(path, base)
    return [found] if found else []


def unit(note: dict, folder: Path) -> Unit:
    """The unit of one source and its options, which are relative to a folder."""
    absolute = lambda name: Path(os.path.normpath(folder / name))  # noqa: E731
    folders = [absolute(w[2:]) for w in note["flags"] if w.startswith("-I")]
    flags = [w for w in note["flags"] if not w.startswith("-I")]
    own = [f"-I{f}" for f in folders if not str(f).startswith(("/usr/", "/opt/cuda"))]
    return Unit(absolute(note["source"]), [*flags, *own], folders)


def parsed(words: list[str]) -> tuple[str, list[str], list[str]]:
    """(the output, the inputs, the -D and -I) of a command of nvcc."""
    output, inputs, flags, words = "", [], [], list(words)
    while words:
        word = words.pop(0)
        value = words.pop(0) if word in TAKE_A_WORD and words else ""
        if word in ("-o", "--output-file"):
            output = value
        elif word in ("-D", "-I"):
            flags.append(word + value)
        elif word.startswith(("-D", "-I")):
            flags.append(word)
        elif not word.startswith("-"):
            inputs.append(word)
    return output, inputs, flags


def _by_name(path: Path, base: Path) -> Unit | None:
    """By the stem: x.cu.o, x.o or x.so comes from x.cu or x_kernel.cu, otherwise from the only .cu in its folder."""
    stem = path.name.split(".")[0]
    if not looks_like_cuda(path) and path.suffix not in (".o", ".so"):
        return None
    found = sorted(base.glob("**/*.cu"))
    for fits in (
        lambda f: f.stem == stem, lambda f: f.stem == f"{stem}_kernel", lambda f: f"{f.stem}_kernel" == stem,
        lambda f: f.parent == path.parent and (f.stem.startswith(stem) or stem.startswith(f.stem)),
        lambda f: f.parent == path.parent and len([g for g in found if g.parent == f.parent]) == 1,
    ):  # fmt: skip
        if those := [f for f in found if fits(f)]:
            nearest = min(those, key=lambda f: len(os.path.relpath(f, path.parent).split(os.sep)))
            return Unit(nearest, [], [])
    return None
