"""For load and load_inline: sources of torch/extension.h (cuffi/base/providers.py)."""

from .cpp_extension import load, load_inline

__all__ = ["load", "load_inline"]
