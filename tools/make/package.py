"""Where the toolkit is, and the package beside it or around it."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
IS_INSTALLED = os.path.basename(ROOT) == "_toolkit"
# From ROOT, the package: beside the tools in a checkout, around them in an installed toolkit.
PACKAGE = ".." if IS_INSTALLED else "cuffi"
# From ROOT, the toolkit's own layers.
OWN = "../layers" if IS_INSTALLED else "layers"
