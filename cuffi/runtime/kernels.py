"""Kernels that are data: images for GPUs, and launchers that C runs (src/edge/call_kernels.h)."""

import json
import threading
from pathlib import Path

import torch

from ..backends import BACKENDS
from ..base.errors import CaffeRuntimeError
from . import extension


class KernelLibrary:
    """One layer's launchers for one backend. It is used as a Library is.

    Args:
        name: the layer's name, for messages.
        folder: the folder of the description and the images.
        backend: a name in the table of backends.

    Attributes:
        signatures: for each function its return type, its parameters and the extents of its tensors.
        codes: the code of each dtype that a tensor may have.

    Raises:
        CaffeRuntimeError: it was built by another version of the toolkit.
    """

    is_program = True
    set_num_threads = 0  # its kernels run on no thread of this process

    def __init__(self, name: str, folder: Path, backend: str):
        self.name, self.backend = name, backend
        path = folder / BACKENDS[backend].kernels
        self._said = json.loads(path.read_text())
        self._edge = extension.extension(name)
        if self._said["edge"] != self._edge.EDGE:
            raise CaffeRuntimeError(
                f"{name}: {path} was built by another version of the toolkit: load it again"
            )
        self.signatures: dict[str, dict] = self._said["functions"]
        self.codes = {getattr(torch, dtype): code for code, dtype in enumerate(self._said["codes"])}
        self._folder = folder
        self._programs: dict[str, int] = {}
        self._images = 0
        self._lock = threading.Lock()

    def runner(self, function: str) -> int:
        """The address of the function's program, for the extension. It stays as long as this process."""
        with self._lock:
            if function not in self._programs:
                self._programs[function] = self._program(function)
            return self._programs[function]

    def _program(self, function: str) -> int:
        said = self._said["programs"][function]
        symbols = [symbol for program in self._said["programs"].values() for symbol in program["symbols"]]
        symbols = list(dict.fromkeys(symbols))
        if not self._images:
            images = tuple(
                (number, is_ptx, (self._folder / file).read_bytes() + b"\0" * is_ptx)
                for number, is_ptx, file in self._said["images"]
            )
            kernels = tuple((number, line, name.encode()) for number, line, name in self._said["kernels"])
            self._images = self._edge.images(
                images, kernels, tuple(symbol.encode() for symbol in symbols), self._said["file"].encode(),
                self._said["targets"].encode(),
            )  # fmt: skip
        registers = bytes.fromhex(said["registers"])
        words = self.signatures[function]["parameters"]
        return self._edge.program(
            self._images, bytes.fromhex(said["steps"]), registers, tuple(map(tuple, said["parameters"])),
            bytes.fromhex(said["data"]), said["local_bytes"],
            tuple(symbols.index(symbol) for symbol in said["symbols"]), len(words) - 1,
        )  # fmt: skip

    def fail(self, function: str):
        """Raise the error that C has stored."""
        text = self._edge.kernels_error() or "failed without a message"
        raise CaffeRuntimeError(f"{self.name}: {function} on {self.backend}: {text}")
