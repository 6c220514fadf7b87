"""make port: take layers out of a Caffe fork, unedited.

make port CAFFE=/path/to/fork TYPE=Normalize          one layer, or several: TYPE="Normalize PSROIPooling"
make port CAFFE=/path/to/fork TYPE=all                every registered layer: ported, built, and a table of both
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from folder import folder_name, write_folder
from needs import Needs
from toolkit import Toolkit
from tree import PortError, Tree


class Ported(NamedTuple):
    type: str
    folder: Path
    files: list[str]
    why: dict[str, str]
    notes: list[str]  # what is left to be done by hand


def port(tree: Tree, toolkit: Toolkit, type_name: str, layers_dir: Path, name: str, force: bool) -> Ported:
    needs = Needs(tree, toolkit, type_name)
    if fatal := [str(p) for p in needs.problems if p.fatal]:
        raise PortError(fatal[0] + (f" (and {len(fatal) - 1} more)" if len(fatal) > 1 else ""))
    folder = layers_dir / (name or folder_name(needs, type_name))
    files = write_folder(needs, type_name, folder, force)
    parts = {
        header: f"of it, into additions.*: {', '.join(sorted(one.names))}"
        for header, one in needs.additions.items()
        if one.names
    }
    return Ported(type_name, folder, files, needs.files | parts, [str(p) for p in needs.problems])


def port_named(tree: Tree, types: list[str], options) -> int:
    """Each of the types; what could not be ported is said last."""
    toolkit, failed = Toolkit(), 0
    for type_name in types:
        try:
            done = port(tree, toolkit, type_name, options.layers_dir, options.name, options.force)
        except PortError as error:
            print(f"{type_name}: not ported. {error}")
            failed += 1
            continue
        print(f"{type_name} is in {done.folder}: {', '.join(done.files)}, ORIGIN, __init__.py")
        for file, why in done.why.items():
            if why not in ("the layer itself", f"functions of {tree.class_of(type_name).name}"):
                print(f"  {file}: {why}")
        for note in done.notes:
            print(f"  to do by hand: {note}")
        setting = "" if options.layers_dir.name == "layers" else f" LAYERS_DIR={options.layers_dir}"
        print(
            f"Next: make{setting} LAYERS={done.folder.name}, then make verify{setting} LAYER={done.folder.name}"
        )
    return int(bool(failed))


def port_all(tree: Tree, options) -> int:
    """Every type of the tree, built."""
    toolkit, ported, rows = Toolkit(), {}, []
    for type_name in sorted(tree.types):
        try:
            ported[type_name] = port(tree, toolkit, type_name, options.layers_dir, "", options.force)
        except PortError as error:
            rows.append((type_name, "", "refused", str(error)))
    if ported and options.make:
        names = " ".join(sorted({p.folder.name for p in ported.values()}))
        environment = {k: v for k, v in os.environ.items() if k not in ("TYPE", "CAFFE", "NAME", "FORCE")}
        settings = [f"LAYERS_DIR={options.layers_dir}", f"LAYERS={names}"]
        command = [*options.make.split(), "-k", *settings, "libraries"]
        subprocess.run(command, env=environment, close_fds=False)  # open: make's job server
    for type_name, done in ported.items():
        error = first_error(done.folder, options) if options.make else None
        result = "does not compile" if error else "compiles" if options.make else "ported"
        rows.append((type_name, done.folder.name, result, error or "; ".join(done.notes)))
    show(tree, sorted(rows))
    return 0


def first_error(folder: Path, options) -> str | None:
    """The first error in the logs of a layer whose libraries are not all there."""
    logs = options.build / folder.name
    if all((folder / f"_{backend}.abi3.so").exists() for backend in options.backends.split()):
        return None
    for of in (logs, options.build / "caffe"):  # the layer's own, then the engine's
        for log in sorted(of.rglob("*.log"), key=lambda p: (p.name == "ffi.log", str(p))):
            for line in log.read_text(errors="replace").splitlines():
                if re.search(r"\berror\b|undefined reference", line):
                    return line.replace(str(folder) + "/", "")
    return f"see the logs in {logs}"


def show(tree: Tree, rows: list[tuple]):
    from rich.console import Console
    from rich.table import Table

    table = Table("type", "folder", "result", "why, or what is left to do", title=str(tree.root))
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False).print(table)
    counts = {
        result: sum(row[2] == result for row in rows) for result in dict.fromkeys(row[2] for row in rows)
    }
    print(f"{len(rows)} types: " + ", ".join(f"{count} {result}" for result, count in counts.items()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make port", description=__doc__)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--caffe", default="")
    parser.add_argument("--layers-dir", type=Path, required=True)
    parser.add_argument("--build", type=Path, help="where make puts logs")
    parser.add_argument("--backends", default="host")
    parser.add_argument("--name", default="", help="the folder's name, instead of one made from the type's")
    parser.add_argument("--force", action="store_true", help="replace the files of a folder that exists")
    parser.add_argument("--make", default="", help="the command that builds, for TYPE=all")
    options = parser.parse_args()
    try:
        if not options.caffe or not options.types:
            raise PortError(
                "make port CAFFE=/path/to/fork TYPE=Normalize: both are needed; TYPE is the type in a prototxt, or all"
            )
        tree = Tree(options.caffe)
        if options.types == ["all"]:
            return port_all(tree, options)
        if options.name and len(options.types) > 1:
            raise PortError("NAME= names one folder: give one TYPE with it")
        return port_named(tree, options.types, options)
    except PortError as error:
        print(f"make port: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
