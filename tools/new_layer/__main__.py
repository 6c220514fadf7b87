"""make new: start a native layer.

    python -m tools.new_layer --layers-dir layers foo    an example that works

Nothing is written before everything is checked, and existing files are never overwritten.
"""

from __future__ import annotations

import argparse
import keyword
import os
import re
import shutil
import sys
from pathlib import Path
from string import Template

from ..files import alone_in, read
from ..files import write as write_file
from ..make.folders import check_path, why_no_layer
from ..make.settings import called_as, make_command, suite_command
from ..package_module import package_module
from ..refused import Refused
from .naming import TAKEN

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TEMPLATES = HERE / "templates"

USAGE = """make new LAYER=foo                              an example that works, for you to edit
make new LAYER=foo LAYERS_DIR=/my/layers        the same, in a folder of your own"""


def first_folder(text: str) -> Path:
    """The first folder of LAYERS_DIR, which may list several."""
    return Path(next(filter(None, text.split(":")), "layers"))


def main(argv: list[str] | None = None) -> int:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("name", nargs="?", default="", help="the new layer")
    parser.add_argument(
        "--layers-dir", type=first_folder, default=ROOT / "layers", help="the folder of layers"
    )
    parser.add_argument("--from", dest="source", default="", help="a .cu: says which command takes it")
    arguments = parser.parse_args(argv)
    try:
        name, layers_dir = arguments.name.strip(), arguments.layers_dir.expanduser()
        if arguments.source:
            raise Refused(other_door(arguments.source))
        check_name(name)
        check_free(layers_dir, name)
        made = write(layers_dir, name, plain(name))
    except Refused as refused:
        print(f"{called_as('make new')}: {refused}", file=sys.stderr)
        return 1
    report(layers_dir, name, made)
    return 0


# --------------------------------------------------------------------------------------------- checks


def check_name(name: str):
    if not name:
        raise Refused(f"which layer?\n{USAGE}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise Refused(f"LAYER={name}: a layer is named like a Python module: my_layer, roi_pool2")
    if keyword.iskeyword(name) or name in TAKEN or why_no_layer(name):
        why = "a Python keyword" if keyword.iskeyword(name) else "used by the toolkit"
        raise Refused(f"LAYER={name}: this name is {why}; use my_{name}, for example")


def check_free(layers_dir: Path, name: str):
    check_path(str(layers_dir), "LAYERS_DIR")
    if layers_dir.exists() and not layers_dir.is_dir():
        raise Refused(f"LAYERS_DIR={layers_dir} is a file, not a folder")
    if os.path.lexists(layers_dir / name):
        raise Refused(f"{layers_dir / name} exists already: nothing was changed")


# What takes a file that FROM= names, by what the file has.
DOORS = (
    (
        r"[\"<]caffe/|\bnamespace caffe\b|\bBlob\s*<",
        "a Caffe layer: `make port CAFFE=/path/to/fork TYPE=...` takes the whole layer, unedited",
    ),
    (
        r"[\"<](torch|ATen|c10|pybind11)/|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bat::Tensor\b",
        "an extension of PyTorch: docs/use-a-torch-extension.md runs it, unedited",
    ),
    (
        r"[\"<]THC?/|\bTHC?\w*Tensor\b|\bTHCState\b",
        "an extension of torch.utils.ffi: `make ffi EXT=/path/to/extension` runs it, unedited",
    ),
    (
        r"\b__global__\b",
        "kernels: in Python, `from cuffi import load_inline` and `load_inline({name!r}, pathlib.Path({path!r}))` give "
        "each of them a launcher, or paste them into the .cu that `make new LAYER=...` writes",
    ),
)


def other_door(text: str) -> str:
    """Which command takes the file that FROM= names. `make new` took its kernels until the host code had doors."""
    path = Path(text).expanduser()
    named = {"name": re.sub(r"\W|^(?=\d)|^_+", "k", path.stem), "path": str(path.absolute())}
    try:
        code = read(str(path))
    except OSError as error:
        return (
            f"FROM={text}: {error.strerror}. For kernels: {DOORS[-1][1].partition(': ')[2].format(**named)}"
        )
    found = next((door for pattern, door in DOORS if re.search(pattern, code)), "a file without kernels")
    found = found.format(**named)
    return f"FROM={text}: this is {found}. `make new` takes no file. Nothing was written."


# ------------------------------------------------------------------------------------------ templates


def fill(template: str, **values: str) -> str:
    return Template((TEMPLATES / template).read_text()).substitute(values)


def camel_case(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def plain(name: str) -> dict[str, str]:
    """The files of an elementwise layer that works as written, by name."""
    values = dict(name=name, Name=camel_case(name))
    return {
        f"{name}.h": fill("plain/layer.h.in", **values),
        f"{name}.cu": fill("plain/layer.cu.in", **values),
        "__init__.py": fill("plain/init.py.in", **values),
        "cases.py": fill("plain/cases.py.in", **values),
    }


# -------------------------------------------------------------------------------------------- writing


def write(layers_dir: Path, name: str, files: dict[str, str]) -> list[Path]:
    """Make the folder and its files. A new folder of layers outside of the toolkit also gets a .gitignore.

    The folder gets its name at the end. So a killed run leaves no half layer, and the next run removes its remains.
    """
    folder, partial, made = layers_dir / name, layers_dir / f".{name}.partial", []
    try:
        with alone_in(layers_dir):
            check_free(layers_dir, name)
            ignored = layers_dir / ".gitignore"
            shutil.rmtree(partial, ignore_errors=True)
            try:
                for file, text in files.items():
                    write_file(partial / file, text)
                if layers_dir.resolve() != ROOT / "layers" and not ignored.exists():
                    write_file(partial / ".gitignore", fill("gitignore.in"))
                    (partial / ".gitignore").rename(ignored)
                    made.append(ignored)
                partial.rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise Refused(f"{error.filename or folder}: {error.strerror}") from None
    return [*made, *(folder / file for file in files)]


def report(layers_dir: Path, name: str, made: list[Path]):
    print(f"Made {layers_dir / name}:")
    what = {
        f"{name}.h": "declares the C functions for Python",
        f"{name}.cu": "the kernels and their launchers",
        "__init__.py": "the Python side",
        "cases.py": "the tests: inputs and a reference",
        ".gitignore": "lists what make builds here",
    }
    for path in made:
        print(f"  {path.name:<{max(12, len(name) + 3)}}  {what[path.name]}")
    outside = layers_dir.resolve() != ROOT / "layers"
    print("Next:")
    where = [f"LAYERS_DIR={layers_dir}"] if outside else []
    print(" ", package_module("base/shown").command(*make_command(), f"LAYERS={name}", *where))
    print(" ", suite_command(str(layers_dir) if outside else "", f"-k {name}"))


if __name__ == "__main__":
    sys.exit(main())
