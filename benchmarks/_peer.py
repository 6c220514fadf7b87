"""The peer of builds and calls: peer_round.cpp and .cu through torch.utils.cpp_extension.

python -m benchmarks._peer     builds it into $TORCH_EXTENSIONS_DIR, prints the seconds that `load` took
"""

import os
import sys
import time
from pathlib import Path

import torch

from . import _machine

HERE = Path(__file__).resolve().parent


def absent() -> str | None:
    """Why the peer cannot be built here; None if it can."""
    from torch.utils import cpp_extension

    if not cpp_extension.is_ninja_available():
        return "cpp_extension needs ninja, which is not installed"
    return None


def sources() -> list[str]:
    """What there is to compile: a torch without CUDA lacks the headers that the .cu needs."""
    return ["peer_round.cpp", "peer_round.cu"] if has_cuda() else ["peer_round.cpp"]


def has_cuda() -> bool:
    from torch.utils import cpp_extension

    return torch.version.cuda is not None and cpp_extension.CUDA_HOME is not None


def load():
    """The extension, built into $TORCH_EXTENSIONS_DIR unless it is there; for the architecture ours has."""
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
    """The same from one folder that stays: build_one leaves it there."""
    folder = kept(out)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TORCH_EXTENSIONS_DIR"] = str(folder)
    return load()


def kept(out: Path) -> Path:
    return out.resolve() / "peer"


def function(extension):
    """The peer with a straight-through gradient, as one writes it in Python around such an extension."""

    class PeerRound(torch.autograd.Function):
        @staticmethod
        def forward(ctx, bottom):
            return extension.round_forward(bottom)

        @staticmethod
        def backward(ctx, top_diff):
            return top_diff

    return PeerRound.apply


if __name__ == "__main__":
    from torch.utils import cpp_extension  # noqa: F401  its import is not what is timed

    start = time.perf_counter()
    module = load()
    print(f"{time.perf_counter() - start:.3f}")
    sample = torch.tensor([0.2, 0.5, 0.9])
    sys.exit(0 if module.round_forward(sample).tolist() == [0.0, 1.0, 1.0] else 1)
