"""The program `python -m cuffi.ffi`, by its path. The package is `cuffi` here: old code has its own `layers`."""

import importlib.util
import os
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
NAME = "cuffi"


def main() -> int:
    places = [PACKAGE]
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(PACKAGE, "__init__.py"), submodule_search_locations=places
    )
    assert spec is not None and spec.loader is not None  # a .py file has a loader
    sys.modules[NAME] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from cuffi.old_torch.ffi import front

    return front.main()


if __name__ == "__main__":
    sys.exit(main())
