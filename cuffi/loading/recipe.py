"""A recipe: the sources and settings of a build, and the key of its cache entry."""

import functools
import hashlib
import keyword
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from ..backends import BACKENDS
from ..base.compiler import cxx
from ..runtime import CaffeTypeError, CaffeValueError, backends_here
from . import cache, call_extension, private, races, sweep, toolkit
from .advice import advice
from .cache import Entry
from .kernel_build import Kernels
from .run_make import CaffeBuildError, Progress, make

# The __init__.py for a folder without one.
INIT = '''"""Written by load: the functions that {name}.h declares."""

from cuffi.backends import BACKENDS, HOST
from cuffi import Layer

layer = Layer(__name__)


def __getattr__(function: str):
    globals()[function] = found = layer.named(function)  # the next access finds it here
    return found


def __dir__() -> list[str]:
    return ["layer", *layer.library(layer.backends()[0]).signatures]
'''

# How often make runs for sources that can be mended.
MOST_ATTEMPTS = 12
# The most letters of a name: file names, which have at most 255 letters, contain it.
MOST_LETTERS = 100


@dataclass
class Recipe:
    """One layer to be built.

    Attributes:
        name: the layer's name.
        files: content by path: the layer's files, and files from elsewhere that they include.
        layer: the path of the layer's folder.
        settings: make's settings, by name.
        backends: the names of the backends to build.
        first: make's goal. "inline" writes the launchers of a string before it builds the libraries.
        mended: changes the written files so that these errors go away. It gets the layer's folder; False if it cannot.
        shown: replaces names of built files in an error's text by the user's.
        kernels: what NVRTC compiles for the GPU, beside what make builds.
    """

    name: str
    files: dict[PurePosixPath, bytes]
    layer: PurePosixPath
    settings: dict[str, str]
    backends: tuple[str, ...]
    first: str = "libraries"
    mended: Callable[[Path, str], bool] = lambda folder, errors: False
    shown: Callable[[str, Path], str] = lambda text, sources: text
    kernels: Kernels | None = None

    @functools.cached_property
    def key(self) -> str:
        """The digest of everything that decides the content of the libraries."""
        what = [str(self.layer), self.kernels and self.kernels.identity()]
        return key_of(what, self.settings, self.backends, self.files, self.digest)

    @functools.cached_property
    def digest(self) -> bytes:
        """The toolkit's."""
        return toolkit.digest()

    def is_built(self) -> bool:
        """Does the cache have it?"""
        return Entry(self.name, self.key, self.layer).is_complete()

    def built(self) -> Entry:
        """The cache entry, which is built now if it does not exist. Then this process can call what it has."""
        call_extension.ensure(self.settings)
        entry = Entry(self.name, self.key, self.layer)
        if not entry.is_complete():
            with Progress(self.name) as progress:
                entry.make(
                    lambda lock: self._build(entry, progress, lock),
                    waiting=lambda who: progress.wait(f"for {who}, which builds it"),
                )
        return entry

    def watch(self, entry: Entry) -> Callable | None:
        """What makes a launcher ask the race finder, if the libraries have it."""
        if self.settings.get("SANITIZE") != "races":
            return None
        sources = entry.for_make(entry.sources)
        return lambda call: races.checked(call, lambda text: self.shown(text, sources))

    def _build(self, entry: Entry, progress: Progress, lock: int) -> None:
        sources, folder = entry.for_make(entry.sources), entry.for_make(entry.folder)
        for path, content in self.files.items():
            (sources / path).parent.mkdir(parents=True, exist_ok=True)
            (sources / path).write_bytes(content)
        if self.backends:
            self._by_make(entry, progress, lock, sources, folder)
        if self.kernels:
            progress.step(f"NVRTC {self.name}/{self.name}.cu")
            self.kernels.build(entry.build / "kernels", entry.folder)
        if not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text(INIT.format(name=self.name))

    def _by_make(self, entry: Entry, progress: Progress, lock: int, sources: Path, folder: Path) -> None:
        try:
            own = {"LAYERS_DIR": str(folder.parent), "LAYERS": self.name}
            own |= {"BUILD": str(entry.for_make(entry.build)), "PYTHON": sys.executable}
            own |= {"BACKENDS": " ".join(self.backends), "CORE": core_in(entry.cache, self.digest)}
            self._make(folder, own, progress, lock)
        except CaffeBuildError as error:
            raise CaffeBuildError(
                f"{self.name} does not build:\n{self.shown(error.output, sources)}{advice(error.output)}"
            ) from None

    def _make(self, folder: Path, own: dict[str, str], progress: Progress, lock: int) -> None:
        """Run make; again, as long as what fails can be mended. The error has the first and the last output."""
        outputs: list[str] = []
        for goal in [self.first, *["libraries"] * (MOST_ATTEMPTS - 1)]:
            try:
                return make([goal], self.settings | own, progress, lock)
            except CaffeBuildError as error:
                outputs.append(error.output)
                if not self.mended(folder, error.output):
                    break
        last = f"\nWithout the code that has these errors:\n{outputs[-1]}" if len(outputs) > 1 else ""
        raise CaffeBuildError(outputs[0] + last)


def core_in(place: Path, digest: bytes = b"") -> str:
    """The folder of the toolkit's own objects, which all entries of a cache share. `digest`: the toolkit's."""
    core = private.make_private(place / f"core-{(digest or toolkit.digest()).hex()[:16]}")
    sweep.mark(core)
    return str(cache.for_make(place) / core.name)


def check_name(who: str, name) -> str:
    if not isinstance(name, str):
        raise CaffeTypeError(f"{who}: name: expected a string, got {name!r}")
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name) or name.startswith("_"):
        raise CaffeValueError(f"{who}: name: expected a Python name such as my_layer, got {name!r}")
    if len(name) > MOST_LETTERS:
        raise CaffeValueError(f"{who}: name: expected at most {MOST_LETTERS} letters, got {len(name)}")
    return name


def key_of(
    what, settings: dict[str, str], backends: tuple[str, ...], files: Mapping[Any, bytes], digest: bytes = b""
) -> str:
    """The key of a build: its kind (`what`), settings and files, the toolkit (its `digest`) and the compilers."""
    total = hashlib.sha256(digest or toolkit.digest())
    words = [word for backend in BACKENDS.values() for word in settings[backend.compiler].split()[:1]]
    native = toolkit.processor() if settings["HOST_ARCH"] == "native" else ""
    made_by = [settings, backends, [toolkit.identity(word) for word in words], native, toolkit.writers()]
    total.update(repr((made_by, what)).encode())
    for path, content in sorted(files.items()):
        total.update(f"\n{path} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()[:32]


def settings_for(
    who: str, arch: str | None, backends: Iterable[str] | None, further: dict[str, str] | None = None
) -> tuple[dict, tuple[str, ...]]:
    """(make's settings, the backends to build), from the arguments, else the environment, else this machine.

    Args:
        further: settings that other arguments chose.
    """
    if arch is not None and not isinstance(arch, str):
        raise CaffeTypeError(f'{who}: arch: expected a string such as "sm_90", got {arch!r}')
    names = None if backends is None else [backends] if isinstance(backends, str) else list(backends)
    for_gpu = names is None or any(not BACKENDS[name].on_host for name in names if name in BACKENDS)
    arch = architectures_for(arch) if for_gpu else ""  # to ask for GPUs takes longer than to load a library
    settings = {name: os.environ.get(name, "") for b in BACKENDS.values() for name in b.settings}
    settings |= further or {}
    settings |= {"CXX": cxx(settings["CXX"]), "NVCC": toolkit.find_nvcc(), "ARCH": arch or "all-major"}
    settings["HOST_ARCH"] = settings["HOST_ARCH"] or "native"
    if names is None:
        chosen = tuple(b.name for b in backends_here() if b.on_host or (settings[b.compiler] and arch))
    else:
        chosen = tuple(dict.fromkeys(names))
        if not chosen or not set(chosen) <= set(BACKENDS):
            known = ", ".join(f'"{name}"' for name in BACKENDS)
            raise CaffeValueError(f"{who}: backends: expected some of {known}, got {backends!r}")
        for compiler in (BACKENDS[name].compiler for name in chosen):
            if not settings[compiler]:
                raise CaffeValueError(
                    f"{who}: backends: no {compiler.lower()} was found (see {compiler} at the top of the toolkit's "
                    "Makefile)"
                )
    compilers = {b.compiler: b.on_host or b.name in chosen for b in BACKENDS.values()}
    settings = {name: text for name, text in settings.items() if text or name in compilers}
    return settings | {name: "" for name, used in compilers.items() if not used}, chosen


def architectures_for(arch: str | None) -> str:
    """GPU architectures, from the argument, else the environment, else this machine; "" if there is no GPU."""
    arch = arch or os.environ.get("ARCH") or "native"
    return _architectures() if arch == "native" else arch


def _architectures() -> str:
    """The architectures of the GPUs that this process can use: in a fork of one that has used a GPU there are none."""
    if not torch.cuda.is_available() or torch.cuda._is_in_bad_fork():
        return ""
    found = {torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())}
    return " ".join(f"sm_{major}{minor}" for major, minor in sorted(found))
