"""Types stand in modules by family. The table of a package names each, and imports a module where a net needs it."""

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from support import python_with_torch

from cuffi.nets import forks, stock

PACKAGES = [stock, forks]


def modules(package):
    """The modules of a package that have types."""
    files = sorted(Path(package.__file__).parent.glob("[!_]*.py"))
    return {file.stem: importlib.import_module(f"{package.__name__}.{file.stem}") for file in files}


def types_in(package, module):
    """The types that the classes of a module compute."""
    own: list[Any] = [
        kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__
    ]
    kinds = [kind for kind in own if issubclass(kind, stock.StockLayer) and not inspect.isabstract(kind)]
    return {name for kind in kinds for name in ([kind.__name__] if package is stock else kind.types)}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_table_names_each_type_of_each_module(package):
    found = {name: types_in(package, module) for name, module in modules(package).items()}
    assert found == {family: set(names.split()) for family, names in package.FAMILIES.items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_modules_head_names_its_types(package):
    for name, module in modules(package).items():
        lacking = [kind for kind in package.FAMILIES[name].split() if kind not in module.__doc__]
        assert not lacking, name


def test_a_family_is_imported_when_a_net_has_its_types():
    text = """
import sys, cuffi.nets
from cuffi.nets import forks
parts = ("nets.forks.ssd", "nets.forks.yolo", "nets.stock.losses")
seen = lambda: [name for name in sys.modules if name.endswith(parts)]
print(seen(), "PriorBox" in forks.fork_types(), seen(), len(forks.fork_classes("PriorBox")), seen())
"""
    done = python_with_torch.run([sys.executable, "-c", text])
    assert done.stdout == "[] True [] 1 ['cuffi.nets.forks.ssd']\n", done.stderr
