"""A C function as an operator of torch.library, for graphs and modes.

Outside of an operator of a layer a graph must hold the launch itself. Its schema says which tensors it writes to:
`cuffi_sigmoid::launch_sigmoid_forward(Tensor bottom, Tensor(a1!) top, SymInt count) -> ()`.
"""

import keyword

import torch

from ..backends import DISPATCH_KEYS
from .named import name_and_library

_NUMBERS = {"float": "float", "double": "float", "bool": "bool", "_Bool": "bool"}


def schema(parameters, may_be_null) -> str:
    """The schema for the parameters (C's type, name) that a caller passes."""
    listed = []
    for i, (kind, name) in enumerate(parameters):
        if kind.endswith("*"):
            alias = "" if kind.startswith("const ") else f"(a{i}!)"
            of_torch = f"Tensor{alias}{'?' * (name in may_be_null)}"
        else:
            of_torch = _NUMBERS.get(kind, "SymInt")
        # A graph is Python code, in which these names are taken.
        listed.append(f"{of_torch} {name}{'_' * (keyword.iskeyword(name) or name == 'self')}")
    return f"({', '.join(listed)}) -> ()"


def register(module: str, function: str, parameters, may_be_null, run):
    """torch's operator, which calls `run` with the arguments, and the library that it lives in."""
    name, library = name_and_library(module, f"launch_{function}")
    short = name.partition("::")[2]
    library.define(short + schema(parameters, may_be_null), tags=(torch.Tag.pt2_compliant_tag,))
    for key in DISPATCH_KEYS:
        library.impl(short, run, key)
    torch.library.register_fake(name, lambda *_: None, lib=library)
    return getattr(getattr(torch.ops, library.ns), short).default, library
