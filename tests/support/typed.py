"""What a type leaves open and a test knows: a value that is there, a file that is a module."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """The value, which is there: what a search has found, the gradient of a tensor."""
    assert value is not None
    return value


def module_of(file: Path, name: str = "") -> ModuleType:
    """Import a file, whose folder need not be on the path, under its own name or this one."""
    spec = not_none(importlib.util.spec_from_file_location(name or file.stem, file))
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(module)
    return module
