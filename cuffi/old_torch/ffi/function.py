"""Old-style autograd Functions: `Round()(x)`, with forward and backward as methods of an instance.

torch ran them until 1.2, and now refuses them. `old_functions` makes torch run them again, each by a Function of
today. A Function with static methods runs as before.
"""

import functools
import inspect
import os
import sys

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ...runtime import CaffeRuntimeError, CaffeTypeError

# Folders, ending in "/". Old Functions that are defined in or below one of them run. "" means everywhere.
_folders: set[str] = set()
_torchs = {name: getattr(Function, name) for name in ("__init__", "__call__", "saved_tensors")}


def old_functions(*folders: str | os.PathLike) -> None:
    """Make old-style autograd Functions run again, in this process.

    Args:
        folders: only the Functions that are defined in files below these. Without a folder: all.

    An old Function is an instance with `forward(self, *inputs)` and `backward(self, *grads)`. It may use
    `save_for_backward`, `saved_tensors`, `mark_dirty`, `mark_non_differentiable` and `needs_input_grad`. Its backward
    gets contiguous gradients, because old kernels read a gradient as dense memory. It has no second derivative.
    """
    _folders.update(os.path.realpath(folder) + os.sep for folder in folders) if folders else _folders.add("")
    Function.__init__, Function.__call__ = _init, _call
    for name in ("saved_tensors", "saved_variables"):
        setattr(Function, name, property(_saved))


def _is_served(cls: type) -> bool:
    """Is it a class of old style, in one of the folders?"""
    if isinstance(inspect.getattr_static(cls, "forward", None), staticmethod):
        return False
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return "" in _folders or os.path.realpath(file).startswith(tuple(_folders))


def _init(self, *arguments, **named):
    if not _is_served(type(self)):  # torch's own __init__ warns that a Function should not be instantiated
        _torchs["__init__"](self, *arguments, **named)


def _call(self, *inputs, **named):
    if not _is_served(type(self)):
        return _torchs["__call__"](self, *inputs, **named)
    if named:
        raise CaffeTypeError(f"{type(self).__name__}: an old-style Function takes no arguments by name")
    # Each call has its own object, so that a Function that is called twice has two sets of attributes.
    own = type(self).__new__(type(self))
    own.__dict__.update(self.__dict__)
    result = _today(type(self)).apply(own, *inputs)
    self.__dict__.update(own.__dict__)
    return result


def _saved(self) -> tuple[Tensor, ...]:
    """The saved tensors of the call whose backward runs; otherwise those that this object saved last."""
    return self.__dict__.get("_saved_tensors") or self.to_save or _torchs["saved_tensors"].__get__(self)


@functools.cache
def _today(cls: type) -> type[Function]:
    """A Function of today that runs one old class. Its node in the graph has the old class's name."""
    return type(cls.__name__, (_Today,), {"__module__": cls.__module__})


class _Today(Function):
    @staticmethod
    def forward(ctx, old, *inputs):
        ctx.old, ctx.inputs = old, len(inputs)
        old.needs_input_grad = ctx.needs_input_grad[1:]
        result = old.forward(*inputs)
        ctx.save_for_backward(*(old.to_save or ()))
        ctx.mark_dirty(*(old.dirty_tensors or ()))
        ctx.mark_non_differentiable(*(old.non_differentiable or ()))
        old.to_save = old.dirty_tensors = old.non_differentiable = None
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx, *grads):
        old = ctx.old
        old.__dict__["_saved_tensors"] = ctx.saved_tensors
        try:
            found = old.backward(*(g.contiguous() if isinstance(g, Tensor) else g for g in grads))
        finally:
            del old.__dict__["_saved_tensors"]
        found = found if isinstance(found, tuple) else (found,)
        if len(found) < ctx.inputs or any(g is not None for g in found[ctx.inputs :]):
            raise CaffeRuntimeError(
                f"{type(old).__name__}: backward returned {len(found)} gradients, forward took {ctx.inputs} inputs"
            )
        return None, *found[: ctx.inputs]
