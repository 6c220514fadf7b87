"""CUDA texts for the rewriters, and the results of reading them."""

import difflib
import sys
from pathlib import Path

from support.workshop import FIXTURES

from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.analysis import Kernel, Unit
from tools.cuda.to_host import PROLOGUE, HostRewriter
from tools.files import read

CASES = FIXTURES / "rewrite"

TEXT = """#include "a.h"
#include <b.h>
#include
#include MACRO
  #  include < c/d.h >
namespace n {
int f(int x) { return x; }
struct S {
  S() : y(1) {}
  int g() const { return y; }
  int y;
};
}  // namespace n
"""


def analyse(text: str, path: str) -> list[Kernel]:
    """The kernels of a file and then of its local headers."""
    unit = Unit(text, path)
    return [kernel for source in unit.sources for kernel in unit.kernels(source)]


def rewrite(path: str):
    return cuda_rewrite.rewrite(path, HostRewriter, "cuda/to_host.py", PROLOGUE)


def update(folder: Path, wanted: dict[Path, str]) -> None:
    """Write all goldens of a folder anew; print what changed."""
    for path in folder.rglob("*.expected"):
        if path not in wanted:
            print(f"removed {path.name}")
            path.unlink()
    for path, text in wanted.items():
        old = read(path) if path.exists() else ""
        difference = difflib.unified_diff(old.splitlines(True), text.splitlines(True), path.name, path.name)
        sys.stdout.write("".join(difference))
        path.write_bytes(text.encode("latin-1"))


def rewrite_text(text: str, watched: bool = False) -> str:
    """What becomes of a source that is no file. watched: for the race finder."""

    class Chosen(HostRewriter):
        pass

    Chosen.watched = watched
    texts, problems, _ = cuda_rewrite.rewrite_unit(Unit(text, "x.cu"), Chosen, "", "")
    assert not problems, problems
    return texts[""].split("\n", 2)[2]
