"""Where nvcc's branch has an atomic and the other has none, the host's threads need the atomic, too."""

import pytest
import torch

from cuffi import load_inline
from tools.cuda.lexer import Lexed
from tools.cuda.source import Source
from tools.cuda.to_host import HostRewriter, Unit

ADD = "atomicAdd(sum, 1.f);"
PLAIN = "*sum += 1.f;"


def kept(text: str) -> list[str]:
    """The words for the host compiler, by the lexer and in the output."""
    lexed = Lexed(text)
    unit = Unit(text, "x.cu")
    written = HostRewriter(unit, unit.main).rewritten()
    assert written.count("\n") == text.count("\n")
    words = [t.text for t in lexed.tokens]
    assert words == [t.text for t in Source(written, "x.cu").lexed.tokens]
    return [word for word in words if word in ("atomicAdd", "sum", "+=")]


@pytest.mark.parametrize(
    "condition",
    [
        "#ifdef __CUDACC__\n{add}\n#else\n{plain}\n#endif\n",
        "#ifndef __CUDACC__\n{plain}\n#else\n{add}\n#endif\n",
        "#if defined(__CUDA_ARCH__)\n{add}\n#else\n{plain}\n#endif\n",
        "# if !defined \\\n __CUDA_ARCH__\n{plain}\n#else  // the GPU\n{add}\n#endif\n",
        "#ifdef __NVCC__\n#ifdef OTHER\n{add}\n#else\n{add}\n#endif\n#else\n{plain}\n#endif\n",
    ],
)
def test_the_host_takes_the_atomic(condition):
    words = kept(condition.format(add=ADD, plain=PLAIN))
    assert set(words) == {"atomicAdd", "sum"}


def test_a_macro_that_is_chosen():
    text = f"#ifdef __CUDACC__\n#define ADD(sum) {ADD}\n#else\n#define ADD(sum) {PLAIN}\n#endif\nADD(sum);\n"
    (macro,) = Lexed(text).directives
    assert "atomicAdd" in [token.text for token in macro.tokens]


def test_all_threads_count(cache):
    """With the plain branch, threads on two cores lost updates, and the race finder reported races that no GPU has."""
    text = f"""
__global__ void count(float* sum, int n) {{
  CUDA_KERNEL_LOOP(i, n) {{
#ifdef __CUDACC__
    {ADD}
#else
    {PLAIN}
#endif
  }}
}}"""
    total = torch.zeros(1)
    load_inline("counting", text, backends="host").counting_count(total, 1 << 20)
    assert total.item() == 1 << 20
