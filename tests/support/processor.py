"""What the tests' own processor does."""

import platform

import pytest

ON_ARM = platform.machine() == "aarch64"
# docs/architecture/toolkit.md
division_traps = pytest.mark.skipif(ON_ARM, reason="ARM: a division by zero gives 0, and no signal")
