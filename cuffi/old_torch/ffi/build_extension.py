"""create_extension: build an extension of torch.utils.ffi by its build script.

The kernels are compiled here, too. The .cu of each of `extra_objects` is found by its name, or by the command that a
make.sh or a Makefile gave to the stand-in for nvcc (front.py).
"""

import glob
import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

from ...backends import BACKENDS, HOST
from ...loading.cache import Entry
from ...loading.load import with_included
from ...loading.recipe import key_of, settings_for
from ...loading.run_make import CaffeBuildError, Progress
from .. import copies
from . import kernels, processor

CUDA_FOLDER = re.compile(r"/(usr/local|opt)/cuda[-\d.]*/|/usr/lib/|/usr/include")
# CUDA's and torch's libraries, whose functions the toolkit has or does not have.
OF_TORCH = re.compile(r"cu|TH|ATen|_C\Z|caffe2|torch|c10")
MODULE = '''"""The C functions of {name}. Made by its build script: torch.utils.ffi of the package {package}."""

from torch.utils.ffi import _library

lib, ffi = _library(__file__)
'''
INIT = """from torch.utils.ffi import _wrap_function
from ._{name} import lib as _lib, ffi as _ffi

__all__ = dir(_lib)
globals().update({{name: _wrap_function(getattr(_lib, name), _ffi) for name in __all__}})
"""


def create_extension(
    name: str, headers, sources, verbose: bool = True, with_cuda: bool = False, package: bool = False,
    relative_to: str = ".", **options,
) -> "Extension":  # fmt: skip
    """torch.utils.ffi.create_extension: describe an extension. `build()` of the result builds it.

    Args:
        name: the package's, with dots between folders: `_ext.roi_pooling`.
        headers: files with the declarations of the functions.
        sources: C and C++ files. All paths are relative to the folder of `relative_to`.
        with_cuda: are there functions for tensors on a GPU?
        options: include_dirs, define_macros, extra_objects, extra_compile_args, libraries, library_dirs,
            extra_link_args; others are ignored.

    Raises:
        CaffeBuildError: `build` cannot find a file, or the extension does not compile. The message names file and line.
    """
    frame = sys._getframe(1)
    return Extension(
        name,
        headers,
        sources,
        with_cuda,
        relative_to,
        options,
        f"{frame.f_code.co_filename}:{frame.f_lineno}",
    )


class Extension:
    """One extension. base: the folder to which its paths are relative. where: the call that describes it."""

    def __init__(self, name, headers, sources, with_cuda, relative_to, options, where):
        self.name, self.with_cuda, self.options, self.where = name, with_cuda, options, where
        self.base = Path(os.path.abspath(os.path.dirname(relative_to)))
        listed = lambda names: [names] if isinstance(names, (str, os.PathLike)) else list(names)  # noqa: E731
        self.headers = [self._existing("headers", header) for header in listed(headers)]
        self.sources = [self._existing("sources", source) for source in listed(sources)]
        self.short = name.rpartition(".")[2]
        self.target = self.base.joinpath(*name.split("."))

    def _wrong(self, option: str, text: str) -> CaffeBuildError:
        return CaffeBuildError(f"{self.where}: {self.name}: {option}: {text}")

    def _existing(self, option: str, file) -> Path:
        path = Path(os.path.normpath(self.base / file))
        if not path.is_file():
            raise self._wrong(option, f"there is no file {path}")
        return path

    # ------------------------------------------------------------------------------------------------- build

    def build(self) -> None:
        """Build the libraries, and write the package. Nothing is written if anything fails."""
        settings, backends = self._settings()
        job, files = self._job()
        read = {path: Path(path).read_bytes() for path in job["objects"]}
        key = key_of(job, settings, backends, files | read)
        entry = Entry(self.short, key, PurePosixPath("made"))
        if not entry.is_complete():
            with Progress(self.name) as progress:
                entry.make(
                    lambda lock: self._make(
                        entry, job, files, settings | {"BACKENDS": " ".join(backends)}, progress, lock
                    ),
                    waiting=lambda who: progress.wait(f"for {who}, which builds it"),
                )
        self._write(entry)
        made = [name for name in backends if list(entry.folder.glob(f"*{BACKENDS[name].library}"))]
        print(f"{self.name}: built for {', '.join(made)} in {self.target}")

    def _settings(self) -> tuple[dict, tuple[str, ...]]:
        """make's settings, and the backends to build for."""
        wanted = os.environ.get("BACKENDS", "").split() if self.with_cuda else HOST.name
        arch = None
        if processor.stands_in and not os.environ.get("ARCH"):  # then only the processor's library is useful
            arch, wanted = "all-major", wanted or HOST.name
        return settings_for("torch.utils.ffi", arch, wanted or None)

    def _job(self) -> tuple[dict, dict[str, bytes]]:
        """The job for make/build_library.py, with the user's paths, and the content of each file by path."""
        objects, units = self._objects()
        folders = [self.base, *(self._folder(f) for f in self.options.get("include_dirs") or ())]
        arguments = [str(a) for a in self.options.get("extra_compile_args") or ()]
        folders += [self._folder(a[2:]) for a in arguments if a.startswith("-I")]
        macros = [
            f"-D{n}" + ("" if v is None else f"={v}") for n, v in self.options.get("define_macros") or ()
        ]
        macros += [a for a in arguments if a.startswith(("-D", "-U"))]
        main = [*self.headers, *self.sources, *(unit.source for unit in units)]
        files = with_included(main, [*folders, *(f for unit in units for f in unit.folders)])
        own = [f for f in folders if not CUDA_FOLDER.search(f"{f}/")]
        link = [f"-l{name}" for name in self.options.get("libraries") or () if not OF_TORCH.match(name)]
        link += [f"-L{self._folder(f)}" for f in self.options.get("library_dirs") or ()]
        link += [a for a in map(str, self.options.get("extra_link_args") or ()) if a != "-fopenmp"]
        return {
            "name": self.short, "with_cuda": bool(self.with_cuda),
            "sources": list(map(str, self.sources)), "headers": list(map(str, self.headers)),
            "kernels": [{"source": str(unit.source), "flags": unit.flags} for unit in units],
            "local": [str(f) for f in files if f not in main],
            "flags": [*dict.fromkeys(f"-I{f}" for f in own), *macros], "objects": objects, "link": link,
        }, {str(f): content for f, content in files.items()}  # fmt: skip

    def _folder(self, folder) -> Path:
        return Path(os.path.normpath(self.base / folder))

    def _objects(self) -> tuple[list[str], list[kernels.Unit]]:
        """Files to link with, and kernels to compile, from extra_objects."""
        objects, units = [], {}
        for wanted in map(str, self.options.get("extra_objects") or ()):
            path = Path(os.path.abspath(wanted))
            path = path if path.exists() else Path(os.path.normpath(self.base / wanted))
            if CUDA_FOLDER.search(str(path)):
                continue  # CUDA's own libraries
            found = kernels.units_of(path, self.base)
            if found and self.with_cuda:
                units |= {unit.source: unit for unit in found}
            elif not found and path.is_file():
                objects.append(str(path))
            elif self.with_cuda or not kernels.looks_like_cuda(path):
                raise self._wrong("extra_objects", f"{path}: neither this file nor a .cu for it exists")
        return objects, list(units.values())

    def _make(
        self, entry: Entry, job: dict, files: dict, settings: dict, progress: Progress, lock: int
    ) -> None:
        above = os.path.commonpath([self.base, *(os.path.dirname(f) for f in files)])
        try:
            copies.build(entry, job, files, above, settings, progress, lock)
        except CaffeBuildError as error:
            raise CaffeBuildError(f"{self.where}: {self.name} does not build:\n{error.output}") from None

    def _write(self, entry: Entry) -> None:
        """Write the package: its libraries, and the Python files around them if they do not exist."""
        self.target.mkdir(parents=True, exist_ok=True)
        for folder in (f for f in self.target.parents if self.base in f.parents):
            (folder / "__init__.py").touch()
        for old in glob.glob(f"{glob.escape(str(self.target))}/_{self.short}*.so"):
            os.unlink(old)  # from 2017, or from the last build
        for library in entry.folder.glob("*.so"):
            partial = self.target / f"{library.name}.partial"
            shutil.copyfile(library, partial)
            os.replace(partial, self.target / library.name)
        (self.target / f"_{self.short}.py").write_text(
            MODULE.format(name=self.name, package=__name__.partition(".")[0])
        )
        init = self.target / "__init__.py"
        if not init.exists() or not init.read_text().strip():
            init.write_text(INIT.format(name=self.short))
