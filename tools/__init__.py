"""What make runs."""

import sys

# Before anything else is imported: an old Python cannot read the other files.
if sys.version_info < (3, 10):  # noqa: UP036
    found = "{} is Python {}.{}".format(sys.executable, *sys.version_info)
    sys.exit("make: " + found + "; the toolkit needs 3.10 or newer: make PYTHON=/path/to/python3.10")
