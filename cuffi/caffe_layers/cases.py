"""Cases of Caffe layers (cuffi/runtime/cases.py explains Case)."""

import inspect
import threading
import typing
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from ..runtime.cases import Bad, Case, Draw
from .call import CaffeModule

__all__ = ["Bad", "CaffeFunction", "caffe_case"]


class CaffeFunction:
    """A Caffe layer's module as a function of its bottoms and parameter blobs.

    Args:
        name: the name of the case.
        make: a function without arguments that makes the module.
        reference: its parameters name the arguments: blob0, blob1 ... are the layer's blobs, all others its bottoms.

    Attributes:
        mode: the module's mode. 'gpu' runs its kernels on CPU tensors, too.
    """

    def __init__(self, name: str, make: Callable[[], torch.nn.Module], reference: Callable):
        self.__name__ = name
        self.make = typing.cast("Callable[[], CaffeModule]", make)
        self.mode: str | None = None
        self.__signature__ = inspect.signature(reference)
        self._modules: dict[tuple, CaffeModule] = {}

    def bottoms_and_blobs(self, arguments: tuple) -> tuple[tuple, dict[str, Tensor]]:
        """The bottoms, and the blobs by name. Trailing bottoms that are None, and None by default, are left out."""
        named = self.__signature__.bind(*arguments).arguments
        blobs = {name: value for name, value in named.items() if name.startswith("blob")}
        bottoms, parameters = [name for name in named if name not in blobs], self.__signature__.parameters
        while bottoms and named[bottoms[-1]] is None and parameters[bottoms[-1]].default is None:
            bottoms.pop()
        return tuple(named[name] for name in bottoms), blobs

    def __call__(self, *arguments):
        bottoms, blobs = self.bottoms_and_blobs(arguments)
        if not all(isinstance(b, Tensor) and not b.is_nested for b in bottoms):
            return self.make()(*bottoms)  # the module raises its own error
        key = tuple(b.shape for b in bottoms)
        if blobs:
            # functional_call changes the module, so threads must not share it.
            key += (threading.get_ident(),)
        module = self._modules.get(key)
        if module is None:
            module = self._modules[key] = self.make().setup(*bottoms) if blobs else self.make()
        if module.mode != self.mode:
            module.mode = self.mode
        return torch.func.functional_call(module, blobs, bottoms) if blobs else module(*bottoms)


def caffe_case(
    name: str, make: Callable[[], torch.nn.Module], reference: Callable, inputs: Mapping, **options
) -> Case:
    """A Case of a Caffe layer; see CaffeFunction and Case."""
    function = CaffeFunction(name, make, reference)
    first = next(iter(inputs.values()))

    def module() -> torch.nn.Module:
        bottoms, blobs = function.bottoms_and_blobs(first(Draw()))
        return function.make().setup(*bottoms) if blobs else make()

    return Case(function=function, reference=reference, inputs=inputs, module=module, **options)
