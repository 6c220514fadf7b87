"""`python -m cuffi` is the command `cuffi`."""

import sys

from .commands.main import main

sys.exit(main())
