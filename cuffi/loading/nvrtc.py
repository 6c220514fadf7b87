"""NVRTC, NVIDIA's compiler as a library: torch's wheels for CUDA bring it, and so does a CUDA toolkit.

It compiles kernels in this process, without nvcc, without a C++ compiler. It reads no header of C++: for these there is
include/caffe_device_std.h.
"""

import ctypes
import functools
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..runtime import CaffeRuntimeError
from . import toolkit

# The headers of C, C++ and CUDA's runtime that our own one stands for. NVRTC knows what CUDA's own declare.
STANDARD = (
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "memory.h", "stddef.h",
    "stdint.h", "stdio.h", "stdlib.h", "string.h", "time.h", "sys/time.h", "unistd.h", "algorithm", "array",
    "cassert", "cfloat", "cinttypes", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring",
    "ctime", "chrono", "exception", "fstream", "functional", "iomanip", "iostream", "initializer_list", "iterator",
    "limits", "map", "memory", "new", "numeric", "ostream", "random", "set", "sstream", "stdexcept", "string",
    "tuple", "type_traits", "utility", "vector", "bits/stdc++.h", "bitset", "cctype", "cerrno", "complex",
    "condition_variable", "csignal", "deque", "dirent.h", "fcntl.h", "filesystem", "future", "getopt.h", "iosfwd",
    "istream", "list", "locale", "mutex", "omp.h", "optional", "pthread.h", "queue", "ratio", "regex", "signal.h",
    "stack", "streambuf", "string_view", "sys/stat.h", "sys/types.h", "thread", "typeindex", "typeinfo",
    "unordered_map", "unordered_set", "valarray", "variant", "wchar.h", "cwchar", "strings.h", "cuda.h",
    "cuda_runtime.h", "cuda_runtime_api.h", "device_functions.h", "device_launch_parameters.h", "helper_cuda.h",
    "helper_functions.h",
)  # fmt: skip
# The headers of CUDA's libraries, which host code alone calls. Their types are ours (include/caffe_library_types.h).
LIBRARIES = (
    "cublas.h", "cublas_v2.h", "cublasLt.h", "cublasXt.h", "cudnn.h", "cufft.h", "cufftXt.h", "curand.h",
    "cusolverDn.h", "cusolverRf.h", "cusolverSp.h", "cusolver_common.h", "cusparse.h", "cusparse_v2.h", "nccl.h",
    "nvrtc.h",
)  # fmt: skip
# Text that includes libcu++, which torch's wheels do not bring.
NEEDS_LIBCUDACXX = re.compile(
    r"#\s*include\s*[<\"](cooperative_groups|cuda/|cub/|nv/|cuda_pipeline|cuda_awbarrier)"
)
# Where libraries are: in pip's packages, beside torch, and in a CUDA toolkit.
PATTERNS = ("nvidia/cu*/lib/libnvrtc.so.*", "nvidia/cuda_nvrtc/lib/libnvrtc.so.*", "torch/lib/libnvrtc*.so*")
HEADERS = ("nvidia/cu*/include", "nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include")
VARIABLE = "CUFFI_NVRTC"


class NvrtcError(Exception):
    """It does not compile. The text is NVRTC's log."""


@dataclass(frozen=True)
class Compiled:
    """What NVRTC made.

    Attributes:
        cubin: for the GPU that was named; b"" if the architecture is virtual.
        ptx: the same for any newer GPU.
        names: the names in both of the C++ names that were asked for.
    """

    cubin: bytes
    ptx: str
    names: dict[str, str]


class Nvrtc:
    """A loaded library.

    Args:
        path: libnvrtc.so.
    """

    def __init__(self, path: Path):
        self.path = path
        for helper in sorted(path.parent.glob("libnvrtc-builtins*.so*")):
            if ".alt." not in helper.name:
                ctypes.CDLL(str(helper), mode=ctypes.RTLD_GLOBAL)  # it looks this up by its name alone
        self.library = ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        self.version = major.value, minor.value

    @property
    def identity(self) -> list[tuple]:
        """What a cache's key has of it."""
        status = self.path.stat()
        return [(str(self.path), status.st_size, status.st_mtime_ns, *self.version)]

    def headers(self) -> list[str]:
        """The folders of CUDA's own headers, cuda_fp16.h for one."""
        above = [self.path.parent.parent / "include", *_matching(HEADERS)]
        above += [Path(os.environ["CUDA_HOME"], "include")] if os.environ.get("CUDA_HOME") else []
        above += sorted(self.path.parent.glob("../../../include"))
        there = [
            f
            for f in above
            if (f / "cuda_fp16.h").exists() or (f / "cccl").is_dir() or (f / "cuda" / "std").is_dir()
        ]
        return list(dict.fromkeys(str(own) for f in there for own in (f, f / "cccl") if own.is_dir()))

    def architectures(self) -> list[int]:
        """The architectures that it knows: 75 for sm_75."""
        count = ctypes.c_int()
        self._check(self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        found = (ctypes.c_int * count.value)()
        self._check(self.library.nvrtcGetSupportedArchs(found))
        return sorted(found)

    def compile(
        self, text: str, name: str, architecture: str, expressions: Iterable[str] = (), folders: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> Compiled:  # fmt: skip
        """Compile a program.

        Args:
            name: what errors call it.
            architecture: sm_90, or compute_90 for PTX alone.
            expressions: C++ names of kernels and variables.
            folders: with headers.

        Raises:
            NvrtcError: with its log.
        """
        library, program = self.library, ctypes.c_void_p()
        ours = [b'#include "caffe_device_std.h"\n'] * len(STANDARD)
        ours += [b"#include <caffe_library_types.h>\n"] * len(LIBRARIES)
        options = [*options, *["-DCAFFE_LIBCUDACXX"] * bool(NEEDS_LIBCUDACXX.search(text))]
        names = [header.encode() for header in (*STANDARD, *LIBRARIES)]
        array = ctypes.c_char_p * len(names)
        self._check(
            library.nvrtcCreateProgram(
                ctypes.byref(program), text.encode("utf-8", "surrogateescape"), os.fsencode(name), len(names),
                array(*ours), array(*names),
            )
        )  # fmt: skip
        try:
            wanted = list(expressions)
            for one in wanted:
                self._check(library.nvrtcAddNameExpression(program, one.encode()))
            words = [f"--gpu-architecture={architecture}", "-std=c++17", "-default-device", "-w", *options]
            words += [f"-I{folder}" for folder in folders]
            given = (ctypes.c_char_p * len(words))(*map(os.fsencode, words))
            if library.nvrtcCompileProgram(program, len(words), given):
                raise NvrtcError(
                    self._content(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(
                        errors="replace"
                    )
                )
            lowered = {}
            for one in wanted:
                found = ctypes.c_char_p()
                self._check(library.nvrtcGetLoweredName(program, one.encode(), ctypes.byref(found)))
                lowered[one] = (found.value or b"").decode()
            ptx = self._content(program, "nvrtcGetPTXSize", "nvrtcGetPTX").rstrip(b"\0").decode()
            cubin = (
                b""
                if architecture.startswith("compute_")
                else self._content(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
            )
            return Compiled(cubin, ptx, lowered)
        finally:
            library.nvrtcDestroyProgram(ctypes.byref(program))

    def _content(self, program, size: str, get: str) -> bytes:
        length = ctypes.c_size_t()
        self._check(getattr(self.library, size)(program, ctypes.byref(length)))
        content = ctypes.create_string_buffer(length.value)
        self._check(getattr(self.library, get)(program, content))
        return content.raw[: length.value]

    def _check(self, status: int) -> None:
        if status:
            said = self.library.nvrtcGetErrorString
            said.restype = ctypes.c_char_p
            raise CaffeRuntimeError(f"load: {self.path}: {said(status).decode()}")


def _matching(patterns: Iterable[str]) -> list[Path]:
    """The files of pip's packages, in the order of Python's path."""
    folders = [Path(folder) for folder in dict.fromkeys(sys.path) if folder and os.path.isdir(folder)]
    return [path for folder in folders for pattern in patterns for path in sorted(folder.glob(pattern))]


def candidates() -> list[Path]:
    """The libraries that there are: the one that is named, torch's, and a toolkit's."""
    if named := os.environ.get(VARIABLE, "").strip():
        return [Path(named)]
    return list(_searched(tuple(sys.path), os.environ.get("CUDA_HOME", ""), toolkit.find_nvcc()))


@functools.cache
def _searched(places: tuple[str, ...], cuda_home: str, nvcc: str) -> tuple[Path, ...]:
    """The libraries in these places, which are asked once."""
    found = _matching(PATTERNS)
    homes = [cuda_home, os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else ""]
    for home in dict.fromkeys([*filter(None, homes), "/usr/local/cuda"]):
        found += sorted(
            p for kind in ("lib64", "lib", "targets/*/lib") for p in Path(home).glob(f"{kind}/libnvrtc.so*")
        )
    wanted = [p for p in found if re.search(r"libnvrtc(-\w+)?\.so", p.name) and ".alt." not in p.name]
    return tuple(dict.fromkeys(p for p in wanted if "builtins" not in p.name))


@functools.cache
def _loaded(path: str) -> Nvrtc | None:
    try:
        return Nvrtc(Path(path))
    except (OSError, AttributeError):
        return None


def find() -> Nvrtc | None:
    """The NVRTC of this machine; None if there is none. CUFFI_NVRTC names another one."""
    return next((found for path in candidates() if (found := _loaded(str(path)))), None)
