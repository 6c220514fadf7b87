"""torch's names of our operators, and what its caches know of them."""

import hashlib
import types

import torch

from ..base.errors import CaffeValueError

# By torch's name of an operator: the module that defined it, and the library. This is kept in a module of torch,
# because torch's operators outlive this module if somebody drops `cuffi` from sys.modules to import it again.
_defined: dict[str, tuple[str, torch.library.Library]] = vars(torch.library).setdefault(
    "_defined_by_layers", {}
)


def name_and_library(module: str, function: str) -> tuple[str, torch.library.Library]:
    """torch's name for a function of a layer's package, `namespace::function`, and a library to define it in.

    It replaces that of an earlier import or reload. CaffeValueError if another package has the name.
    """
    namespace = module.replace(".", "_")
    name = f"{namespace}::{function}"
    if name in _defined:
        owner, library = _defined[name]
        if owner != module:
            raise CaffeValueError(
                f"{module}: torch has {owner}'s operator as {name}, and this package's would get the same name. "
                "Rename one of the packages"
            )
        library._destroy()
    library = torch.library.Library(namespace, "FRAGMENT")
    _defined[name] = module, library
    return name, library


_TAG = "; operators of layers "
# By an operator's name: the digest of its functions. They are in the tag of torch.compile's caches.
_digests: dict[str, str] = {}


def tell_caches(name: str, *functions) -> None:
    """Let torch.compile's caches depend on an operator's functions.

    They keep what AOTAutograd made of a shape function and a backward, but know the operator only by its name. So they
    would return the result of an earlier version. A user's own tag stays in front.
    """
    config = getattr(torch.compiler, "config", None)
    if not hasattr(config, "cache_key_tag"):  # an older torch
        return
    before = config.cache_key_tag.partition(_TAG)[0]
    _digests[name] = hashlib.sha256(_text(functions).encode()).hexdigest()
    config.cache_key_tag = before + _TAG + hashlib.sha256(repr(sorted(_digests.items())).encode()).hexdigest()


def _in(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _text(value, depth: int = 8) -> str:
    """Python code and constants as text, the same in each process."""
    if isinstance(value, types.FunctionType) and depth:
        cells = [_in(cell) for cell in value.__closure__ or ()]
        return _text((value.__code__, value.__defaults__, *cells), depth - 1)
    if isinstance(value, types.CodeType):
        return _text((value.co_code.hex(), value.co_names, value.co_consts), depth)
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_text(one, depth) for one in value)})"
    if isinstance(value, (set, frozenset)):
        return _text(sorted(_text(one, depth) for one in value), depth)
    if isinstance(value, (str, bytes, int, float, complex, type(None), type(...))):
        return repr(value)
    return type(value).__qualname__
