"""The peer in the benchmarks of builds and calls: peer_round.cpp and .cu by torch.utils.cpp_extension.

python -m benchmarks._peer     builds the peer in $TORCH_EXTENSIONS_DIR, and prints the seconds that `load` took
"""

import os
import sys
import time
from pathlib import Path

import torch

from . import _machine

HERE = Path(__file__).resolve().parent


def absent() -> str | None:
    """The reason why the peer cannot be built here, or None if it can."""
    from torch.utils import cpp_extension

    if not cpp_extension.is_ninja_available():
        return "cpp_extension needs ninja, which is not installed"
    return None


def sources() -> list[str]:
    """The files to compile. A torch without CUDA does not have the headers for the .cu."""
    return ["peer_round.cpp", "peer_round.cu"] if has_cuda() else ["peer_round.cpp"]


def has_cuda() -> bool:
    from torch.utils import cpp_extension

    return torch.version.cuda is not None and cpp_extension.CUDA_HOME is not None


def load():
    """The extension. It is built in $TORCH_EXTENSIONS_DIR, if it is not there, for the same architecture as ours."""
    from torch.utils import cpp_extension

    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{_machine.gpu_arch()}+PTX")
    flags = ["-O3", "-march=native", *(["-DWITH_CUDA"] if has_cuda() else [])]
    return cpp_extension.load(
        "peer_round",
        [str(HERE / source) for source in sources()],
        extra_cflags=flags,
        extra_cuda_cflags=["-O3"],
        with_cuda=has_cuda(),
    )


def load_kept(out: Path):
    """The extension in the folder that build_one keeps."""
    folder = kept(out)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCH_EXTENSIONS_DIR"] = str(folder)
    return load()


def kept(out: Path) -> Path:
    return out.resolve() / "peer"


def function(extension):
    """The extension with a straight-through gradient, which users write in Python."""

    class PeerRound(torch.autograd.Function):
        @staticmethod
        def forward(ctx, bottom):
            return extension.round_forward(bottom)

        @staticmethod
        def backward(ctx, *top_diffs):
            return top_diffs

    return PeerRound.apply


if __name__ == "__main__":
    from torch.utils import cpp_extension  # noqa: F401  its import is not what is timed

    start = time.perf_counter()
    module = load()
    print(f"{time.perf_counter() - start:.3f}")
    sample = torch.tensor([0.2, 0.5, 0.9])
    sys.exit(0 if module.round_forward(sample).tolist() == [0.0, 1.0, 1.0] else 1)
