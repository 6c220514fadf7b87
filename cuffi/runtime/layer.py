"""Layer: the C functions of a layer's folder as Python methods, and checks of arguments.

A layer makes `layer = Layer(__name__)`, and calls its exported C functions as methods,

    layer.round_forward(bottom, top, bottom.numel())

with tensors for the pointers of the C declaration. launcher.py fills in `dtype` and `stream`, and `weight_dtype` if the
function has one because its `weight` may have a dtype of its own.
"""

import importlib
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor

from ..backends import BACKENDS, HOST, Backend
from ..base.errors import CaffeRuntimeError, CaffeValueError, describe
from .checks import Checks
from .launcher import Launcher
from .library import FLOATING, Libraries, Library, backends_here, last_failure

# By their modules' names: copies and pickles have no libraries of their own.
_layers: dict[str, "Layer"] = {}


def layer_of(module: str) -> "Layer":
    """The layer of a module, which is imported. CaffeRuntimeError if `load` or `load_inline` must make it first."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise CaffeRuntimeError(
            f"{module.rpartition('.')[2]}: there is no module {module}. If load or load_inline made the layer, call it "
            "with the same source before you unpickle"
        ) from error
    return _layers[module]


def has_launchers(module: str) -> bool:
    """Has this module made a Layer? A wing's layer may make none."""
    return module in _layers


def launcher_of(module: str, function: str):
    """A C function of such a layer."""
    return getattr(layer_of(module), function)


class Layer(Checks):
    """The libraries of one layer.

    Args:
        module: the layer package's `__name__`.
        dtypes: the dtypes that its C functions compute in, if not all four floating types.
        any_layout: pass tensors in their own layout. Otherwise inputs are made contiguous.

    Attributes:
        name: the folder's name; every error message begins with it.
    """

    def __init__(self, module: str, *, dtypes: tuple[torch.dtype, ...] = FLOATING, any_layout: bool = False):
        # The libraries are beside the layer's Python file. load() builds them elsewhere, and sets __libraries__.
        own = vars(sys.modules[module]) if isinstance(module, str) and module in sys.modules else {}
        if not ("__libraries__" in own or "__file__" in own):
            raise CaffeValueError(
                f"Layer: module: expected a layer package's __name__, got {describe(module)}"
            )
        super().__init__(module.rpartition(".")[2])
        self.module, self.dtypes, self.any_layout = module, dtypes, any_layout
        self.folder = Path(own.get("__libraries__") or Path(own["__file__"]).resolve().parent)
        self._libraries = Libraries(self.name, module, self.folder, dtypes)
        # load(sanitize="races") puts a function around each launcher.
        self._wrap = own.get("__wrap__", lambda call: call)
        _layers[module] = self
        for backend in backends_here():
            library = self.folder / backend.library
            if not library.exists() and (why := last_failure(library)):
                warnings.warn(f"{self.name}: {why}", RuntimeWarning, stacklevel=2)

    def library(self, backend: str) -> Library:
        """The loaded library for a backend. If it is missing, the error names the command that builds it."""
        return self._libraries[backend]

    def backends(self) -> list[str]:
        """The backends this layer is built for."""
        return self._libraries.built()

    def any_backend(self) -> Backend:
        """A backend that it is built for: the host, if possible."""
        return BACKENDS[next(iter(self.backends()), HOST.name)]

    def __getattr__(self, function: str):
        if function.startswith("_"):
            raise AttributeError(function)
        call = self._wrap(self.launcher(function).call)
        setattr(self, function, call)  # so that the next access finds it
        return call

    def named(self, name: str):
        """The C function of this name, or the launcher of the kernel: `foo` or `foo_kernel` for `layer_foo`.

        AttributeError if there is none, or if two launchers could be meant.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        there = self.library(self.backends()[0]).signatures if self.backends() else ()
        meant = [name] if name in there else [n for n in there if self._kernel(n) == self._kernel(name)]
        return getattr(self, meant[0] if len(meant) == 1 else name)

    def _kernel(self, function: str) -> str:
        """A launcher's name without what is added to a kernel's, in the letters that both spellings have."""
        letters = function.replace("_", "").lower().removesuffix("launch").removesuffix("kernel")
        return letters.removeprefix(self.name.replace("_", "").lower())

    def launcher(self, function: str) -> Launcher:
        """The launcher of one C function."""
        return Launcher(Checks(self.name), self._libraries, function, self.any_layout)

    def __reduce__(self):
        return layer_of, (self.module,)

    def __dir__(self):
        """The names that a notebook completes, with the C functions."""
        built = self.backends()
        return [*super().__dir__(), *(self.library(built[0]).signatures if built else ())]

    def __repr__(self):
        return f"<layer {self.name}>"

    @staticmethod
    def empty_like(tensor: Tensor) -> Tensor:
        """An uninitialised contiguous tensor of the same shape, dtype and device."""
        if tensor.is_contiguous():
            return torch.empty_like(tensor)
        return torch.empty_like(tensor, memory_format=torch.contiguous_format)
