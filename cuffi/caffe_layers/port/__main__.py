"""make port: copy layers out of a Caffe fork, unedited.

make port CAFFE=/path/to/fork TYPE=Normalize          one layer, or several: TYPE="Normalize PSROIPooling"
make port CAFFE=/path/to/fork TYPE=all                every layer that stock Caffe lacks, with a table
"""

from __future__ import annotations

import argparse
import ast
import functools
import itertools
import re
import shutil
import sys
import time
from collections.abc import Container
from pathlib import Path
from typing import NamedTuple

from rich.progress import track

from tools.console import console
from tools.files import alone_in
from tools.make.folders import check_layer, folder_of, shown
from tools.make.settings import called_as, from_environment, full
from tools.new_layer.naming import TAKEN
from tools.package_module import package_module
from tools.refused import Refused

from .branches import elsewhere
from .compiled import compile, first_error, hint
from .flat_folder import tree_of
from .names import Names, Unregistered
from .plan import Pick
from .refusals import refusals
from .toolkit_headers import WING, Toolkit
from .verdicts import FAILED, REFUSED, Row, compiled_in, counts, kept_log, show, status, write_json
from .write_folder import folder_name, write_folder

PROGRESS = console(stderr=True)
# Stock Caffe's types that read or write data, or run Python.
DATA_TYPES = frozenset(
    ("Data", "DummyData", "HDF5Data", "HDF5Output", "ImageData", "MemoryData", "Python", "WindowData")
)


class Ported(NamedTuple):
    type: str
    folder: Path
    is_new: bool  # the folder is new
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
        is_new = not folder.exists()
        files = write_folder(pick, folder, options.force)
    cuts = {title: ", ".join(sorted(cut.names)) for title, cut in pick.cuts.items() if cut.names}
    parts = {title: f"of it, into additions.*: {names_cut}" for title, names_cut in cuts.items()}
    obvious = ("the layer itself", f"functions of {pick.target.name}")
    why = {file: why for file, why in (pick.files | parts).items() if why not in obvious}
    words = {token.text for _, tokens in pick.scanned for token in tokens}
    for function, place in names.core.changed(words).items():
        why[str(place)] = f"the fork changed {function}; here BVLC's version runs"
    return Ported(type_name, folder, is_new, files, why, [str(p) for p in problems])


def built(ported: list[Ported], options) -> dict[str, str | None]:
    """Build the layers that need no manual step. Returns the compiler's first error, or None, by type."""
    tried = [done for done in ported if not done.notes]
    if options.unbuilt or not tried:
        return {}
    compile({done.folder.name for done in tried}, options.settings)
    return {done.type: first_error(done.folder, options.settings) for done in tried}


def port_named(names: Names, options) -> int:
    """Port and build each of the types. Returns 1 if one was refused, 2 if one does not compile."""
    ported, verdicts = [], []
    for type_name in options.types:
        try:
            ported.append(port(names, type_name, options, options.name))
        except Refused as error:
            there = elsewhere(names.tree.root, type_name) if isinstance(error, Unregistered) else ""
            print(f"{type_name}: not ported. {error}{there}", flush=True)
            verdicts.append("refused")
    errors = built(ported, options)
    for done in ported:
        print(
            f"{done.type} is in {shown(done.folder)}: {', '.join(map(shown, done.files))}, ORIGIN, __init__.py"
        )
        for file, why in done.why.items():
            print(f"  {shown(file)}: {shown(why)}")
        for note in done.notes:
            print(f"  to do by hand: {shown(note)}")
        name, command = done.folder.name, options.settings.hint
        verdicts.append(verdict(done, errors))
        if error := errors.get(done.type):
            print(f"It does not compile: {shown(error)}\n{hint(error)}".rstrip())
        elif done.type in errors:
            print(f"It compiles. Next: {command('verify', LAYER=name)}")
        else:
            print(f"Next: {command(LAYERS=name)}, then {command('verify', LAYER=name)}")
    if len(options.types) > 1:
        print(counts(verdicts))
    return status(verdicts)


def verdict(done: Ported, errors: dict[str, str | None]) -> str:
    if errors.get(done.type):
        return "does not compile"
    return "to do by hand" if done.notes else "compiles" if done.type in errors else "ported"


def port_all(names: Names, options) -> int:
    """Port and build every type of the tree that stock Caffe lacks. Prints a table; the last line has the counts.

    Returns 2 if one does not compile. Refusals are in the table.
    """
    tree, ported, rows = names.tree, [], []
    if not tree.types:
        raise Refused(
            f"{tree.root} registers no layer: nothing in its src/ has REGISTER_LAYER_CLASS or REGISTER_LAYER_CREATOR. "
            "Perhaps another branch has its layers (git branch -a)"
        )
    own = [name for name in sorted(tree.types) if not is_stock(name)]
    seconds: dict[str, float] = {}
    reading, hidden = f"reading {shown(tree.root.name)}", not PROGRESS.is_terminal
    for type_name in track(own, reading, console=PROGRESS, transient=True, disable=hidden):
        began = time.monotonic()
        try:
            ported.append(port(names, type_name, options, taken={done.folder.name for done in ported}))
        except Refused as error:
            rows.append(Row(type_name, "", "refused", str(error), round(time.monotonic() - began, 2)))
        seconds[type_name] = time.monotonic() - began
    for type_name, (place, reason) in tree.types_without.items():
        if not is_stock(type_name):
            rows.append(Row(type_name, "", "refused", f"{place}: {type_name} {reason}"))
    errors = built(ported, options)
    rows += [row_of(done, errors, seconds[done.type], options) for done in ported]
    rows.sort()
    show(tree, rows)
    if stock := sorted(name for name in set(tree.types) - set(own) if not is_data(name)):
        print(f"Not ported, because caffe_net computes these stock types with torch: {', '.join(stock)}.")
        print("If the fork changed one of them: TYPE=ThatType")
    print(f"A line of JSON for each: {full(str(write_json(rows, options.settings.build)))}")
    verdicts = [row.verdict for row in rows]
    print(counts(verdicts))
    return FAILED if status(verdicts) == FAILED else 0


def row_of(done: Ported, errors: dict[str, str | None], seconds: float, options) -> Row:
    """The row of a ported type. What does not compile is removed, but for its log."""
    build, name, said = options.settings.build, done.folder.name, verdict(done, errors)
    log = kept_log(build, name) if done.type in errors else ""
    took = round(seconds + (compiled_in(build, name) if done.type in errors else 0), 2)
    if said != "does not compile":
        return Row(done.type, name, said, "; ".join(done.notes), took, log and full(log))
    error = errors[done.type]
    assert error is not None  # it does not compile
    remove(done, options)
    reason = f"{error}. {hint(error)}".strip()
    return Row(done.type, "" if done.is_new else name, said, reason, took, log and full(log))


def is_stock(type_name: str) -> bool:
    """Is it a stock type that the toolkit has, as a torch module or in the Caffe core?"""
    return type_name.lower() in stock_names() or is_data(type_name)


@functools.cache
def stock_names() -> set[str]:
    """The types of the Caffe core and of cuffi.nets.stock, whose import would bring torch; in lower case."""
    in_core = {path.stem.removesuffix("_layer") for path in (WING / "core/layers").glob("*_layer.cpp")}
    module = ast.parse((WING.parent / "nets/stock/__init__.py").read_text())
    (families,) = (
        node.value for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAMILIES"
    )  # fmt: skip
    in_torch = " ".join(ast.literal_eval(families).values()).split()
    return {name.lower().replace("_", "") for name in (*in_core, *in_torch)}


def is_data(type_name: str) -> bool:
    """Is it one of stock Caffe's data layers, or Python? They are neither ported nor computed by torch's layers."""
    return type_name in DATA_TYPES


def remove(done: Ported, options) -> None:
    """Remove the objects of a type that does not compile, and its folder if it is new."""
    shutil.rmtree(Path(options.settings.build) / done.folder.name, ignore_errors=True)
    if done.is_new:
        shutil.rmtree(done.folder, ignore_errors=True)


def main() -> int:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="make port", description=__doc__, formatter_class=form)
    parser.add_argument("types", nargs="*", help="one or several; an argument may have several, with spaces")
    parser.add_argument("--caffe", default="", help="the fork's tree")
    where = "the folder of layers to write to; the first, if there are several"
    parser.add_argument("--layers-dir", required=True, help=where)
    parser.add_argument("--name", default="", help="the folder's name, instead of one made from the type's")
    parser.add_argument("--force", action="store_true", help="replace the files of a folder that exists")
    parser.add_argument("--unbuilt", action="store_true", help="write the folders, do not build")
    options = parser.parse_args()
    options.types = [name for word in options.types for name in word.split()]
    try:
        options.settings, _ = from_environment([f"LAYERS_DIR={options.layers_dir}"])
        options.settings.cxx  # noqa: B018 (refused before anything is written, if there is none)
        options.layers_dir = Path(options.settings.layers_dir)
        if not options.caffe or not options.types:
            raise Refused(
                "make port CAFFE=/path/to/fork TYPE=Normalize: both are needed; TYPE is the type in a prototxt, or all"
            )
        check_names(options)
        names = Names(tree_of(options.caffe), Toolkit())
        names.tree.check_interface()
        return port_all(names, options) if options.types == ["all"] else port_named(names, options)
    except Refused as error:
        print(f"{called_as('make port')}: {error}")
        return REFUSED
    except OSError as error:
        print(f"{called_as('make port')}: {shown(error.filename or options.layers_dir)}: {error.strerror}")
        return REFUSED


def check_names(options) -> None:
    for name in options.types:
        if not (name.isascii() and name.isidentifier()):  # REGISTER_LAYER_CLASS makes names from it
            raise Refused(f"TYPE={shown(name)}: a layer type is a C++ name, as in PSROIPooling")
    if options.name and len(options.types) > 1:
        raise Refused("NAME= names one folder: give one TYPE with it")
    if options.name and not options.name.isidentifier():
        fit = re.sub(r"\W", "_", options.name)
        fit = f"_{fit}" if fit[0].isdigit() else fit
        fit = package_module("base/shown").command(f"NAME={fit}")
        raise Refused(
            f"NAME={shown(options.name)}: a layer's folder is a Python package: letters, digits and _, as in {fit}"
        )
    if options.name:
        check_layer(options.name, "NAME")
        if options.name in TAKEN:
            raise Refused(
                f"NAME={options.name}: the toolkit uses this name; use my_{options.name}, for example"
            )


if __name__ == "__main__":
    sys.exit(main())
