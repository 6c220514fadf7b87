"""Fixtures of this folder."""

import sys
import types

import pytest

from cuffi.runtime import Layer


@pytest.fixture
def layer(tmp_path, request):
    """A layer without C functions: an operator's handling of arguments needs none."""
    name = "operators_of_" + "".join(c if c.isalnum() else "_" for c in request.node.name)
    module = types.ModuleType(name)
    module.__file__ = str(tmp_path / "__init__.py")
    sys.modules[name] = module
    yield Layer(name)
    del sys.modules[name]
