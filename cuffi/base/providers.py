"""What one part of the package does for another that does not import it.

A file `provides_<what>.py` of a wing, or of a layer's folder, does <what>. Who needs <what> asks for these modules, and
does without if there are none:

    ported_layers           finds the ported layers of a folder (cuffi/nets/net/registry.py says what it has)
    fork_messages           reads a fork's caffe.proto (cuffi/nets/pycaffe/proto/_source.py)
    torch_extensions        builds sources of torch/extension.h (cuffi/loading/load.py)
    kinds_of_cases          what a wing's cases.py imports, beside what cuffi/runtime/cases.py has
    depthwise_convolution   computes a net's fused convolutions on a GPU (cuffi/nets/net/fused.py)
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

# The top of the package knows where such modules are: its `_providing(what)` gives their names. It cannot hand that
# over itself, because `import cuffi` must not import torch, which this package does.
_TOP = sys.modules[__name__.partition(".")[0]]


def providers(what: str) -> list[ModuleType]:
    """The modules that provide it. One is left out if its wing, or a package that it needs, is not installed."""
    found, _ = _imported(what)
    return found


def why_none(what: str) -> str:
    """For a message: why nothing here provides it."""
    _, reasons = _imported(what)
    return "; ".join(reasons) or "the part of cuffi that does it is not installed"


def _imported(what: str) -> tuple[list[ModuleType], list[str]]:
    found, reasons = [], []
    for name in _TOP._providing(what):
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            reasons.append(f"{name}: {error}")
    return found, reasons
