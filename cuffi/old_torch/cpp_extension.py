"""torch.utils.cpp_extension without torch's headers: load, load_inline, CppExtension, CUDAExtension, BuildExtension.

`install()` puts this module in the place of torch's, in this process (`python -m cuffi.ext`).
"""

import hashlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import torch.utils
from setuptools import Extension
from setuptools.command.build_ext import build_ext

from ..base import CaffeTypeError, CaffeValueError
from ..loading import cache
from .aten_build import TorchExtension, arch_listed
from .aten_library import BESIDE, libraries_of, module_of
from .ffi import processor

# What setup.py files ask for, to choose between CppExtension and CUDAExtension.
CUDA_HOME = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
CUDNN_HOME = HIP_HOME = ROCM_HOME = ROCM_VERSION = SYCL_HOME = None
IS_HIP_EXTENSION = IS_WINDOWS = IS_MACOS = False
IS_LINUX = True
SUBPROCESS_DECODE_ARGS = ()
COMMON_NVCC_FLAGS: list[str] = []
# What gives a module functions or operators.
EXPORTS = re.compile(r"PYBIND11_MODULE|TORCH_LIBRARY|RegisterOperators|PyInit_")
# What cpp_sources have, if they are the end of cuda_sources: see `_is_one`.
BEHIND = "#line 1 "
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Functions that are declared: torch::Tensor f(torch::Tensor x, const std::vector<int64_t>& sizes);
DECLARED = re.compile(r"(?:\s*[A-Za-z_][\w:<>, *&]*\([\w:<>,*&\s]*\)\s*;)+\s*")
# What the end of a file would see, and a second file does not.
SEEN = re.compile(r"\b(?:namespace|using|typedef|PYBIND11_MODULE|TORCH_LIBRARY\w*)\b|\bextern\s*\"")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
# Included in front of the strings of load_inline, as torch does; as options, so that each line has its number.
CPP_HEADS = ("-include", "torch/extension.h")
CUDA_HEADS = ("-include", "torch/types.h", "-include", "cuda.h", "-include", "cuda_runtime.h")


def listed(value) -> list[str]:
    """A string or several, as a list."""
    return [str(value)] if isinstance(value, (str, os.PathLike)) else [str(one) for one in value or ()]


def _words(extension: str, **options) -> list[list[str]]:
    """The words of options: torch's load writes the strings one after the other, and a shell splits them."""
    made = []
    for name, texts in options.items():
        try:
            made.append([word for text in listed(texts) for word in shlex.split(text)])
        except ValueError as error:
            raise CaffeValueError(f"{extension}: {name}: {error} in {texts!r}") from None
    return made


def load(
    name: str, sources, extra_cflags=None, extra_cuda_cflags=None, extra_ldflags=None, extra_include_paths=None,
    build_directory=None, verbose: bool = False, with_cuda: bool | None = None, is_python_module: bool = True,
    is_standalone: bool = False, keep_intermediates: bool = True, *, arch: str | None = None, backends=None, **others,
):  # fmt: skip
    """torch.utils.cpp_extension.load: build an extension's files and import it. A build in the cache is used again.

    Args:
        sources: paths of .cpp and .cu files.
        extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths: -D, -U, -I, -include, -l and -L are used;
            the toolkit chooses warnings, architectures and optimisations.
        build_directory, verbose, with_cuda, keep_intermediates: without effect: the cache is `load`'s.
        is_python_module: false for a library with only TORCH_LIBRARY; then its path is returned.
        arch, backends: as for `cuffi.load`.

    Raises:
        CaffeTypeError, CaffeValueError: an argument is wrong, or there is no such file.
        CaffeBuildError: it does not compile. The message has the compiler's output.
    """
    _check_names("load", others)
    options = _words(
        name, extra_cflags=extra_cflags, extra_cuda_cflags=extra_cuda_cflags, extra_ldflags=extra_ldflags
    )
    extension = TorchExtension(name, listed(sources), *options, listed(extra_include_paths))
    return _load(extension, is_python_module, is_standalone, arch, backends)


def _load(extension: TorchExtension, is_python_module: bool, is_standalone: bool, arch, backends):
    if is_standalone:
        raise CaffeValueError(f"{extension.name}: is_standalone: an extension is a Python module here")
    entry = extension.built(arch or arch_listed(), backends)
    module = module_of(entry, extension.name)
    return module if is_python_module else str(next(iter(libraries_of(entry, extension.short).values())))


def load_inline(
    name: str, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None, extra_cuda_cflags=None,
    extra_ldflags=None, extra_include_paths=None, build_directory=None, verbose: bool = False,
    with_cuda: bool | None = None, is_python_module: bool = True, with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True, use_pch: bool = False, no_implicit_headers: bool = False, *,
    arch: str | None = None, backends=None, **others,
) -> ModuleType:  # fmt: skip
    """torch.utils.cpp_extension.load_inline: build strings of C++ and CUDA, and import them.

    Args:
        cpp_sources, cuda_sources: strings, or lists of strings. `#include <torch/extension.h>` is in front of them.
        functions: names of functions in cpp_sources for the module, or {name: docstring}. None: the strings have
            PYBIND11_MODULE.
        Others: as for `load`.

    Raises:
        CaffeBuildError: it does not compile. The message has the strings' own line numbers.
    """
    _check_names("load_inline", others)
    texts = {
        "cpp": _joined(name, "cpp_sources", cpp_sources),
        "cu": _joined(name, "cuda_sources", cuda_sources),
    }
    if functions is None and is_python_module and not any(map(EXPORTS.search, texts.values())):
        raise CaffeValueError(
            f"load_inline: {name}: the module would be empty: pass functions=, or write PYBIND11_MODULE"
        )
    bindings = _bindings(name, functions)
    cpp, cuda = ((), ()) if no_implicit_headers else (CPP_HEADS, CUDA_HEADS)
    if processor.stands_in and functions and cpp and _is_one(texts["cpp"], texts["cu"], functions):
        texts["cu"] += f'\n{BEHIND}"{name}.cpp"\n{texts.pop("cpp")}{bindings}'
        cuda = (*CPP_HEADS, *CUDA_HEADS)
    else:
        texts["cpp"] += bindings
    key = hashlib.sha256("\0".join([name, *texts.values()]).encode()).hexdigest()[:16]
    folder = cache.folder() / f"inline-{key}"
    folder.mkdir(exist_ok=True)
    sources = {folder / f"{name}.{suffix}": text for suffix, text in texts.items() if text.strip()}
    for path, text in sources.items():
        _write(path, f"{text}\n")
    cxx, nvcc, link = _words(
        name, extra_cflags=extra_cflags, extra_cuda_cflags=extra_cuda_cflags, extra_ldflags=extra_ldflags
    )
    extension = TorchExtension(
        name, sources, [*cpp, *cxx], [*cuda, *nvcc], link, listed(extra_include_paths),
        shown=lambda text: text.replace(f"{folder}/", ""),
    )  # fmt: skip
    return _load(extension, is_python_module, False, arch, backends)


def _check_names(who: str, others: dict) -> None:
    """Refuse arguments that torch does not have. Those of other devices have no effect, as without such a device."""
    if unknown := [name for name in others if "sycl" not in name]:
        raise CaffeTypeError(f"{who}: no argument is called {unknown[0]}")


def _joined(name: str, argument: str, texts) -> str:
    found = [texts] if isinstance(texts, str) else list(texts or ())
    if wrong := [text for text in found if not isinstance(text, str)]:
        raise CaffeTypeError(f"load_inline: {name}: {argument}: expected strings, got {wrong[0]!r}"[:200])
    return "\n".join(found)


def _is_one(cpp: str, cuda: str, functions) -> bool:
    """Can the one text be the other's end, though nvcc compiles two files? Then it only declares functions.

    Most of a compile is what torch's headers have, so one file takes half of the time.
    """
    declared, text = (COMMENT.sub(" ", one) for one in (cpp, cuda))
    words = {"m", "def", *re.findall(r"\w+", declared)}
    hidden = rf"\b(?:static|inline|__forceinline__)\b[^;{{}}]*\b(?:{'|'.join(listed(functions))})\s*\("
    return (
        bool(text.strip() and DECLARED.fullmatch(declared))
        and not (SEEN.search(text) or re.search(hidden, text))
        and words.isdisjoint(MACRO.findall(text))
    )


def _bindings(name: str, functions) -> str:
    """The PYBIND11_MODULE for a list of functions. An error in it names `functions`."""
    if functions is None:
        return ""
    docs = functions if isinstance(functions, dict) else {f: f for f in listed(functions)}
    if wrong := [f for f in docs if not isinstance(f, str) or not f.isidentifier()]:
        raise CaffeValueError(f"load_inline: {name}: functions: expected names, got {wrong[0]!r}")
    lines = [f'm.def("{f}", &{f}, {_quoted(str(doc))});' for f, doc in docs.items()]
    text = "\n".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"])
    return f'\n#line 0 "functions"\n{text}\n'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        partial.write_text(text)
        os.replace(partial, path)


# ------------------------------------------------------------------------------------------------------- setup.py


class _TorchExtension(Extension):
    """setuptools' description of an extension, with the options of both compilers apart."""

    def __init__(self, name: str, sources, *arguments, **options):
        given = options.pop("extra_compile_args", None) or []
        self.by_compiler = given if isinstance(given, dict) else {"cxx": given, "nvcc": given}
        known = (
            "include_dirs",
            "define_macros",
            "undef_macros",
            "library_dirs",
            "libraries",
            "extra_link_args",
        )
        kept = {option: value for option, value in options.items() if option in known}
        super().__init__(name, listed(sources), *arguments, **kept)


def CppExtension(name: str, sources, *arguments, **options) -> Extension:
    """torch.utils.cpp_extension.CppExtension."""
    return _TorchExtension(name, sources, *arguments, **options)


def CUDAExtension(name: str, sources, *arguments, **options) -> Extension:
    """torch.utils.cpp_extension.CUDAExtension."""
    return _TorchExtension(name, sources, *arguments, **options)


class BuildExtension(build_ext):
    """torch.utils.cpp_extension.BuildExtension: setup.py's command build_ext.

    BACKENDS and ARCH (or TORCH_CUDA_ARCH_LIST) in the environment choose what is built, as for make.
    """

    @classmethod
    def with_options(cls, **options):
        return cls

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".abi3.so"

    def finalize_options(self) -> None:
        self.of_setup = [*listed(self.include_dirs or self.distribution.include_dirs)]
        super().finalize_options()  # adds Python's own folders

    def build_extension(self, ext: Extension) -> None:
        ext.include_dirs = [*listed(ext.include_dirs), *self.of_setup]
        entry = _of_setup(ext).built(arch_listed(), os.environ.get("BACKENDS", "").split() or None)
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        found = libraries_of(entry, ext.name.rpartition(".")[2])
        places = dict(zip(found.values(), (target, _beside(target)), strict=False))
        _beside(target).unlink(missing_ok=True)  # of an earlier build
        for library, place in places.items():
            partial = place.with_name(f"{place.name}.partial")
            shutil.copyfile(library, partial)
            os.replace(partial, place)
        print(f"{ext.name}: built for {', '.join(found)} in {target.parent}")

    def copy_extensions_to_source(self) -> None:
        """`--inplace`: the library for GPUs goes along."""
        super().copy_extensions_to_source()
        build_py = self.get_finalized_command("build_py")
        for ext in self.extensions:
            package, _, short = self.get_ext_fullname(ext.name).rpartition(".")
            made = _beside(Path(self.build_lib, self.get_ext_filename(ext.name)))
            if made.exists():
                shutil.copyfile(made, Path(build_py.get_package_dir(package), f"{short}{BESIDE}"))


def _beside(library: Path) -> Path:
    return library.with_name(library.name.partition(".")[0] + BESIDE)


def _of_setup(ext: Extension) -> TorchExtension:
    by_compiler = getattr(ext, "by_compiler", None) or {"cxx": ext.extra_compile_args}
    macros = [f"-D{n}" + ("" if v is None else f"={v}") for n, v in ext.define_macros]
    macros += [f"-U{n}" for n in ext.undef_macros]
    link = [f"-l{n}" for n in ext.libraries if not re.match(r"cu|torch|c10|nv", n)]
    link += [*(f"-L{os.path.abspath(d)}" for d in ext.library_dirs), *map(str, ext.extra_link_args)]
    return TorchExtension(
        ext.name, ext.sources, [*listed(by_compiler.get("cxx")), *macros], [*listed(by_compiler.get("nvcc")), *macros],
        link, listed(ext.include_dirs),
    )  # fmt: skip


def include_paths(*_, **__) -> list[str]:
    """torch.utils.cpp_extension.include_paths. The headers are there without it."""
    return []


library_paths = include_paths


def get_default_build_root() -> str:
    return str(cache.folder())


def is_ninja_available() -> bool:
    return True


def verify_ninja_availability() -> None:
    """torch raises an error without ninja. make is used here."""


def check_compiler_abi_compatibility(_) -> bool:
    return True


def install() -> None:
    """Become torch.utils.cpp_extension, in this process."""
    sys.modules["torch.utils.cpp_extension"] = sys.modules[__name__]
    vars(torch.utils)["cpp_extension"] = sys.modules[__name__]
