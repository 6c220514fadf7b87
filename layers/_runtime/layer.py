"""Layer: the C functions of a layer's folder as Python methods, and checks of arguments.

A layer makes `layer = Layer(__name__)`, and calls its exported C functions as methods,

    layer.round_forward(bottom, top, bottom.numel())

with tensors for the pointers of the C declaration. launcher.py fills in `dtype` and `stream`, and `weight_dtype` if the
function has one because its `weight` may have a dtype of its own.
"""

import operator
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor

from .._backends import BACKENDS, DEVICES, HOST, Backend
from .errors import CaffeTypeError, CaffeValueError, describe
from .launcher import Launcher
from .library import FLOATING, Library, backends_here, last_failure


class Layer:
    """The libraries of one layer.

    Args:
        module: the layer package's `__name__`.
        dtypes: those that its C functions can compute in, if not all four floating types.
        any_layout: pass tensors as they lie in memory. Otherwise inputs are made contiguous.

    Attributes:
        name: the folder's name, with which every error message begins.
    """

    def __init__(self, module: str, *, dtypes: tuple[torch.dtype, ...] = FLOATING, any_layout: bool = False):
        # The libraries lie beside the layer's Python. load() builds them elsewhere, and sets __libraries__.
        own = vars(sys.modules[module]) if isinstance(module, str) and module in sys.modules else {}
        if not ("__libraries__" in own or "__file__" in own):
            raise CaffeValueError(
                f"Layer: module: expected a layer package's __name__, got {describe(module)}"
            )
        self.module, self.dtypes, self.any_layout = module, dtypes, any_layout
        self.name = module.rpartition(".")[2]
        self.folder = Path(own.get("__libraries__") or Path(own["__file__"]).resolve().parent)
        self._libraries: dict[str, Library] = {}
        for backend in backends_here():
            library = self.folder / backend.library
            if not library.exists() and (why := last_failure(library)):
                warnings.warn(f"{self.name}: {why}", RuntimeWarning, stacklevel=2)

    def library(self, backend: str) -> Library:
        """The loaded library for a backend. If it is missing, the error names the command that builds it."""
        if backend not in self._libraries:
            self._libraries[backend] = Library(self.name, self.module, self.folder, backend, self.dtypes)
        return self._libraries[backend]

    def backends(self) -> list[str]:
        """The backends this layer is built for."""
        return [backend.name for backend in backends_here() if (self.folder / backend.library).exists()]

    def any_backend(self) -> Backend:
        """One of the backends that it is built for, if possible the host."""
        return BACKENDS[next(iter(self.backends()), HOST.name)]

    def __getattr__(self, function: str):
        if function.startswith("_"):
            raise AttributeError(function)
        launcher = Launcher(self, function).fastest()
        setattr(self, function, launcher)  # so that the next access finds it
        return launcher

    def __dir__(self):
        """What a notebook completes: the C functions, too."""
        built = self.backends()
        return [*super().__dir__(), *(self.library(built[0]).signatures if built else ())]

    def __repr__(self):
        return f"<layer {self.name}>"

    def check(self, condition: bool, argument: str, wanted: str, got) -> None:
        """Raise CaffeValueError('<layer>: <argument>: expected <wanted>, got <got>') unless the condition holds."""
        if not condition:
            got = describe(got) if isinstance(got, Tensor) else got
            raise CaffeValueError(f"{self.name}: {argument}: expected {wanted}, got {got}")

    def wrong(self, argument: str, wanted: str, got) -> CaffeTypeError:
        return CaffeTypeError(f"{self.name}: {argument}: expected {wanted}, got {describe(got)}")

    def check_tensor(self, name: str, value, *, meta: bool = False) -> None:
        """Raise CaffeTypeError unless the value is a dense tensor on a device that layers are built for.

        Args:
            meta: accept tensors without data, too, because only shapes are computed.
        """
        if not isinstance(value, Tensor):
            raise self.wrong(name, "a tensor", value)
        if value.layout != torch.strided or value.is_nested or value.is_quantized:
            raise self.wrong(name, "a dense tensor", value)
        if value.device.type not in DEVICES and not (meta and value.is_meta):
            raise self.wrong(name, f"a tensor on {' or '.join(DEVICES)}", value)

    def integer(self, name: str, value, least: int, most: int = 2**31 - 1) -> int:
        """The value of a parameter as an int. Takes what operator.index takes, such as a numpy integer, but no bool.

        Raises:
            CaffeTypeError: it is no integer.
            CaffeValueError: it is not from `least` to `most`.
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
        """An int or a pair of ints as a pair. Raises the errors of `integer`."""
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
