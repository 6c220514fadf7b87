"""Python 2's standard library: modules that load files, and those whose functions took text for bytes."""

from __future__ import annotations

import collections
import csv
import hashlib
import hmac
import importlib
import importlib.util
import os
import struct
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from .literals import as_bytes
from .text import characters, each, text, with_bytes

# --------------------------------------------------------------------------------------- loading modules


def _caller():
    """The namespace of the file that called this module's caller, and its `__import__`."""
    frame = sys._getframe(2)
    while "__tree__" not in frame.f_builtins and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_globals, frame.f_builtins


def import_module(name: str, package: str | None = None):
    """importlib.import_module, for modules of the file's folders, too."""
    names, built_ins = _caller()
    level = len(name) - len(name.lstrip("."))
    if level:
        package = package or names.get("__package__") or ""
        inner = f"{built_ins['__tree__'].name}.{package}"
        return importlib.import_module(name, inner if inner in sys.modules else package)
    return built_ins["__import__"](name, names, None, ("*",), 0)


def load_source(name: str, path: str, file=None) -> types.ModuleType:
    """imp.load_source: runs a file as the module of that name."""
    tree = _caller()[1]["__tree__"]
    module = types.ModuleType(name)
    module.__file__, module.__package__ = path, name.rpartition(".")[0] or None
    sys.modules[f"{tree.name}.{name}"] = module
    tree.run(Path(path), vars(module))
    return module


def find_module(name: str, path=None) -> tuple:
    """imp.find_module"""
    places = list(path) if path is not None else [*_caller()[1]["__tree__"].places, *sys.path]
    for place in places:
        if os.path.isfile(os.path.join(place, name, "__init__.py")):
            return None, os.path.join(place, name), ("", "", 5)
        if os.path.isfile(file := os.path.join(place, f"{name}.py")):
            return open(file, encoding="utf-8", errors="surrogateescape"), file, (".py", "U", 1)
    raise ImportError(f"No module named {name}")


def load_module(name: str, file, path: str, description: tuple) -> types.ModuleType:
    """imp.load_module"""
    if description[2] == 5:
        folder, stem = os.path.split(path)
        tree = _caller()[1]["__tree__"]
        if folder not in tree.folders:
            tree.folders.append(folder)
        return tree.module(stem)
    return load_source(name, path)


def run_path(path: str, init_globals=None, run_name: str | None = None) -> dict:
    """runpy.run_path"""
    names = dict(init_globals or {}, __name__=run_name or "<run_path>", __file__=path)
    _caller()[1]["__tree__"].run(Path(path), names)
    return names


IMP: dict[str, Any] = {
    "load_source": load_source, "find_module": find_module, "load_module": load_module, "new_module": types.ModuleType,
    "reload": importlib.reload, "PY_SOURCE": 1, "PY_COMPILED": 2, "C_EXTENSION": 3, "PKG_DIRECTORY": 5,
    "get_suffixes": lambda: [(".py", "U", 1)], "acquire_lock": lambda: None, "release_lock": lambda: None,
    "lock_held": lambda: False,
}  # fmt: skip

# ----------------------------------------------------------------------------------------- text and bytes


class _Lines:
    """A file that csv writes to, also one of bytes."""

    def __init__(self, file):
        self._file = file

    def write(self, line: str):
        return with_bytes(self._file.write, line)


class DictReader(csv.DictReader):
    """csv.DictReader, also of a file of bytes."""

    def __init__(self, f, *args, **named):
        super().__init__(each(f), *args, **named)


class DictWriter(csv.DictWriter):
    """csv.DictWriter, also to a file of bytes."""

    def __init__(self, f, *args, **named):
        super().__init__(_Lines(f), *args, **named)


CSV: dict[str, Any] = {
    "reader": lambda lines, *args, **named: csv.reader(each(lines), *args, **named),
    "writer": lambda file, *args, **named: csv.writer(_Lines(file), *args, **named),
    "DictReader": DictReader,
    "DictWriter": DictWriter,
}


def _pack(form, *values):
    return characters(with_bytes(struct.pack, form, *map(_packed, values)))


def _packed(value):
    return as_bytes(value) if isinstance(value, str) else value


class Struct(struct.Struct):
    """struct.Struct of text."""

    def pack(self, *values):
        return characters(super().pack(*map(_packed, values)))

    def unpack(self, data):
        return tuple(map(characters, super().unpack(_packed(data))))


STRUCT: dict[str, Any] = {
    "pack": _pack,
    "unpack": lambda form, data: tuple(map(characters, struct.unpack(form, _packed(data)))),
    "unpack_from": lambda form, data, *offset: tuple(
        map(characters, struct.unpack_from(form, _packed(data), *offset))
    ),
    "Struct": Struct,
}


def json_names(module: types.ModuleType) -> dict[str, Any]:
    """json without `encoding`, which said what bytes meant."""

    def plain(function):
        return lambda *args, encoding=None, **named: function(*args, **named)

    return {name: plain(getattr(module, name)) for name in ("load", "loads", "dump", "dumps")}


def _status(command: str) -> tuple[int, str]:
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = text(done.stdout)
    code = done.returncode
    return (code << 8 if code >= 0 else -code), output[:-1] if output.endswith("\n") else output


def new_hmac(key, msg=None, digestmod="md5"):
    """hmac.new"""
    return hmac.new(_packed(key), _packed(msg), digestmod)


COMMANDS: dict[str, Any] = {"getstatusoutput": _status, "getoutput": lambda command: _status(command)[1]}

# -------------------------------------------------------------------------------------------- old names

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")


def getargspec(function) -> ArgSpec:
    """inspect.getargspec"""
    import inspect

    return ArgSpec(*inspect.getfullargspec(function)[:4])


def walk(top: str, visit, arg) -> None:
    """os.path.walk"""
    names = os.listdir(top)
    visit(arg, top, names)
    for name in names:
        place = os.path.join(top, name)
        if os.path.isdir(place) and not os.path.islink(place):
            walk(place, visit, arg)


TYPES: dict[str, Any] = {
    "StringType": str, "StringTypes": (str,), "UnicodeType": str, "IntType": int, "LongType": int, "FloatType": float,
    "ListType": list, "TupleType": tuple, "DictType": dict, "DictionaryType": dict, "BooleanType": bool,
    "ComplexType": complex, "NoneType": type(None), "ObjectType": object, "TypeType": type, "ClassType": type,
    "InstanceType": object, "FileType": (), "SliceType": slice, "XRangeType": range,
    "UnboundMethodType": types.FunctionType,
    "EllipsisType": type(...), "NotImplementedType": type(NotImplemented),
}  # fmt: skip


def digest_module(name: str) -> types.ModuleType:
    """The modules md5 and sha."""
    module: Any = types.ModuleType(name)
    make = getattr(hashlib, {"sha": "sha1"}.get(name, name))
    module.new = lambda data="": make(as_bytes(data) if isinstance(data, str) else data)
    setattr(module, name, module.new)
    return module


def sets_module() -> types.ModuleType:
    """The module sets."""
    module: Any = types.ModuleType("sets")
    module.Set, module.ImmutableSet = set, frozenset
    return module


def exceptions_module() -> types.ModuleType:
    """The module exceptions."""
    import builtins

    module = types.ModuleType("exceptions")
    kinds = {n: k for n, k in vars(builtins).items() if isinstance(k, type) and issubclass(k, BaseException)}
    vars(module).update(kinds, StandardError=Exception)
    return module
