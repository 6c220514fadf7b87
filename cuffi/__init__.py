"""Run what people already have in PyTorch: CUDA kernels, Caffe layers, whole Caffe models, old extensions.

    from cuffi.round import Round   a layer, from the folder layers/round; `make` builds it

Also in this package:

    load, load_inline               build a layer at run time, from a folder or a string
    caffe_net                       load a whole Caffe model as a torch.nn.Module
    train, caffe, dnn, ffi          modules: train by a solver file; pycaffe; cv2.dnn's Caffe importer; torch.utils.ffi
    Layer, operator, caffe_layer    the parts of a layer's own Python file

Layers in the folders of LAYERS_DIR are imported in the same way: `from cuffi.my_layer import ...`.
"""

import importlib
import sys

# Before the rest of the package, which an older Python cannot read.
if sys.version_info < (3, 10):  # noqa: UP036
    raise ImportError(
        "{} is Python {}.{}; cuffi needs 3.10 or newer".format(sys.executable, *sys.version_info)
    )

from . import folders as _folders
from . import installed as _installed
from . import own_python as _own_python
from . import packages as _packages
from .version import VERSION as __version__  # noqa: F401

_own_python.start_again()
_installed.check_versions()
_folders.install_finder()
_packages.adopt(__name__)
# What is installed here and provides something to a part that does not import it (base/providers.py).
_providing = _folders.providing
# Each is imported at its first use, so that `import cuffi` does not import torch.
_PUBLIC = {
    "load": "loading.load",
    "load_inline": "loading.load_inline",
    "CaffeBuildError": "loading.run_make",
    "adopt": "packages",
    "Layer": "runtime",
    "operator": "runtime",
    "CaffeError": "base",
    "CaffeTypeError": "base",
    "CaffeValueError": "base",
    "CaffeRuntimeError": "base",
    "caffe_layer": "caffe_layers.call",
    "caffe_net": "nets.net",
    "CaffeNet": "nets.net",
}


# For type checkers, which read it and do not run it: the names above are what they are, and no others are there.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import caffe as caffe
    from . import dnn as dnn
    from . import train as train
    from .base import CaffeError as CaffeError
    from .base import CaffeRuntimeError as CaffeRuntimeError
    from .base import CaffeTypeError as CaffeTypeError
    from .base import CaffeValueError as CaffeValueError
    from .caffe_layers.call import caffe_layer as caffe_layer
    from .loading.load import load as load
    from .loading.load_inline import load_inline as load_inline
    from .loading.run_make import CaffeBuildError as CaffeBuildError
    from .nets.net import CaffeNet as CaffeNet
    from .nets.net import caffe_net as caffe_net
    from .packages import adopt as adopt
    from .runtime import Layer as Layer
    from .runtime.operator import operator as operator


def _attribute(name: str):
    """Import `cuffi.round` at its first use. The error for an unknown name lists the known ones."""
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _PUBLIC:
        wing = _PUBLIC[name].partition(".")[0]
        if not _folders.is_part(wing):
            raise ImportError(_installed.missing(name))
        try:
            return getattr(importlib.import_module(f".{_PUBLIC[name]}", __name__), name)
        except ModuleNotFoundError as error:
            if error.name != "torch" or not _own_python.is_checkout():
                raise
            raise ModuleNotFoundError(_own_python.what_to_do("torch"), name="torch") from None
    if _folders.is_part(name):
        return importlib.import_module(f".{name}", __name__)
    folders = [*_folders.listed(), *_folders.toolkit_folders()]
    known = sorted({name for folder in folders for name in _folders.with_file(folder, "__init__.py")})
    if name in known:
        return importlib.import_module(f".{name}", __name__)
    if name in _installed.KERNELS:
        raise ImportError(_installed.missing(name))
    raise AttributeError(f"no layer {name!r}. There are: {', '.join(known)}")


if not TYPE_CHECKING:
    __getattr__ = _attribute


def __dir__() -> list[str]:
    here = {name for name, place in _PUBLIC.items() if _folders.is_part(place.partition(".")[0])}
    return sorted({*globals(), *here})
