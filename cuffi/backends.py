"""The table of backends, which a layer is compiled for. Python and make read it. make has no torch, so it imports none.

To add a backend, add its row, its rules in mk/<name>.mk and, if its compiler does not know CUDA's names, headers that
define them.
"""

from typing import NamedTuple

# torch's names of the processor and of a GPU.
CPU, GPU = "cpu", "cuda"


class Backend(NamedTuple):
    """A row of the table.

    Attributes:
        name: the backend's, also in the names of its rules mk/<name>.mk and of its libraries.
        device: torch's name of the device type that it runs on.
        dlpack: DLPack's number of that device type.
        settings: the settings of make on which a build of this backend depends. The first names the compiler.
        rewritten: the suffix that tools/cuda adds to x.cu when it rewrites it.
        links_devices: do its rules link device code of several files, as <name>_linked?
    """

    name: str
    device: str
    dlpack: int
    settings: tuple[str, ...]
    rewritten: str = ""
    links_devices: bool = False

    @property
    def on_host(self) -> bool:
        """Does it run on the processor, without a stream?"""
        return self.device == CPU

    @property
    def compiler(self) -> str:
        """The setting of make that names the compiler."""
        return self.settings[0]

    @property
    def library(self) -> str:
        """The name of the file in a layer's folder."""
        return f"_{self.name}.abi3.so"

    @property
    def kernels(self) -> str:
        """The name of the file that describes kernels without a library (runtime/kernels.py)."""
        return f"_{self.name}.kernels"

    @property
    def description(self) -> str:
        """The name of the file that records the library's build (tools/make/metadata.py)."""
        return f"_{self.name}.json"


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("host", CPU, 1, ("CXX", "HOST_ARCH", "SANITIZE"), rewritten=".cpp"),
        Backend("cuda", GPU, 2, ("NVCC", "ARCH"), links_devices=True),
    )
}
HOST = next(iter(BACKENDS.values()))
# torch's names of the device types that layers run on.
DEVICES = tuple(dict.fromkeys(backend.device for backend in BACKENDS.values()))
# The keys under which torch's dispatcher finds their operators.
DISPATCH_KEYS = tuple(device.upper() for device in DEVICES)
