"""What needs the toolkit's sources: port the types that a net needs out of a fork, and build them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from tools.make.settings import full

from ...backends import HOST
from ...base import CaffeValueError
from ...caffe_files.parameters import Unknown
from ...caffe_layers.make.proto import STOCK as STOCK_PROTO
from ...caffe_layers.make.proto import read, without_comments
from ...caffe_layers.port.flat_folder import tree_of
from ...caffe_layers.port.names import Names
from ...caffe_layers.port.plan import Pick
from ...caffe_layers.port.refusals import refusals
from ...caffe_layers.port.toolkit_headers import Toolkit
from ...caffe_layers.port.write_folder import is_of
from ...folders import toolkit_folders
from ...nets.net.messages import STOCK
from ...nets.net.needs import Need
from ...nets.net.registry import Folders
from .typed import typed

if TYPE_CHECKING:
    from .__main__ import CommandLine


def own_of(caffe: str, types: list[str]) -> list[str]:
    """The types that the fork has and that can be ported."""
    names = Names(tree_of(caffe), Toolkit())
    found = [name for name in types if name in names.tree.types]
    return [name for name in found if not any(p.fatal for p in refusals(Pick(names, name)))]


def make_messages(core: str) -> None:
    """Make the messages of stock Caffe and of the types of forks for Python, if they do not exist yet."""
    descriptor = STOCK.path
    protos = STOCK_PROTO, descriptor.with_name("forks.proto")
    newest = max(proto.stat().st_mtime for proto in protos)
    if not descriptor.exists() or descriptor.stat().st_mtime < newest:
        command = ["--layer-dir", str(descriptor.parent), "--descriptor", str(descriptor)]
        command += ["--include-dir", f"{core}/net"]
        subprocess.run([sys.executable, "-m", "cuffi.caffe_layers.make.proto", *command], check=True)


def place_for(build: str, caffe: str) -> Path:
    """The folder for layers that are ported only for the comparison, apart from the user's layers."""
    of_fork = hashlib.sha256(os.path.realpath(caffe).encode()).hexdigest()[:8]
    made = Path(full(build), "verify-net")
    made.mkdir(parents=True, exist_ok=True)
    (made / "made").touch()
    return made / of_fork


class Work(NamedTuple):
    """What is to be made before a net runs."""

    types: list[str]  # that folders of layers compute
    missing: dict[str, Need]  # those of them that are to be ported
    caffe: str  # out of this fork
    folders: list[str]  # into the first of these
    phases: list[str]  # that the net is built for

    @property
    def unbuilt(self) -> list[Path]:
        """The folders of the types that have no library."""
        found = Folders(self.folders)
        layer_folders = [layer.folder for name in self.types if (layer := found.find(name))]
        return [folder for folder in dict.fromkeys(layer_folders) if not (folder / HOST.library).exists()]


def work_for(command_line: CommandLine, console: Console) -> Work:
    """What a net needs that is not there. Stock layers are ported only for the comparison."""
    needs = command_line.needs
    types = [name for name, need in needs.items() if command_line.verify or need.fields is not None]
    missing = to_port(types, command_line.caffe, command_line.folders, console)
    return Work(
        types,
        {name: needs[name] for name in missing},
        command_line.caffe,
        command_line.folders,
        [state.phase for state in command_line.states],
    )


def provide(work: Work, console: Console) -> bool:
    """Port and build what is missing."""
    return (not work.missing or port(work, console)) and build(work)


def build(work: Work) -> bool:
    """Build what is not built of the types."""
    unbuilt = work.unbuilt
    for parent in dict.fromkeys(folder.parent for folder in unbuilt):
        names = " ".join(folder.name for folder in unbuilt if folder.parent == parent)
        command = ["tools.make.build", "libraries", f"LAYERS_DIR={parent}", f"LAYERS={names}"]
        if subprocess.run([sys.executable, "-m", *command]).returncode:
            return False
    return True


def to_port(types: list[str], caffe: str, paths: list[str], console: Console) -> list[str]:
    """The types that no folder has, and the fork's types that a later folder has from another tree."""
    if not caffe:
        return []
    Path(paths[0]).mkdir(parents=True, exist_ok=True)  # the folder for ported layers may be new
    folders = Folders(paths)
    found = {name: folders.find(name) for name in types}
    missing = [name for name, layer in found.items() if layer is None]
    others = {name: x.folder for name, x in found.items() if x and not is_of(x.folder, Path(caffe))}
    of_fork = tree_of(caffe).types if others else {}
    for name, folder in others.items():
        # A folder without ORIGIN is the user's own layer, which runs.
        is_others = folder.parent in toolkit_folders() or (folder / "ORIGIN").exists()
        if name in of_fork and is_others and folder.parent != folders.folders[0]:
            missing.append(name)
        elif name in of_fork:
            said = f"{name}: {folder} runs, not {caffe}'s own. To run that: LAYERS_DIR=/new/folder"
            console.print(said, style="yellow", soft_wrap=True)
    return missing


def port(work: Work, console: Console) -> bool:
    """Port these types. For stock types, print the fields that make it necessary."""
    console.print(f"Porting {', '.join(work.missing)} from {work.caffe}")
    of_forks = {name: need.fields or [] for name, need in work.missing.items()}
    for said in reasons(of_forks, Path(work.caffe)):
        console.print(f"  {said}", soft_wrap=True)
    command = [
        "cuffi.caffe_layers.port",
        f"--caffe={work.caffe}",
        f"--layers-dir={work.folders[0]}",
    ]
    command += ["--unbuilt", "--", " ".join(work.missing)]
    if not subprocess.run([sys.executable, "-m", *command]).returncode:
        return True
    folders = Folders(work.folders)
    failed = [
        name
        for name in work.missing
        if not (layer := folders.find(name)) or layer.folder.parent != folders.folders[0]
    ]
    console.print(f"Not ported: {', '.join(failed)}. The lines above have the reasons", soft_wrap=True)
    for phase in work.phases if len(work.phases) > 1 else ():
        if not any(phase in work.missing[name].phases for name in failed):
            console.print(f"{typed('PHASE', phase)} needs none of these")
    if fields := dict.fromkeys(one.path for name in failed for one in of_forks[name]):
        console.print(
            f"If the fork's own fields do not matter: {typed('IGNORE', ' '.join(fields))}", soft_wrap=True
        )
    return False


def reasons(missing: dict[str, list[Unknown]], caffe: Path) -> list[str]:
    """Where the prototxt uses each field, and where the fork declares it. CaffeValueError if it does not."""
    uses = sorted((one for strange in missing.values() for one in strange), key=lambda one: -one.line)
    fields = {one.path: one for one in uses}  # the first use of each
    said, nowhere = [], []
    for path, one in fields.items():
        types = [name for name, strange in missing.items() if path in [other.path for other in strange]]
        text = f"line {one.line}: {path} of {', '.join(types)} is a field that stock Caffe does not have"
        if place := declared(one, caffe):
            said.append(f"{text}. It is declared at {place}")
        else:
            nowhere.append(f"{text}, nor has {caffe}{one.near}")
    if nowhere:
        unknown = " ".join(path for path, one in fields.items() if not declared(one, caffe))
        raise CaffeValueError(
            "\n".join(nowhere) + f"\nIf it does not matter: {typed('IGNORE', unknown)}. "
            "If it does, CAFFE must be the fork for which the prototxt was written"
        )
    return said


def declared(field: Unknown, caffe: Path) -> str | None:
    """The file and line that declare a field in a message of the fork."""
    name = field.path.rpartition(".")[2]
    for file in sorted(caffe.rglob("*.proto")):
        inside = False
        for line, text in enumerate(without_comments(read(file)).splitlines(), 1):
            if begins := re.match(r"(?:message|extend|enum)\s+(\w+)", text):
                inside = begins[1] == field.message
            if inside and re.search(rf"\b{name}\s*=\s*\d", text):
                return f"{file}:{line}"
    return None
