"""Build an extension of torch/extension.h: its files are copied to the cache, and the toolkit's make runs there."""

import itertools
import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from ..backends import HOST
from ..base import CaffeTypeError, CaffeValueError
from ..base.files import nearest
from ..loading.advice import advice
from ..loading.cache import Entry
from ..loading.load import with_included
from ..loading.recipe import key_of, settings_for
from ..loading.run_make import CaffeBuildError, Progress
from . import aten_declarations as declarations
from . import copies
from .aten_headers import beside, forced, named_by, note_told, told
from .aten_service import digest
from .ffi import processor

HERE = Path(__file__).resolve().parent
KERNELS = (".cu",)
CPP = (".cpp", ".cc", ".cxx", ".c++", ".c")
# Folders of a system, whose headers the compiler finds itself.
OF_SYSTEM = re.compile(r"/(usr/(?!local/src|src)|opt/cuda|lib)")
# Options of extra_compile_args that both compilers get, and those of nvcc's own. Others choose warnings, architectures
# and optimisations, which the toolkit chooses.
PASSED = re.compile(r"-[DU]\w|-include|-fopenmp$")
OF_NVCC = re.compile(r"--?(use_fast_math|maxrregcount.*|fmad=.*|ftz=.*|prec-\w+=.*|expt-.*)$")
STANDARD = re.compile(r"--?std[= ]?(?:c|gnu)\+\+(\d\w)$")
# torch's headers.
OF_TORCH = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<](torch|ATen|c10|THC?|pybind11)/', re.MULTILINE)
# A source that names CUDA's own halves gets the headers that torch's headers include.
HALVES = re.compile(r"\b(__half\w*|half2?|__nv_bfloat16\w*|nv_bfloat16\w*)\b")


class TorchExtension:
    """One extension, as torch.utils.cpp_extension describes it.

    Args:
        name: the module's name, with dots between packages.
        sources: .cpp and .cu files.
        cxx, nvcc: options for each compiler (extra_compile_args).
        link: options for the linker.
        include_dirs: folders with headers.
        shown: replaces names of files in an error's text by the user's.

    Raises:
        CaffeTypeError, CaffeValueError: an argument is wrong, or a source does not exist.
    """

    def __init__(
        self, name: str, sources: Iterable, cxx: Sequence = (), nvcc: Sequence = (), link: Sequence = (),
        include_dirs: Sequence = (), shown=lambda text: text,
    ):  # fmt: skip
        # setup.py files write f"{package}.name", and setuptools takes ".name" for a module without a package.
        if not isinstance(name, str) or not all(p.isidentifier() for p in name.removeprefix(".").split(".")):
            raise CaffeValueError(f"name: expected a module's name such as lltm_cuda, got {name!r}")
        self.name, self.short, self.shown = name, name.rpartition(".")[2], shown
        self.sources = [self._existing(source) for source in sources]
        if not self.sources:
            raise CaffeValueError(f"{name}: sources: expected .cpp or .cu files, got none")
        self.cxx, self.nvcc, self.link = (list(map(str, words or ())) for words in (cxx, nvcc, link))
        folders = [*map(str, include_dirs or ()), *_folders(self.cxx), *_folders(self.nvcc)]
        self.folders = [Path(os.path.abspath(f)) for f in dict.fromkeys(folders) if not OF_SYSTEM.match(f)]
        self.cxx, self.nvcc = forced(self.cxx, self.folders), forced(self.nvcc, self.folders)
        self.with_kernels = any(source.suffix in KERNELS for source in self.sources)

    def _existing(self, source) -> Path:
        if not isinstance(source, (str, os.PathLike)):
            raise CaffeTypeError(f"{self.name}: sources: expected paths, got {source!r}")
        path = Path(os.path.abspath(source))
        if not path.is_file():
            raise CaffeValueError(f"{self.name}: sources: there is no file {path.name}{nearest(path)}")
        if path.suffix not in (*KERNELS, *CPP):
            raise CaffeValueError(f"{self.name}: sources: expected .cpp or .cu files, got {path}")
        return path

    def built(self, arch: str | None = None, backends=None) -> Entry:
        """The cache entry with the libraries, which is built now if it does not exist.

        Raises:
            CaffeBuildError: it does not compile. The message has the compiler's output.
        """
        if not self.with_kernels or (processor.stands_in and not os.environ.get("ARCH")):
            # Without kernels torch does what needs a GPU; without a GPU only the processor's library is useful.
            arch, backends = arch or "all-major", backends or HOST.name
        settings, chosen = settings_for(self.name, arch, backends)
        if not self.with_kernels:
            chosen = (HOST.name,)
        files = with_included([*self.sources, *named_by(self.cxx + self.nvcc)], self.folders)
        entry = self._entry(files, settings, chosen)
        while further := [path for path in told(entry) if path not in files]:
            there, gone = ([p for p in further if p.is_file() is kind] for kind in (True, False))
            files |= with_included(there, self.folders) | dict.fromkeys(gone, b"")
            entry = self._entry(files, settings, chosen)
        return entry

    def _entry(self, files: dict[Path, bytes], settings: dict, chosen: tuple[str, ...]) -> Entry:
        """The entry for these files, which is built now if it does not exist."""
        texts = [content.decode(errors="replace") for content in files.values()]
        declared = declarations.text_of(declarations.names_in(texts))
        job = self._job(files, texts)
        inputs = {str(path): content for path, content in files.items()} | {"": declared.encode()}
        entry = Entry(self.short, key_of(job, settings, chosen, inputs), PurePosixPath("made"))
        if not entry.is_complete():
            settings = settings | {"BACKENDS": " ".join(chosen)}
            with Progress(self.name) as progress:
                entry.make(
                    lambda lock: self._make(entry, job, files, declared, settings, progress, lock),
                    waiting=lambda who: progress.wait(f"for {who}, which builds it"),
                )
        return entry

    def _job(self, files: dict[Path, bytes], texts: list[str]) -> dict:
        """What cuffi/old_torch/make/torch_library.py reads, with the user's paths."""
        flags = [f"-I{folder}" for folder in self.folders]
        flags += [f"-DTORCH_EXTENSION_NAME={self.short}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        if self.with_kernels and any(HALVES.search(text) for text in texts):
            flags.append("-DATEN_WITH_HALF")
        if any("Python.h" in text for text in texts):
            flags.append(f"-I{sysconfig.get_paths()['include']}")
        # An extension's own PyInit function is called by ours.
        if any(re.search(r"\bPyInit_", text) for text in texts):
            flags.append(f"-DPyInit_{self.short}=aten_own_init")
        return {
            "name": self.short, "module": self.short, "with_cuda": self.with_kernels, "headers": [], "local": [],
            "sources": [str(s) for s in self.sources if s.suffix not in KERNELS],
            "kernels": [{"source": str(s), "flags": []} for s in self.sources if s.suffix in KERNELS],
            "service": f"{__package__}.aten_service", "edge": digest(),
            "include": str(HERE / "include" / "extension"), "src": str(HERE / "src"), "flags": flags, "objects": [],
            "behind": [f"-I{folder}" for folder in self.folders],
            "cxx": _passed(self.cxx), "cuda": _passed(self.nvcc),
            "nvcc": [word for word in self.nvcc if OF_NVCC.match(word)], "std": _standard(self.cxx + self.nvcc),
            "link": [w for w in self.link if w.startswith(("-l", "-L", "-Wl", "-fopenmp"))]
            + ["-fopenmp"] * ("-fopenmp" in self.cxx),
        }  # fmt: skip

    def _begins_with_torch(self, source: str) -> bool:
        """Do the options include a header of torch's in front of it, as those of load_inline do?"""
        return any(w.startswith("torch/") for w in (self.nvcc if source.endswith(KERNELS) else self.cxx))

    def _make(
        self, entry: Entry, job: dict, files: dict, declared: str, settings: dict, progress, lock
    ) -> None:
        """Write the declarations, and build from copies of the files."""
        files = {path: content for path, content in files.items() if path.is_file()}  # one may be gone
        place = entry.place / "declared"
        place.mkdir()
        (place / "aten_operations.inc").write_text(declared)
        above = os.path.commonpath([os.path.dirname(f) for f in files])
        contents = {str(f): beside(f, content, self.folders, files) for f, content in files.items()}
        reached = {str(s): with_included([s], self.folders).values() for s in self.sources}
        first = [
            s
            for s, texts in reached.items()
            if self._begins_with_torch(s) or any(map(OF_TORCH.search, texts))
        ]
        job = job | {"declared": str(entry.for_make(place)), "first": first}
        try:
            copies.build(entry, job, contents, above, settings, progress, lock)
        except CaffeBuildError as error:
            said = self.shown(error.output) + advice(error.output)
            raise CaffeBuildError(f"{self.name} does not build:\n{said}") from None
        note_told(entry, self.folders, files)


def _folders(words: list[str]) -> list[str]:
    """The folders of -I options."""
    joined = [w[2:] for w in words if w.startswith("-I") and len(w) > 2]
    apart = [after for word, after in itertools.pairwise(words) if word in ("-I", "-isystem")]
    return joined + apart


def _passed(words: list[str]) -> list[str]:
    """The options that any compiler gets."""
    found, words = [], list(words)
    while words:
        word = words.pop(0)
        if word in ("-D", "-U", "-include") and words:
            found += [word, words.pop(0)] if word == "-include" else [word + words.pop(0)]
        elif PASSED.match(word):
            found.append(word)
    return found


def _standard(words: list[str]) -> str:
    """The C++ standard: 17, or a newer one that the extension asks for."""
    asked = [match[1] for word in words if (match := STANDARD.match(word))]
    return max([number for number in asked if number in ("17", "20", "23")], default="17")


def arch_listed() -> str | None:
    """GPU architectures from TORCH_CUDA_ARCH_LIST, as the toolkit names them. None: ARCH, or this machine's."""
    listed = re.findall(r"(\d+)\.(\d+)", os.environ.get("TORCH_CUDA_ARCH_LIST", ""))
    return " ".join(dict.fromkeys(f"sm_{major}{minor}" for major, minor in listed)) or None
