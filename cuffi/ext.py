"""Extensions of torch/extension.h: build and run them unedited, without torch's headers.

    python -m cuffi.ext setup.py build_ext --inplace     build an extension by its own setup.py
    python -m cuffi.ext script.py                        run a script that calls torch.utils.cpp_extension

docs/use-a-torch-extension.md walks through it.
"""

import sys

from .old_torch.ext_front import main

if __name__ == "__main__":
    sys.exit(main())
