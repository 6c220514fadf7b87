"""torch's names of our operators."""

import torch

from .errors import CaffeValueError

# By torch's name of an operator: the module that defined it, and the library. This is kept in a module of torch,
# because torch's operators outlive this module if somebody drops `layers` from sys.modules to import it again.
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
