"""A layer's folder as Python sees it: its C functions, and the checks that its Python code needs.

A layer says `layer = Layer(__name__)` and calls its exported C functions as methods,

    layer.round_forward(bottom, top, bottom.numel())

with tensors where the C declaration has pointers. `dtype` and `stream` are filled in (launcher.py). So is
`weight_dtype`, which a function takes whose `weight` may have another dtype than the rest.
"""

import operator
import sys
from pathlib import Path

import torch
from torch import Tensor

from .._backends import BACKENDS, DEVICES, HOST, Backend
from .errors import CaffeTypeError, CaffeValueError, describe
from .launcher import Launcher
from .library import FLOATING, Library, served


class Layer:
    """A layer's folder seen from Python.

    Args:
        module: the layer package's `__name__`.
        dtypes: what its C functions were written for, if not all four floating types.
        any_layout: hand tensors over as they lie in memory. Otherwise inputs are made contiguous.

    Attributes:
        name: the folder's name, which starts every error message.
    """

    def __init__(self, module: str, *, dtypes: tuple[torch.dtype, ...] = FLOATING, any_layout: bool = False):
        # Where the libraries are: beside the layer's Python, unless whoever imports it had them built elsewhere.
        own = vars(sys.modules[module]) if isinstance(module, str) and module in sys.modules else {}
        if not ("__libraries__" in own or "__file__" in own):
            raise CaffeValueError(
                f"Layer: module: expected a layer package's __name__, got {describe(module)}"
            )
        self.module, self.dtypes, self.any_layout = module, dtypes, any_layout
        self.name = module.rpartition(".")[2]
        self.folder = Path(own.get("__libraries__") or Path(own["__file__"]).resolve().parent)
        self._libraries: dict[str, Library] = {}

    def library(self, backend: str) -> Library:
        """The loaded library for a backend; CaffeRuntimeError says what to type if it is missing."""
        if backend not in self._libraries:
            self._libraries[backend] = Library(self.name, self.module, self.folder, backend, self.dtypes)
        return self._libraries[backend]

    def backends(self) -> list[str]:
        """The backends this layer is built for."""
        return [backend.name for backend in served() if (self.folder / backend.library).exists()]

    def any_backend(self) -> Backend:
        """One that it is built for, where that makes no difference: the host, if it can be."""
        return BACKENDS[next(iter(self.backends()), HOST.name)]

    def __getattr__(self, function: str):
        if function.startswith("_"):
            raise AttributeError(function)
        launcher = Launcher(self, function).fastest()
        setattr(self, function, launcher)  # the next access finds it without coming here
        return launcher

    def check(self, condition: bool, argument: str, wanted: str, got) -> None:
        """Raise CaffeValueError('<layer>: <argument>: expected <wanted>, got <got>') unless the condition holds."""
        if not condition:
            got = describe(got) if isinstance(got, Tensor) else got
            raise CaffeValueError(f"{self.name}: {argument}: expected {wanted}, got {got}")

    def wrong(self, argument: str, wanted: str, got) -> CaffeTypeError:
        return CaffeTypeError(f"{self.name}: {argument}: expected {wanted}, got {describe(got)}")

    def check_tensor(self, name: str, value, *, meta: bool = False) -> None:
        """Raise CaffeTypeError unless the value is a dense tensor, on a device that layers are built for.

        Args:
            meta: tensors without data are welcome, too: only their shapes are worked out.
        """
        if not isinstance(value, Tensor):
            raise self.wrong(name, "a tensor", value)
        if value.layout != torch.strided or value.is_nested or value.is_quantized:
            raise self.wrong(name, "a dense tensor", value)
        if value.device.type not in DEVICES and not (meta and value.is_meta):
            raise self.wrong(name, f"a tensor on {' or '.join(DEVICES)}", value)

    def integer(self, name: str, value, least: int, most: int = 2**31 - 1) -> int:
        """The value of a parameter as an int: what operator.index takes, a numpy integer for one, but no bool.

        Raises:
            CaffeTypeError, CaffeValueError: not an integer; not from `least` to `most`.
        """
        try:
            if isinstance(value, bool):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise self.wrong(name, f"an int, at least {least}", value) from None
        if not least <= number <= most:
            self.check(False, name, f"an int from {least} to {most}", number)
        return number

    def pair(self, name: str, value, least: int) -> tuple[int, int]:
        """An int or a pair of them, as a pair. Errors are those of `integer`."""
        if type(value) is int and least <= value < 2**31:
            return value, value
        if isinstance(value, (tuple, list)):  # torch.Size is one
            if len(value) != 2:
                self.check(False, name, "an int or a pair of ints", value)
            return self.integer(name, value[0], least), self.integer(name, value[1], least)
        number = self.integer(name, value, least)
        return number, number

    @staticmethod
    def empty_like(tensor: Tensor) -> Tensor:
        """An uninitialised contiguous tensor of the same shape, dtype and device."""
        if tensor.is_contiguous():
            return torch.empty_like(tensor)
        return torch.empty_like(tensor, memory_format=torch.contiguous_format)
