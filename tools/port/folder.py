"""Write a layer's folder: the fork's files byte for byte, flat, with a note of where they are from."""

from __future__ import annotations

import hashlib
import keyword
import re
import shutil
import subprocess
from pathlib import Path

from additions import written
from caffe_build import INIT
from needs import Needs
from toolkit import Toolkit
from tree import PROTO, SOURCE_KINDS, PortError, Tree

RESERVED = {"build", "caffe", "engine"}


def folder_name(needs: Needs, type_name: str) -> str:
    """psroi_pooling, of psroi_pooling_layer.cpp; of the type where the file is another's too."""
    stems = [Path(f).stem for f in needs.tree.members(needs.target.name) if f.endswith(SOURCE_KINDS)]
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", type_name).lower()
    for name in [*(s.removesuffix("_layer") for s in stems if s.endswith("_layer")), snake]:
        if name.replace("_", "") == type_name.lower() and name.isidentifier():
            break
    else:
        name = snake
    return name + "_layer" if keyword.iskeyword(name) or name in RESERVED else name


def places(files: list[str], toolkit: Toolkit) -> dict[str, str]:
    """File of the tree -> path in the folder. Flat, unless a name is taken or would hide a header of the toolkit's."""
    names = [Path(f).name for f in files]
    found = {}
    for file in files:
        name = Path(file).name
        include = re.sub(r"^(include|src)/", "", file)
        others = [n for n in toolkit.base_names.get(name, []) if n != include]
        clash = names.count(name) > 1 or (others and include not in toolkit.headers)
        found[file] = "/".join(Path(file).parts[-2:]) if clash else name
    return found


def protos(tree: Tree) -> list[str]:
    """caffe.proto, and what it imports from beside it."""
    imports = re.findall(r'^\s*import\s+(?:public\s+)?"([^"]+)"', tree.text(PROTO), re.M)
    beside = [Path(PROTO).with_name(Path(name).name).as_posix() for name in imports]
    return [PROTO, *(file for file in beside if (tree.root / file).is_file())]


def write_folder(needs: Needs, type_name: str, folder: Path, force: bool) -> list[str]:
    """The names of the files in the folder."""
    tree = needs.tree
    wanted = places(list(needs.files), needs.toolkit) | {file: Path(file).name for file in protos(tree)}
    contents = {path: (tree.root / file).read_bytes() for file, path in wanted.items()}
    made, parts = written(needs.additions.values(), needs.seen, needs.files)
    contents |= {name: text.encode("latin-1") for name, text in made.items()}
    if folder.exists():
        make_room(folder, contents, force)
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "ORIGIN").write_text(origin(tree, type_name, wanted, contents, parts))
    if not (folder / "__init__.py").exists():
        (folder / "__init__.py").write_text(INIT.format(name=type_name))
    return sorted(contents)


def make_room(folder: Path, contents: dict[str, bytes], force: bool):
    """An existing folder is only ever replaced by the same, or on demand."""
    here = [
        p for p in folder.rglob("*") if p.suffix in (".hpp", ".h", ".cuh", ".cpp", ".cc", ".cu", ".proto")
    ]
    same = all(contents.get(p.relative_to(folder).as_posix()) == p.read_bytes() for p in here)
    if same:
        return
    if not force:
        raise PortError(
            f"{folder} exists, with other contents. NAME=another_name puts the layer elsewhere, "
            "FORCE=1 replaces its files."
        )
    for path in here:
        path.unlink()


def origin(
    tree: Tree, type_name: str, wanted: dict[str, str], contents: dict[str, bytes], parts: list[str]
) -> str:
    licence = next(
        (p.name for p in sorted(tree.root.glob("*")) if re.match(r"(licen[cs]e|copying)", p.name, re.I)),
        "none found",
    )
    lines = [
        f"type     {type_name}",
        f"tree     {tree.root.resolve().name}",
        *git_lines(tree.root),
        f"licence  {licence} in the tree",
        "",
    ]
    lines += ["The files, byte for byte: SHA-256, name here, name in the tree", ""]
    for file, path in sorted(wanted.items(), key=lambda pair: pair[1]):
        lines.append(f"{hashlib.sha256(contents[path]).hexdigest()}  {path}  {file}")
    if parts:
        lines += [
            "",
            "Parts of files, word for word, that the toolkit's own versions lack: name here, place in the tree",
            "",
        ]
        lines += parts
    return "\n".join(lines) + "\n"


def git_lines(root: Path) -> list[str]:
    def git(*arguments: str) -> str:
        if not shutil.which("git"):
            return ""
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    # Files that git does not know are not the commit's, whichever repository they happen to lie in.
    known = git("ls-files", "--error-unmatch", PROTO)
    commit = git("rev-parse", "HEAD") if known else ""
    remote = git("config", "--get", "remote.origin.url") if known else ""
    remote = re.sub(r"//[^/@]*@", "//", remote)
    return [f"from     {remote}"] * bool(remote) + [f"commit   {commit or 'unknown: not under git'}"]
