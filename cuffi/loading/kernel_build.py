"""Build kernels for the GPU by NVRTC: images, and launchers that are data (runtime/kernels.py).

The toolkit's tools run in this process: no make, no compiler of C++, no nvcc is started.
"""

import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType

from .. import edge as _edge
from ..backends import BACKENDS, GPU
from ..runtime import CaffeRuntimeError, CaffeValueError, extension
from . import nvrtc, ptx, toolkit
from .run_make import CaffeBuildError

BACKEND = next(backend for backend in BACKENDS.values() if backend.device == GPU)
VARIABLE = "CUFFI_CUDA"
# The name under which the toolkit's tools are imported: users have modules called `tools`.
TOOLS = "_cuffi_tools"
MOST_ATTEMPTS = 12


def chosen() -> str:
    """What compiles kernels: nvcc or nvrtc; "" if the machine decides."""
    word = os.environ.get(VARIABLE, "").strip()
    if word not in ("", "nvcc", "nvrtc"):
        raise CaffeValueError(f"load: {VARIABLE}: expected nvcc or nvrtc, got {word!r}")
    return word


def identity() -> list:
    """What decides how kernels are compiled, without loading a library."""
    found = []
    for path in nvrtc.candidates():
        status = path.stat() if path.exists() else None
        found.append((str(path), status and status.st_size, status and status.st_mtime_ns))
    return found


class NeedsNvcc(Exception):
    """NVRTC is not for such a file. The text says why."""


class NvrtcFailed(CaffeBuildError):
    """NVRTC has errors. nvcc may build the file."""


def compiles(backends: Iterable[str] | None, has_gpu: bool) -> bool:
    """Does NVRTC compile kernels for these backends? It does for the GPU alone, and where there is no nvcc.

    Args:
        backends: as for load; None if the machine decides.

    Raises:
        CaffeRuntimeError: CUFFI_CUDA asks for it, and there is none.
    """
    word = chosen()
    names = None if backends is None else tuple([backends] if isinstance(backends, str) else backends)
    if word == "nvcc" or (not has_gpu if names is None else BACKEND.name not in names):
        return False
    if not nvrtc.candidates():
        if word == "nvrtc":
            raise CaffeRuntimeError(
                f"load: {VARIABLE}=nvrtc: there is no NVRTC. torch's wheels for CUDA bring it"
            )
        return False
    return word == "nvrtc" or names == (BACKEND.name,) or not toolkit.find_nvcc()


def tool(name: str) -> ModuleType:
    """A module of the toolkit's tools, in this process."""
    if TOOLS not in sys.modules:
        package = ModuleType(TOOLS)
        package.__path__ = [str(toolkit.root() / "tools")]
        sys.modules[TOOLS] = package
    return importlib.import_module(f"{TOOLS}.{name}")


@dataclass
class Kernels:
    """A file of kernels to compile.

    Attributes:
        name: the layer's.
        files: content by path below the layer's folder: name.cu, prologue.h, headers, perhaps instances.
        arch: architectures, "sm_80 sm_90"; "" for PTX that runs on any GPU.
        shown_as: what the user calls the file.
        mended: leaves out the host code that has these errors; False if it cannot.
        shown: replaces names of built files in an error's text by the user's.
    """

    name: str
    files: Mapping[PurePosixPath, bytes]
    arch: str
    shown_as: str
    mended: Callable[[Path, str], bool]
    shown: Callable[[str, Path], str]

    def identity(self) -> list:
        """What a cache's key has of it."""
        return [self.arch, *identity()]

    def build(self, stage: Path, folder: Path) -> None:
        """Compile in the folder `stage`, and write into the layer's folder.

        Raises:
            CaffeBuildError: it does not compile.
            NeedsNvcc: NVRTC is not for such a file.
        """
        made = tool("new_layer.for_nvrtc")
        try:
            self._build(made, stage, folder)
        except made.NotForNvrtc as why:
            raise NeedsNvcc(str(why)) from None

    def _build(self, made, stage: Path, folder: Path) -> None:
        for path, content in self.files.items():
            (stage / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / path).write_bytes(content)
        source = str(stage / f"{self.name}.cu")
        try:
            launchers = made.complete(source)
        except made.NothingExported as why:
            text = self.shown(made.error_at(source, why), stage)
            raise CaffeBuildError(f"{self.name} does not build:\n{text}") from None
        compiled = self._compiled(made, source, launchers, stage)
        folder.mkdir(parents=True, exist_ok=True)
        self._write(folder, *compiled)
        if not (folder / "left_out").exists():  # else it is that of the host's build
            shutil.copyfile(stage / "left_out", folder / "left_out")

    def _compiled(self, made, source: str, launchers: list, stage: Path):
        """(what was prepared, what NVRTC made by architecture). Host code that does not compile is left out."""
        compiler = nvrtc.find()
        if compiler is None:
            raise CaffeBuildError(f"{self.name}: there is no NVRTC here: torch's wheels for CUDA bring it")
        first = ""
        for _ in range(MOST_ATTEMPTS):
            prepared = made.prepare(source, launchers)
            for place, text in prepared.headers.items():
                (stage / "rewritten" / place).parent.mkdir(parents=True, exist_ok=True)
                (stage / "rewritten" / place).write_text(text, errors="surrogateescape")
            try:
                return prepared, self._of_each(compiler, prepared, source, stage)
            except nvrtc.NvrtcError as error:
                first = first or str(error)
                if not self.mended(stage, str(error)):
                    break
        first = self.shown(first.rstrip("\0\n"), stage)
        if re.search(r'cannot open source file "(nv/|cuda/)', first):
            first += "\nThis header is of libcu++: pip install nvidia-cuda-cccl, or let nvcc build it"
        raise NvrtcFailed(f"{self.name} does not build by NVRTC:\n{first}")

    def _of_each(
        self, compiler: nvrtc.Nvrtc, prepared, source: str, stage: Path
    ) -> dict[str, nvrtc.Compiled]:
        wings = sorted(str(folder) for folder in _edge.PACKAGE.glob("*/include"))
        folders = [
            str(stage / "rewritten"),
            str(stage),
            str(toolkit.root() / "include"),
            *compiler.headers(),
            *wings,
        ]
        names = [
            *(expression for *_, expression in prepared.expressions),
            *(f"&{s}" for s in prepared.symbols),
        ]
        text = f'#include "prologue.h"\n{prepared.text}'
        return {
            target: compiler.compile(text, source, target, names, folders)
            for target in targets(self.arch, compiler.architectures())
        }

    def _write(self, folder: Path, prepared, by_target: dict[str, nvrtc.Compiled]) -> None:
        edge = extension.extension(self.name)
        images: list[tuple[int, bool, str]] = []
        for target, compiled in by_target.items():
            number = int(target.partition("_")[2])
            if compiled.cubin:
                images.append((number, False, f"_{BACKEND.name}.{target}.cubin"))
                (folder / images[-1][2]).write_bytes(compiled.cubin)
        target, newest = list(by_target.items())[-1]
        number = int(target.partition("_")[2])
        images.append((number, True, f"_{BACKEND.name}.compute_{number}.ptx"))
        (folder / images[-1][2]).write_text(newest.ptx)
        try:
            programs = {name: ptx.program_of(newest.ptx, name, edge).packed() for name in prepared.functions}
        except ptx.NoSteps as why:
            not_for = tool("new_layer.for_nvrtc").NotForNvrtc
            raise not_for(f"a launcher needs the instruction {why}") from None
        described = {
            "edge": edge.EDGE, "file": self.shown_as, "targets": " ".join(by_target), "images": images,
            "kernels": [[number, line, newest.names[name]] for number, line, name in prepared.expressions],
            "functions": prepared.functions, "programs": programs, "codes": list(tool("new_layer.for_nvrtc").CODES),
        }  # fmt: skip
        (folder / BACKEND.kernels).write_text(json.dumps(described))


def targets(arch: str, known: list[int]) -> list[str]:
    """What NVRTC compiles for: sm_90; compute_90 for a GPU that it does not know, or if none is named."""
    if not arch:
        return [f"compute_{known[0]}"]
    found = []
    for word in arch.split():
        number = re.fullmatch(r"(?:sm_|compute_)?(\d+)[af]?", word)
        if not number:
            raise CaffeValueError(
                f'load: arch: expected architectures such as "sm_90" for NVRTC, got {arch!r}'
            )
        older = [n for n in known if n <= int(number[1])]
        if not older:
            raise CaffeValueError(f"load: arch: this NVRTC knows sm_{known[0]} to sm_{known[-1]}, got {word}")
        exact = int(number[1]) in known
        found.append(f"sm_{number[1]}" if exact else f"compute_{older[-1]}")
    return sorted(dict.fromkeys(found), key=lambda target: int(target.partition("_")[2]))
