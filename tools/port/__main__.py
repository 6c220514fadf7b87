"""make port: copy layers out of a Caffe fork, unedited.

make port CAFFE=/path/to/fork TYPE=Normalize          one layer, or several: TYPE="Normalize PSROIPooling"
make port CAFFE=/path/to/fork TYPE=all                port and build every registered layer, and print a table
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ..files import alone_in
from ..make.backends import BACKENDS
from ..make.build import build
from ..make.job import Job
from ..make.names import check_layer, check_type, folder_of, shown
from ..make.settings import Settings, from_environment
from ..refused import Refused
from .age import check_age
from .folder import folder_name, write_folder
from .loose import tree_of
from .names import Names
from .plan import Pick
from .refusals import refusals
from .toolkit import Toolkit
from .tree import Tree

PROGRESS = Console(stderr=True)


class Ported(NamedTuple):
    type: str
    folder: Path
    files: list[str]
    why: dict[str, str]
    notes: list[str]  # what the user must do by hand


def port(names: Names, type_name: str, options, name: str = "", taken: Container[str] = ()) -> Ported:
    """Port one type.

    Args:
        name: the folder's name, instead of one made from the type's.
        taken: names of folders of other types. The tree may have both an Lstm and an LSTM, of which the second to come
            gets lstm_2.
    """
    pick = Pick(names, type_name)
    problems = refusals(pick)
    if fatal := [str(p) for p in problems if p.fatal]:
        raise Refused(fatal[0] + (f" (and {len(fatal) - 1} more)" if len(fatal) > 1 else ""))
    made = folder_name(pick)
    names_for_it = itertools.chain([name or made], (f"{made}_{i}" for i in itertools.count(2)))
    free = next(folder for folder in names_for_it if folder not in taken)
    folder = Path(folder_of(str(options.layers_dir), free, "NAME"))
    with alone_in(folder.parent):
        files = write_folder(pick, folder, options.force)
    cuts = {title: ", ".join(sorted(cut.names)) for title, cut in pick.cuts.items() if cut.names}
    parts = {title: f"of it, into additions.*: {names_cut}" for title, names_cut in cuts.items()}
    obvious = ("the layer itself", f"functions of {pick.target.name}")
    why = {file: why for file, why in (pick.files | parts).items() if why not in obvious}
    return Ported(type_name, folder, files, why, [str(p) for p in problems])


def port_named(names: Names, options) -> int:
    """Port each of the types. Returns 1 if one could not be ported."""
    failed = 0
    for type_name in options.types:
        try:
            done = port(names, type_name, options, options.name)
        except Refused as error:
            print(f"{type_name}: not ported. {error}")
            failed += 1
            continue
        print(f"{type_name} is in {done.folder}: {', '.join(done.files)}, ORIGIN, __init__.py")
        for file, why in done.why.items():
            print(f"  {file}: {why}")
        for note in done.notes:
            print(f"  to do by hand: {note}")
        name, hint = done.folder.name, options.settings.hint
        print(f"Next: {hint(LAYERS=name)}, then {hint('verify', LAYER=name)}")
    return int(bool(failed))


def port_all(names: Names, options) -> int:
    """Port and build every type of the tree, and print a table."""
    tree, ported, rows, taken = names.tree, {}, [], set()
    if not tree.types:
        raise Refused(
            f"{tree.root} registers no layer: nothing in its src/ has REGISTER_LAYER_CLASS or REGISTER_LAYER_CREATOR"
        )
    for type_name in track(
        sorted(tree.types),
        f"reading {tree.root.name}",
        console=PROGRESS,
        transient=True,
        disable=not PROGRESS.is_terminal,
    ):
        try:
            ported[type_name] = done = port(names, type_name, options, taken=taken)
            taken.add(done.folder.name)
        except Refused as error:
            rows.append((type_name, "", "refused", str(error)))
    for type_name, (place, reason) in tree.types_without.items():
        rows.append((type_name, "", "refused", f"{place}: {type_name} {reason}"))
    if ported and not options.unbuilt:
        folders = sorted({p.folder.name for p in ported.values()})
        os.makedirs(options.settings.build, exist_ok=True)
        build(Job(options.settings, only=folders), keep_going=True)
    for type_name, done in ported.items():
        error = None if options.unbuilt else first_error(done.folder, options.settings)
        result = "does not compile" if error else "ported" if options.unbuilt else "compiles"
        rows.append((type_name, done.folder.name, result, error or "; ".join(done.notes)))
    show(tree, sorted(rows))
    return 0


def first_error(folder: Path, settings: Settings) -> str | None:
    """The first error in the logs of a layer, if one of its libraries is missing."""
    logs = Path(settings.build) / folder.name
    if all((folder / BACKENDS[backend].library).exists() for backend in settings.backends):
        return None
    for of in (logs, Path(settings.core)):  # the layer's own, then the core's
        for log in sorted(of.rglob("*.log"), key=lambda p: (p.name == "ffi.log", str(p))):
            for line in log.read_text(errors="replace").splitlines():
                if re.search(r"\berror\b|undefined reference", line):
                    return line.replace(str(folder) + "/", "")
    return f"see the logs in {logs}"


def show(tree: Tree, rows: list[tuple]):
    table = Table(title=str(tree.root))
    for column in ("type", "folder", "result", "why, or what is left to do"):
        table.add_column(column, overflow="fold")  # wrap long names in a narrow window
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False).print(table)
    counts = Counter(row[2] for row in rows)
    print(f"{len(rows)} types: " + ", ".join(f"{count} {result}" for result, count in counts.items()))


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="make port", description=__doc__, formatter_class=form)
    parser.add_argument("types", nargs="*", help="one or several; an argument may have several, with spaces")
    parser.add_argument("--caffe", default="", help="the fork's tree")
    where = "the folder of layers to write to; the first, if there are several"
    parser.add_argument("--layers-dir", required=True, help=where)
    parser.add_argument("--name", default="", help="the folder's name, instead of one made from the type's")
    parser.add_argument("--force", action="store_true", help="replace the files of a folder that exists")
    parser.add_argument("--unbuilt", action="store_true", help="with TYPE=all: write the folders, build none")
    options = parser.parse_args()
    options.types = [name for word in options.types for name in word.split()]
    try:
        options.settings, _ = from_environment([f"LAYERS_DIR={options.layers_dir}"])
        options.layers_dir = Path(options.settings.layers_dir)
        if not options.caffe or not options.types:
            raise Refused(
                "make port CAFFE=/path/to/fork TYPE=Normalize: both are needed; TYPE is the type in a prototxt, or all"
            )
        check_names(options)
        names = Names(tree_of(options.caffe), Toolkit())
        check_age(names.tree)
        return port_all(names, options) if options.types == ["all"] else port_named(names, options)
    except Refused as error:
        print(f"make port: {error}")
        return 1
    except OSError as error:
        print(f"make port: {error.filename or options.layers_dir}: {error.strerror}")
        return 1


def check_names(options) -> None:
    for name in options.types:
        check_type(name)
    if options.name and len(options.types) > 1:
        raise Refused("NAME= names one folder: give one TYPE with it")
    if options.name and not options.name.isidentifier():
        fit = re.sub(r"\W", "_", options.name)
        fit = f"_{fit}" if fit[0].isdigit() else fit
        raise Refused(
            f"NAME={shown(options.name)}: a layer's folder is a Python package: letters, digits and _, as in NAME={fit}"
        )
    if options.name:
        check_layer(options.name, "NAME")


if __name__ == "__main__":
    sys.exit(main())
