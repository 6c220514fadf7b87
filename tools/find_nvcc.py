"""Print where the CUDA compiler is, or nothing: CUDA_HOME (the argument), PATH, /usr/local/cuda, pip's packages."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def candidates(cuda_home: str):
    if cuda_home:
        yield Path(cuda_home) / "bin" / "nvcc"
    if on_path := shutil.which("nvcc"):
        yield Path(on_path)
    yield Path("/usr/local/cuda/bin/nvcc")
    yield from sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("cu*/bin/nvcc"), reverse=True)


def real(nvcc: Path) -> Path:
    """The toolkit's own nvcc, behind links and behind a script that only calls it."""
    nvcc = nvcc.resolve()
    with nvcc.open("rb") as file:
        if file.read(2) == b"#!":
            for word in nvcc.read_text().split():
                if word.endswith("/nvcc") and Path(word) != nvcc and Path(word).exists():
                    return real(Path(word))
    return nvcc


if __name__ == "__main__":
    found = next(
        (c for c in candidates(sys.argv[1] if len(sys.argv) > 1 else "") if os.access(c, os.X_OK)), None
    )
    if found:
        print(real(found))
