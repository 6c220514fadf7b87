"""Print the path of nvcc, or nothing. Looks in CUDA_HOME (the argument), PATH, /usr/local/cuda and pip's packages."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
import sys

# Below the folder of the CUDA toolkit, by the processor.
_TARGETS = ("targets/x86_64-linux", "targets/sbsa-linux")


def candidates(cuda_home: str):
    if cuda_home:
        yield os.path.join(cuda_home, "bin", "nvcc")
    yield shutil.which("nvcc") or ""
    yield "/usr/local/cuda/bin/nvcc"
    for folder in sys.path:  # pip's nvidia packages
        yield from sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia/cu*/bin/nvcc")), reverse=True)


def real(nvcc: str) -> str:
    """The nvcc of the CUDA toolkit, to which links or a small script may lead."""
    nvcc = os.path.realpath(nvcc)
    with open(nvcc, "rb") as file:
        if file.read(2) == b"#!":
            for word in file.read().decode("utf-8", "replace").split():
                if word.endswith("/nvcc") and os.path.realpath(word) != nvcc and os.path.exists(word):
                    return real(word)
    return nvcc


def find(cuda_home: str = "") -> str:
    """The path of nvcc; "" if there is none."""
    found = next((c for c in candidates(cuda_home) if c and os.access(c, os.X_OK)), "")
    return real(found) if found else ""


def elsewhere(cuda_home: str, found: str) -> str:
    """What to say if the user's CUDA_HOME has no nvcc, and another one is used, or none; "" if nothing."""
    if not cuda_home or os.access(os.path.join(cuda_home, "bin", "nvcc"), os.X_OK):
        return ""
    step = "give the folder that has bin/nvcc, or leave CUDA_HOME out"
    return f"CUDA_HOME={cuda_home}: there is no bin/nvcc in it. {found or 'No other nvcc'} is used: {step}"


def options(nvcc: str) -> dict[str, str]:
    """The variables of make with the C++ compiler's options for the headers and the libraries beside nvcc.

    They are empty if the toolkit lies in the system's own folders, as Debian's and Ubuntu's does.
    """
    libraries = ("lib64", "lib", *(f"{target}/lib" for target in _TARGETS))
    headers = ("include", *(f"{target}/include" for target in _TARGETS))
    return {
        "CUDA_LIB": _option("-L", nvcc, libraries, "libcudart_static.a"),
        "CUDA_INCLUDE": _option("-isystem ", nvcc, headers, "cuda_runtime.h"),
    }


def _option(option: str, nvcc: str, folders: tuple[str, ...], file: str) -> str:
    """The option, with the first of the folders beside nvcc's own that has the file, quoted for a shell."""
    beside = [os.path.join(os.path.dirname(nvcc), "..", folder) for folder in folders]
    found = next((folder for folder in beside if os.path.exists(os.path.join(folder, file))), None)
    return option + shlex.quote(found) if found else ""


if __name__ == "__main__":
    if compiler := find(sys.argv[1] if len(sys.argv) > 1 else ""):
        print(compiler)
