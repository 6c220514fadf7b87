"""Extensions of tests/fixtures/torch_extension, built once in the session's cache."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from support import python_with_torch
from support.workshop import CORE, FIXTURES, ROOT

from cuffi.loading import recipe
from cuffi.old_torch import cpp_extension

SOURCES = FIXTURES / "torch_extension"
FRONT = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
from cuffi.old_torch.ext_front import main
sys.exit(main())"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """`python -m cuffi.ext WORDS` in a folder."""
    return python_with_torch.run([sys.executable, "-c", FRONT, *words], cwd=folder)


@contextlib.contextmanager
def builds(cache: Path):
    """Builds go to the session's cache, with the tree's own objects, for the host."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUFFI_CACHE", str(cache))
        patch.setenv("NVCC", "")
        patch.setattr(recipe, "core_in", lambda cache: CORE.core)
        yield


@pytest.fixture
def extensions(session_cache):
    with builds(session_cache):
        yield


@pytest.fixture(scope="session")
def values(session_cache):
    """The module of values.cpp."""
    with builds(session_cache):
        return cpp_extension.load("values", [SOURCES / "values.cpp"])
