"""The options of nvcc for ARCH.

nvcc's front end is the slow part of a compilation. It runs once for several architectures, for the oldest of them. Then
the code is assembled for each. The last front end's PTX is kept for future GPUs.
"""

from __future__ import annotations

import platform
import re
import subprocess

# The first architecture with its own instructions for half types.
_HALF_TYPES = 80
# An architecture of systems with ARM processors.
_OF_ARM = "110"


def options(nvcc: str, arch: str) -> dict[str, str]:
    """Variables of make, by name.

    cuda_FRONTS is for a native layer: a front for the GPUs before sm_80, and one for the others. cuda_FRONT is for a
    kind of layer that uses no features of newer GPUs. cuda_EACH is for a layer that asks for the GPU's architecture.
    """
    wanted = _numbers(nvcc, arch)
    if not wanted:
        return dict.fromkeys(("cuda_FRONTS", "cuda_FRONT", "cuda_EACH"), f"-arch={arch}")
    old = [n for n in wanted if _number(n) < _HALF_TYPES]
    new = wanted[len(old) :]
    fronts = [_front(numbers, ptx=numbers is new or not new) for numbers in (old, new) if numbers]
    each = [f"-gencode arch=compute_{n},code=sm_{n}" for n in wanted]
    return {
        "cuda_FRONTS": " ".join(fronts),
        "cuda_FRONT": _front(wanted, ptx=True),
        "cuda_EACH": " ".join([*each, f"-gencode arch=compute_{wanted[-1]},code=compute_{wanted[-1]}"]),
    }


def _numbers(nvcc: str, arch: str) -> list[str]:
    """The numbers of the architectures, such as 75 and 90a, the oldest first. An empty list for ARCH=native."""
    words = arch.split()
    if not {"all", "all-major"} & set(words):
        return sorted(set(re.findall(r"\bsm_(\w+)", arch)), key=_number)
    said = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True).stdout
    # nvcc 11 still knows sm_3x, on which torch no longer runs.
    known = sorted((n for n in re.findall(r"\bsm_(\w+)", said) if not n.startswith("3")), key=_number)
    if "all" in words:
        return known
    foreign = _OF_ARM if platform.machine() == "x86_64" else ""
    return known[:1] + [n for n in known[1:] if n.endswith("0") and n != foreign]


def _number(architecture: str) -> int:
    return int(re.split(r"\D", architecture, maxsplit=1)[0])


def _front(numbers: list[str], ptx: bool) -> str:
    codes = [f"sm_{n}" for n in numbers] + [f"compute_{numbers[0]}"] * ptx
    return f"-gencode 'arch=compute_{numbers[0]},code=[{','.join(codes)}]'"
