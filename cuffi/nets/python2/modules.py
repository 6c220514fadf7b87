"""Import a user's files from their own folders, apart from all other modules."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.util
import itertools
import os
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable, Iterable
from importlib.machinery import (
    ExtensionFileLoader,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path

import numpy as np

from ...base.shown import command
from . import extensions, notebook
from .convert import Dialect, Source, compiled
from .language import OLD_BUILTINS, divided_unsure
from .libraries import library, moved

_numbers = itertools.count(1)
_trees: dict[str, Tree] = {}
# pip's name of a module's package, if it differs.
_PACKAGES = {
    "cv2": "'opencv-python-headless<5'", "PIL": "pillow", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "yaml": "pyyaml", "google": "protobuf", "pydot": "pydot", "Image": "pillow", "dlib": "dlib",
}  # fmt: skip


class Tree:
    """The modules of some folders. `tree.module("rpn.proposal_layer")` imports one.

    In sys.modules their names begin with the tree's name, so two trees may have modules of one name, and none hides a
    module of the toolkit or of a package. In the files themselves imports work as usual.

    Args:
        folders: the folders to search, in order; more may be added to this list.
        provided: functions that return a module which the files get instead of any other, by name, such as `caffe`.
        more: returns further folders, at each import.
    """

    running: Tree | None = None  # the tree of the script that `python -m cuffi.caffe` runs

    def __init__(self, folders: Iterable[str], provided: dict[str, Callable], more: Callable = tuple):
        self.folders, self.provided, self.more = list(folders), provided, more
        self.name, self.language = f"caffe_python_{next(_numbers)}", 0
        self.package = types.ModuleType(self.name)
        self.package.__path__ = []
        _trees[self.name] = self
        sys.modules[self.name] = self.package
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())

    @property
    def places(self) -> list[str]:
        return [os.path.abspath(folder) for folder in (*self.folders, *self.more())]

    def module(self, name: str) -> types.ModuleType:
        """The module of that name in the folders."""
        return self._import(name, {}, None, ("*",), 0, Dialect(3, True))

    def run(self, path: Path, names: dict, language: int = 0) -> None:
        """Run a file in a namespace, as `python path` does. `language` decides if neither it nor an earlier file
        does. NotebookError at the end if cells of a notebook were left out.
        """
        if path.suffix == ".ipynb":
            return notebook.run(self, path, names)
        source = compiled(path, self.language or language)
        self.language = self.language or source.language
        self.execute(source, names)
        return None

    def execute(self, source: Source, names: dict) -> None:
        """Run code in a namespace."""
        names["__builtins__"] = self.builtins(source)
        if Tree.running is self and source.language != 3 and np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            np.set_printoptions(legacy="1.25")  # [0.5], not [np.float32(0.5)]
        exec(source.code, names)

    def builtins(self, source: Source) -> dict:
        """The builtins of a file."""
        names = dict(vars(builtins))
        if source.language != 3:
            names |= OLD_BUILTINS
            if source.language == 0:
                names["__divided__"] = divided_unsure

        def imported(name, globals=None, locals=None, fromlist=(), level=0):
            return self._import(name, globals or {}, locals, fromlist or (), level, source)

        return names | {"__import__": imported, "__tree__": self}

    # ------------------------------------------------------------------------------------------- imports

    def _import(self, name: str, names: dict, locals_, fromlist, level: int, source: Dialect):
        if level:
            return builtins.__import__(name, names, locals_, fromlist, level)
        top = name.partition(".")[0]
        if top in self.provided:
            return _walked(self.provided[top](), name, fromlist)
        package = names.get("__package__") or self.name
        beside = [package] if source.language != 3 and not source.absolute and package != self.name else []
        for parent in (*beside, self.name):
            if self._has(parent, top):
                found = builtins.__import__(f"{parent}.{name}", names, locals_, fromlist, 0)
                return found if fromlist else sys.modules[f"{parent}.{top}"]
        return self._library(name, names, locals_, fromlist, source)

    def _has(self, parent: str, top: str) -> bool:
        """Do the folders have such a module? If the process has already imported it from them, that one is used."""
        self.package.__path__[:] = folders = self.places
        if f"{parent}.{top}" in sys.modules:
            return True
        other = sys.modules.get(top)
        if parent == self.name and other is not None and top not in _OWN:
            file = getattr(other, "__file__", None) or next(iter(getattr(other, "__path__", ())), "")
            if not file or any(os.path.abspath(file).startswith(os.path.join(f, "")) for f in folders):
                return False
        spec = importlib.util.find_spec(f"{parent}.{top}")
        # A folder without __init__.py is a module only if nothing else has the name.
        return spec is not None and (spec.loader is not None or importlib.util.find_spec(top) is None)

    def _library(self, name: str, names: dict, locals_, fromlist, source: Dialect):
        try:
            if source.language == 3:
                return builtins.__import__(name, names, locals_, fromlist, 0)
            new = moved().get(name, name)
            found = library(new)
            for each in fromlist:
                if each != "*" and not hasattr(found, each):
                    importlib.import_module(f"{new}.{each}")
            return found if fromlist or new != name else library(name.partition(".")[0])
        except ModuleNotFoundError as error:
            missing = (error.name or name).partition(".")[0]
            if not names.get("__file__") or missing != name.partition(".")[0]:
                raise
            pip = _PACKAGES.get(missing, missing)
            text = f"{names['__file__']}: import {name}: neither in {', '.join(self.package.__path__)} nor installed"
            raise ModuleNotFoundError(f"{text}: {command('pip', 'install', pip)}?", name=error.name) from None


# The toolkit's package in the checkout; a user's folder may have the same name.
_OWN = {__name__.partition(".")[0]}


def folders_of_user() -> list[str]:
    """The user's own folders of sys.path, without those of installed packages."""
    own = str(Path(__file__).resolve().parents[3])
    installed = {*sysconfig.get_paths().values(), own}
    places = [os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder or ".")]
    return [
        place for place in places
        if not any(place == other or place.startswith(os.path.join(other, "lib-dynload")) for other in installed)
        and not place.endswith(("site-packages", "dist-packages"))
        and not any(name.endswith(".dist-info") for name in os.listdir(place))
    ]  # fmt: skip


def _walked(module: types.ModuleType, name: str, fromlist):
    """The result of importing `caffe.proto.caffe_pb2`, because `caffe` is not a package here."""
    top = module
    for word in name.split(".")[1:]:
        try:
            module = getattr(module, word)
        except AttributeError as error:
            raise ModuleNotFoundError(str(error), name=name) from None
    return module if fromlist else top


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the trees."""

    def find_spec(self, name: str, path, target=None) -> ModuleSpec | None:
        tree = _trees.get(name.partition(".")[0])
        if tree is None or path is None:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, tree)
        elif spec is not None and isinstance(spec.loader, SourcelessFileLoader):
            return _of_compiled(spec, name)
        elif (spec is None or not _loads(spec)) and extensions.is_one(name.rpartition(".")[2], path):
            return ModuleSpec(name, _Stand())
        return spec


class _Loader(SourceFileLoader):
    """Loads a file that is converted in memory."""

    def __init__(self, name: str, path: str, tree: Tree):
        super().__init__(name, path)
        self.tree = tree

    def exec_module(self, module: types.ModuleType) -> None:
        self.tree.run(Path(self.path), vars(module))


def _of_compiled(spec: ModuleSpec, name: str) -> ModuleSpec:
    """A module of which only the .pyc is there. What Python 2 compiled cannot run: a package is its other files."""
    with open(spec.origin or "", "rb") as file:
        is_ours = file.read(4) == importlib.util.MAGIC_NUMBER
    if is_ours:
        return spec
    if spec.submodule_search_locations is None:
        what = "was compiled by another Python, which today's cannot run, and its .py is not there"
        raise ImportError(f"{spec.origin}: {what}", name=name)
    package = ModuleSpec(name, _Compiled(spec.origin or ""), origin=spec.origin, is_package=True)
    package.submodule_search_locations = spec.submodule_search_locations
    return package


class _Compiled(importlib.abc.Loader):
    """A package whose __init__ is only there as another Python's .pyc: its modules can be imported."""

    def __init__(self, path: str):
        self.path = path

    def create_module(self, spec):
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        def missing(name: str):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(
                f"{self.path} was compiled by another Python, so what it defines, such as {name!r}, is not there"
            )

        vars(module)["__getattr__"] = missing


class _Stand(importlib.abc.Loader):
    """Fills a module with the toolkit's functions."""

    def create_module(self, spec):
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        extensions.fill(module)


def _loads(spec: ModuleSpec) -> bool:
    """Can this compiled module be loaded? One that was built for Python 2 cannot."""
    if not isinstance(spec.loader, ExtensionFileLoader):
        return spec.loader is not None
    try:
        importlib.util.module_from_spec(spec)
    except ImportError:
        return False
    return True


def place_of(error: BaseException) -> str:
    """'/my/layer.py, line 7, in forward: ' of the innermost line of a user's file that an error came through, or ''."""
    own = str(Path(__file__).resolve().parents[2])
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        in_tree = str(frame.f_globals.get("__name__", "")).partition(".")[0] in _trees
        if in_tree and not file.startswith(own):
            return f"{file}, line {line}, in {frame.f_code.co_name}: "
    return ""
