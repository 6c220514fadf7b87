"""The backends: what a layer is compiled for. Python and make ask this table; to read it takes no torch.

To add one: its row, its rules in mk/<name>.mk and, where its compiler does not know CUDA's names, headers that do.
"""

from typing import NamedTuple

# What torch calls the processor, and a GPU: whose ever it is.
CPU, GPU = "cpu", "cuda"


class Backend(NamedTuple):
    """A row.

    Attributes:
        name: of the backend, of its rules mk/<name>.mk and of its libraries.
        device: what torch calls the type of the devices that it runs on.
        dlpack: DLPack's number of that type.
        settings: make's, by which one build differs from another. The first names the compiler.
        rewritten: tools/cuda makes of x.cu the file x.cu and this.
    """

    name: str
    device: str
    dlpack: int
    settings: tuple[str, ...]
    rewritten: str = ""

    @property
    def on_host(self) -> bool:
        """It runs on the processor: on threads of its own, not on a stream."""
        return self.device == CPU

    @property
    def compiler(self) -> str:
        """make's setting that names it."""
        return self.settings[0]

    @property
    def library(self) -> str:
        """The file's name, in a layer's folder."""
        return f"_{self.name}.abi3.so"

    @property
    def description(self) -> str:
        """The file beside it that says what it was made of (tools/make/metadata.py)."""
        return f"_{self.name}.json"


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("host", CPU, 1, ("CXX", "HOST_ARCH", "SANITIZE"), rewritten=".cpp"),
        Backend("cuda", GPU, 2, ("NVCC", "ARCH")),
        Backend("hip", GPU, 10, ("HIPCC", "HIP_ARCH")),
    )
}
HOST = next(iter(BACKENDS.values()))
# What torch calls the types of devices that layers run on.
DEVICES = tuple(dict.fromkeys(backend.device for backend in BACKENDS.values()))
