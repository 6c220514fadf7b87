"""Write a layer's folder: the fork's files byte for byte, flat, and ORIGIN, which says where they come from."""

from __future__ import annotations

import functools
import hashlib
import os
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path

from tools.files import write
from tools.make.folders import shown, why_no_layer
from tools.refused import Refused

from ..make.prepare import INIT
from ..make.proto import PACKAGE, is_whole, read, without_comments
from .core import BLOB
from .cuts import in_caffe, written
from .git import repository_of
from .plan import Pick
from .toolkit_headers import Toolkit
from .tree import PROTO, SOURCE_KINDS, Tree


def folder_name(pick: Pick) -> str:
    """The folder's name: psroi_pooling of psroi_pooling_layer.cpp, or of the type if the source's name is another."""
    stems = [Path(f).stem for f in pick.tree.members(pick.target.name) if f.endswith(SOURCE_KINDS)]
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", pick.type).lower()
    for name in [*(s.removesuffix("_layer") for s in stems if s.endswith("_layer")), snake]:
        if name.replace("_", "") == pick.type.lower() and name.isidentifier():
            break
    else:
        name = snake
    return name + "_layer" if why_no_layer(name) else name


def places(files: list[str], tree: Tree, toolkit: Toolkit) -> dict[str, str]:
    """By file of the tree, its path in the folder.

    Files lie flat in the folder, unless two have the same name, or one would hide a header of the toolkit's. Such a
    file keeps its path below include/caffe or src/caffe. So does a file that includes it by name only, or as
    ../name.
    """
    names = [Path(f).name for f in files]
    clashes = set()
    for file in files:
        name = Path(file).name
        include = re.sub(r"^(include|src)/", "", file)
        other_headers = [n for n in toolkit.base_names.get(name, []) if n != include]
        if names.count(name) > 1 or (other_headers and include not in toolkit.headers):
            clashes.add(file)
    before = None
    while before != len(clashes):
        before = len(clashes)
        clashes |= {file for file in files if clashes & beside(tree, file)}
    return {
        file: re.sub(r"^(inc|include|src)/(caffe/)?", "", file) if file in clashes else Path(file).name
        for file in files
    }


def beside(tree: Tree, file: str) -> set[str]:
    """The files that a file includes by name only, or as ../name."""
    folder = file.rpartition("/")[0]
    return {
        posixpath.normpath(f"{folder}/{include}")
        for include in tree[file].source.includes(angles=False)
        if "/" not in include or include.startswith(".")
    }


def protos(tree: Tree, copied: Iterable[str]) -> list[str]:
    """caffe.proto and the files that it imports; or, if it does not lie at its place, the .proto files of the tree.

    One of them may be a whole caffe.proto. Then a file of another package is left out, unless a file of `copied`
    includes its header: it may define other messages of the same names.
    """
    if tree.has(PROTO):
        imports = re.findall(r'^\s*import\s+(?:public\s+)?"([^"]+)"', tree[PROTO].text, re.M)
        imported = [Path(PROTO).with_name(Path(name).name).as_posix() for name in imports]
        return [PROTO, *(file for file in imported if tree.has(file))]
    texts = {p.relative_to(tree.root).as_posix(): read(p) for p in sorted(tree.root.rglob("*.proto"))}
    whole = sorted((file for file, text in texts.items() if is_whole(text)), key=lambda f: f.count("/"))
    if not whole:
        return list(texts)
    packages = {file: PACKAGE.search(without_comments(text)) for file, text in texts.items()}
    used = {Path(include).name for file in copied for include in tree[file].source.includes(angles=True)}
    return [
        file
        for file, package in packages.items()
        if file == whole[0]
        or (file not in whole and (not package or package[1] == "caffe"))
        or f"{Path(file).stem}.pb.h" in used - {"caffe.pb.h"}
    ]


def write_folder(pick: Pick, folder: Path, force: bool) -> list[str]:
    """Write the folder. Returns the names of its files."""
    tree = pick.tree
    copied = places(list(pick.files), tree, pick.toolkit) | {
        file: Path(file).name for file in protos(tree, pick.files)
    }
    contents = {path: tree.path(file).read_bytes() for file, path in copied.items()}
    additions, parts = written(pick.cuts.values(), pick.seen, pick.files)
    if pick.creator:
        place, text = pick.creator
        headers = [f for f in tree[place.file].includes if f in pick.files]
        additions["additions.cpp"] = additions.get("additions.cpp", "") + creator_lines(pick, text, headers)
        parts.append(f"additions.cpp  {place}")
    most, place = pick.names.core.legacy_axes
    if most != 4:
        line = f"static const int legacy_axes = caffe::most_legacy_axes() = {most};\n"
        additions["additions.cpp"] = additions.get("additions.cpp", "") + f'#include "caffe/blob.hpp"\n{line}'
        parts.append(f"additions.cpp  {place}: blobs of up to {most} axes have num() and the like")
    place = tree.types[pick.type].place
    defines = [(switch, f"{place}: is registered only with {switch}") for switch in pick.switches]
    if pick.names.namespace != "caffe":
        defines.append((f"{pick.names.namespace} caffe", f"{BLOB}: the fork's namespace"))
    if any(re.search(r"^[ \t]*#.*\bNDEBUG\b", tree[file].text, re.M) for file in pick.files):
        defines.append(("NDEBUG", "Caffe's Makefile defines it in a release build"))
    for macro, why in defines:
        rest = additions.get("additions.hpp", "#pragma once\n").removeprefix("#pragma once\n")
        additions["additions.hpp"] = f"#pragma once\n#define {macro}\n{rest}"
        parts.append(f"additions.hpp  {why}")
    contents |= {name: text.encode("latin-1") for name, text in additions.items()}
    if folder.exists():
        make_room(folder, contents, force)
    for path in (*contents, "ORIGIN", "__init__.py"):
        if (folder / path).is_symlink() or not (folder / path).resolve().is_relative_to(folder.resolve()):
            raise Refused(f"{folder / path} is a link that leads elsewhere: nothing is written through it.")
    for path, data in contents.items():
        write(folder / path, data, if_changed=True)
    for name, library in pick.links.items():
        parts.append(f"{name}  {library}: a link to the tree, header-only")
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to((tree.root / library).resolve())
    write(folder / "ORIGIN", origin(pick, copied, contents, parts).encode())
    if not (folder / "__init__.py").exists():
        write(folder / "__init__.py", INIT.format(name=pick.type))
    # Remove what a killed port left of its own files. Other .partial files are the user's.
    own = {folder / path for path in (*contents, "ORIGIN", "__init__.py")}
    for unfinished in folder.rglob("*.partial"):
        name = re.fullmatch(r"(.+)\.[0-9]+\.partial", unfinished.name)
        if name and unfinished.with_name(name[1]) in own:
            unfinished.unlink()
    return sorted(contents)


def creator_lines(pick: Pick, text: str, headers: list[str]) -> str:
    """The lines of the function that makes layers of the type, and of its registration."""
    creator = pick.tree.types[pick.type].creator
    assert creator is not None  # pick.creator is its place
    name = creator.name
    includes = [
        "caffe/layer_factory.hpp",
        "caffe/proto/caffe.pb.h",
        *(h.removeprefix("include/") for h in headers),
    ]
    lines = [f'#include "{i}"' for i in includes] + in_caffe(
        [text, f"REGISTER_LAYER_CREATOR({pick.type}, {name});"]
    )
    return "\n".join(lines) + "\n"


def make_room(folder: Path, contents: dict[str, bytes], force: bool):
    """Prepare an existing folder. Different files are replaced only with FORCE."""
    existing = [
        p for p in folder.rglob("*") if p.suffix in (".hpp", ".h", ".cuh", ".cpp", ".cc", ".cu", ".proto")
    ]
    is_same = all(contents.get(p.relative_to(folder).as_posix()) == p.read_bytes() for p in existing)
    if is_same:
        return
    if not force:
        raise Refused(
            f"{folder} exists, with other contents. NAME=another_name puts the layer elsewhere, "
            "FORCE=1 replaces its files."
        )
    # Files that ORIGIN does not list are the user's, and stay.
    listed = origin_files(folder)
    if unlisted := sorted(path for path in contents if (folder / path).exists() and path not in listed):
        raise Refused(
            f"{folder} has {', '.join(unlisted)}, which its ORIGIN does not list: move them away first."
        )
    for path in existing:
        if path.relative_to(folder).as_posix() in listed:
            path.unlink()


def origin_files(folder: Path) -> set[str]:
    """The files that an earlier port wrote, by the folder's ORIGIN."""
    path = folder / "ORIGIN"
    text = path.read_text(errors="replace") if path.is_file() and not path.is_symlink() else ""
    copied = re.findall(r"^[0-9a-f]{64}  (\S+)  ", text, re.M)
    return {*copied, *re.findall(r"^(additions\w*\.\w+)  ", text, re.M)}


def is_of(folder: Path, root: Path) -> bool:
    """Was the folder ported from this tree? The tree has each file that ORIGIN lists, with the same contents."""
    path = folder / "ORIGIN"
    text = path.read_text(errors="replace") if path.is_file() else ""
    listed = re.findall(r"^([0-9a-f]{64})  \S+  (.+)$", text, re.M)
    return bool(listed) and all(
        (root / file).is_file() and hashlib.sha256((root / file).read_bytes()).hexdigest() == digest
        for digest, file in listed
    )


def origin(pick: Pick, copied: dict[str, str], contents: dict[str, bytes], parts: list[str]) -> str:
    tree = pick.tree
    licence = next(
        (p.name for p in sorted(tree.root.glob("*")) if re.match(r"(licen[cs]e|copying)", p.name, re.I)),
        "none found",
    )
    lines = [
        f"type     {pick.type}",
        f"tree     {tree.root.resolve().name}",
        *git_lines(tree.root, tree.real(pick.target.file)),
        f"licence  {licence} in the tree",
        "",
    ]
    lines += ["The files, byte for byte: SHA-256, name here, name in the tree", ""]
    for file, path in sorted(copied.items(), key=lambda pair: pair[1]):
        lines.append(f"{hashlib.sha256(contents[path]).hexdigest()}  {path}  {tree.real(file)}")
    if parts:
        lines += [
            "",
            "Parts of files, word for word, that the toolkit's own versions lack: name here, place in the tree",
            "",
        ]
        lines += parts
    return "\n".join(lines) + "\n"


def git_lines(root: Path, file: str) -> list[str]:
    # A file that git does not know is of no commit, even if it lies in a repository.
    known, commit, remote = git_of(str(root))
    if file not in known or not commit:
        return ["commit   unknown: not under git"]
    return [f"from     {remote}"] * bool(remote) + [f"commit   {commit}"]


@functools.cache
def git_of(root: str) -> tuple[frozenset[str], str, str]:
    """The files that git knows in a tree, the tree's commit, and its remote."""
    repository = repository_of(Path(root))
    if repository is None:
        return frozenset(), "", ""
    below = os.path.relpath(os.path.abspath(root), repository.top)
    before = "" if below == "." else f"{below}/"
    known = (path.removeprefix(before) for path in repository.files() if path.startswith(before))
    return frozenset(known), repository.head(), shown(repository.remote())
