"""CUDA texts for the rewriters, and the results of reading them."""

from support.workshop import FIXTURES

from tools.cuda import rewrite as cuda_rewrite
from tools.cuda.analysis import Kernel, Unit
from tools.cuda.to_host import HostRewriter

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
    return cuda_rewrite.rewrite(path, HostRewriter, "cuda/to_host.py", "#include <cuda_runtime.h>\n")
