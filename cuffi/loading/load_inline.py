"""load_inline: build a string or a file of CUDA as a layer, and import it."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import ModuleType

from ..backends import HOST
from ..base.providers import providers
from ..runtime import CaffeTypeError, CaffeValueError
from . import kernel_build, races, toolkit
from .cache import Entry
from .flags import Flags
from .headers import FOLDERS, Gathered, with_headers
from .loaded import imported
from .recipe import Recipe, architectures_for, check_name, settings_for
from .run_make import CaffeBuildError, environment, has_compilers

STAYS = 3  # tools/new_layer/host_trim.py
ONE_TYPE = "its templates are compiled for the types of their launches alone, as another one does not compile"
LEFT_OUT = "host code that does not compile here is left out: "
PROLOGUE = b'#include "caffe_cuda_macro.h"\n'
# Before PROLOGUE for a string that uses no header of C++, and no other's: nvcc takes half the time without them.
FEW_HEADERS = b"#ifdef __NVCC__\n#define CAFFE_FEW_HEADERS\n#endif\n"
OF_CPP = re.compile(
    rb"\b(std|__gnu_cxx|errno|setlocale|localeconv|va_\w+|wc\w+|wmem\w+|btowc|\w*wint_t|\w*wprintf)\b"
    rb"|#\s*(include|import)(?!\s*<(cuda_runtime|cuda|cuda_fp16|cuda_bf16|math|float|limits|stdint|stdio|assert)\.h>)"
)
# The headers of types that instances may have and a template's file need not include.
OF_HALVES = {"half": b"#include <cuda_fp16.h>\n", "bfloat16": b"#include <cuda_bf16.h>\n"}

# Words of an extension of torch/extension.h, and of its kernels.
OF_TORCH = re.compile(r"#\s*include\s*<(torch|ATen|c10|pybind11)/|\b(torch|at)::Tensor\b")
KERNEL = re.compile(r"\b__global__\b|<<<")


def load_inline(
    name: str,
    cuda_source="",
    declarations=None,
    functions=None,
    *,
    arch: str | None = None,
    backends: Iterable[str] | None = None,
    sanitize: str | None = None,
    instances: Mapping[str, Iterable[str]] | None = None,
    macros: Mapping[str, object] | None = None,
    include_dirs: Sequence[str | os.PathLike] = (),
    sources: Sequence[str | os.PathLike] = (),
    flags: Sequence[str] = (),
    **of_torch,
) -> ModuleType:
    """Build a string or a file of CUDA and import it. If the cache has the build, no compiler starts.

    torch's own load_inline(name, cpp_sources, cuda_sources, functions=[...]) has the same name: a call with one of its
    arguments, or with a string that includes torch/extension.h or names torch::Tensor, is that
    (old_torch/cpp_extension.py).

    Args:
        name: the layer's name. Error messages and torch's names of its operators begin with it.
        cuda_source: the content of a .cu, or the path of one (a pathlib.Path), whose headers are found beside it, in
            the folders above it up to its repository's, in their include, src and inc, and anywhere in the
            repository if one alone ends so. The toolkit's macros are included. If it exports functions (`extern "C" int
            foo(const float* x, float* y, int64_t count, void* stream)`), the module has these. If it has only kernels,
            the module has a launcher for each: for the kernel `Twice` of the layer `mine` it is `mine_twice`, and
            `m.Twice`, `m.twice` and `m.twice_kernel` find it. A kernel `MineTwice` has `mine_twice`, too, `mine` has
            `mine_kernel`, and `mine_kernel` has `mine_kernel_launch`. `dir(m)` names all. A launcher takes the kernel's
            own parameters, and grid and block if the source does not determine them.
        declarations: the declarations of the exported functions, as in a layer's .h. Default: read from the source.
        arch, backends, sanitize: as for `load`.
        instances: the template arguments to compile a kernel for, by its name: {"gemm": ["float, 16", "half, 32"]}. For
            templates whose values the file does not tell, and for types that it does not launch. Without them a
            template is compiled for the types of its launches and instantiations, or else for float and double.
        macros: what the project's makefile defines by -D, by name: {"ARRAY_SIZE": 4, "FAST": ""}.
        include_dirs: the folders that the project's makefile gives by -I, for the file of a path.
        sources: other .cu files of its project, with functions that it calls and variables that it names.
        flags: options of the project's makefile: -std=c++20, -D and -I count, those of GPUs, optimisation and warnings
            do not. One that nobody knows here is an error.

    Returns:
        A module with the functions, and `layer`, the Layer for `operator`. Pass tensors for C's pointers; `dtype` and
        `stream` are filled in.

    A kernel that gets no launcher, because C cannot pass its parameters, is named in a RuntimeWarning. So is an
    `extern "C"` function that Python cannot call, if the file has none that it can: then its kernels get launchers. For
    these, host code that does not compile or link here (a main() with cuBLAS, a function of another file) is left out,
    with a RuntimeWarning.

    Raises:
        CaffeTypeError, CaffeValueError: an argument is wrong.
        CaffeBuildError: it does not build. The message has the string's line numbers.
        CaffeRuntimeError: the cache folder, make or a compiler is missing or cannot be used. With `sanitize`, also
            from a call of a launcher: its kernel races.
    """
    if functions is not None or of_torch or (isinstance(cuda_source, str) and OF_TORCH.search(cuda_source)):
        (cpp_extension,) = providers("torch_extensions")
        if instances is not None or macros is not None or include_dirs or sources or flags:
            own = "instances, macros, include_dirs, sources, flags"
            raise CaffeTypeError(f"load_inline: {own}: for kernels alone, not for an extension of torch")
        races.refuse_extension("load_inline", sanitize)
        names = ("cpp_sources", "cuda_sources")
        if declarations is None and isinstance(cuda_source, str) and KERNEL.search(cuda_source):
            names = ("cuda_sources", "cpp_sources")
        given = dict(zip(names, (cuda_source or "", declarations or ""), strict=True)) | {
            "functions": functions
        }
        return cpp_extension.load_inline(name, **(given | of_torch), arch=arch, backends=backends)
    _check(name, cuda_source, declarations)
    asked = _flags(flags)
    defined, include_dirs = (
        _defined(macros) + asked.definitions(),
        [*_paths("include_dirs", include_dirs), *asked.folders],
    )
    given, shown_as = _read(name, cuda_source, include_dirs, sources, defined)
    sanitized, backends = races.settings_of("load_inline", sanitize, backends)
    lean = not sources and instances is None and not OF_CPP.search(given.text + defined)
    root = given.root if isinstance(cuda_source, os.PathLike) else None
    inline = _Inline(
        name, given, shown_as, declarations, root, defined + (FEW_HEADERS if lean else b"") + PROLOGUE
    )
    if instances is not None:
        inline.list_instances(instances)
    inline.ask_for(asked.standard)
    recipe, entry = inline.built(arch, backends, sanitized, has_others=bool(sources))
    if declarations is None:
        for line in (entry.folder / "left_out").read_text().splitlines():
            warnings.warn(f"load_inline: {name}: {line}", RuntimeWarning, stacklevel=2)
    return imported(name, entry, entry.folder, wrap=recipe.watch(entry))


class _Inline:
    """A string or a file that is built.

    Args:
        given: the source with its headers.
        shown_as: what errors call it.
        declarations: of its functions, or None.
        root: where its headers are; None for a string.
        prologue: is included before it, so that each line of the .cu has its number in the string.
    """

    def __init__(
        self, name: str, given: Gathered, shown_as: str, declarations, root: Path | None, prologue: bytes
    ):
        self.name, self.given, self.shown_as, self.declarations, self.root = (
            name, given, shown_as, declarations, root,
        )  # fmt: skip
        self.files = {PurePosixPath(f"{name}.cu"): given.text, PurePosixPath("prologue.h"): prologue}
        # The caller's macros count in the headers behind them. Without any, the first header is precompiled.
        if not prologue.startswith((b"#define", b"#undef")):
            self.files[PurePosixPath("macros_first")] = b""
        self.files |= {PurePosixPath(place): content for place, content in given.headers.items()}
        if declarations is not None:
            self.files[PurePosixPath(f"{name}.h")] = declarations.encode()
        self.lines = given.original.decode(errors="replace").split("\n")

    def list_instances(self, instances) -> None:
        """Add the template arguments that the caller gives, and the headers of their types."""
        listed = self.files[PurePosixPath("instances")] = _listed(instances)
        named = [header for word, header in OF_HALVES.items() if word.encode() in listed]
        self.files[PurePosixPath("prologue.h")] += b"".join(named)

    def ask_for(self, standard: str) -> None:
        """Add the C++ standard, if it is newer than the toolkit's."""
        if standard > "17":
            self.files[PurePosixPath("cxx_standard")] = standard.encode()

    def built(self, arch, backends, sanitized: dict, has_others: bool) -> tuple[Recipe, Entry]:
        """The recipe, and its cache entry. Where NVRTC cannot build it, nvcc does."""
        has_gpu = backends is None and bool(architectures_for(arch))
        alone = self.declarations is None and not has_others and not sanitized
        alone = alone and PurePosixPath("cxx_standard") not in self.files
        if not (alone and kernel_build.compiles(backends, has_gpu)):
            recipe = self._recipe(*settings_for("load_inline", arch, backends, sanitized))
            return recipe, recipe.built()
        by_make, recipe = None, self._by_nvrtc(arch, backends)
        if not recipe.is_built() and toolkit.find_nvcc() and kernel_build.chosen() != "nvrtc":
            by_make = self._recipe(*settings_for("load_inline", arch, backends, sanitized))
            if by_make.is_built():  # because NVRTC could not
                return by_make, by_make.built()
        try:
            return recipe, recipe.built()
        except (kernel_build.NeedsNvcc, kernel_build.NvrtcFailed) as why:
            if by_make is not None:
                return by_make, by_make.built()
            if isinstance(why, CaffeBuildError):
                raise
            host = '; backends="host" builds it for the processor' if backends is None else ""
            raise CaffeBuildError(f"{self.name}: NVRTC cannot build it: {why}. nvcc can{host}") from None

    def _by_nvrtc(self, arch, backends) -> Recipe:
        """The recipe of kernels by NVRTC, and of the host's library by make if it is asked for."""
        others = None if backends is None else [b for b in _names(backends) if b != kernel_build.BACKEND.name]
        if others == [] or (others is None and not has_compilers()):
            if others is None:
                why = "built for the GPU alone: the processor needs make and a C++ compiler"
                warnings.warn(f"load_inline: {self.name}: {why}", RuntimeWarning, stacklevel=4)
            settings, chosen = settings_for("load_inline", arch, HOST.name)[0], ()
        else:
            settings, chosen = settings_for("load_inline", arch, others or HOST.name)
        arch = architectures_for(arch)
        arch = "" if arch in ("all", "all-major") else arch
        kernels = kernel_build.Kernels(self.name, self.files, arch, self.shown_as, self._mended, self._shown)
        return self._recipe(settings, chosen, kernels)

    def _recipe(
        self, settings: dict, chosen: tuple[str, ...], kernels: kernel_build.Kernels | None = None
    ) -> Recipe:
        folder, first = PurePosixPath(self.name), "inline" if self.declarations is None else "libraries"
        return Recipe(
            self.name, {folder / path: content for path, content in self.files.items()}, folder, settings, chosen,
            first, self._mended_for_make, lambda text, sources: self._shown(text, sources / folder), kernels,
        )  # fmt: skip

    def _mended(self, staged: Path, errors: str) -> bool:
        return self.declarations is None and _without_host_code(staged, errors, self.name)

    def _mended_for_make(self, staged: Path, errors: str) -> bool:
        return self._mended(staged, errors) or (
            self.declarations is None
            and _launched_only(staged / f"{self.name}.cu", self.files[PurePosixPath(f"{self.name}.cu")])
        )

    def _shown(self, text: str, place: Path) -> str:
        for below, path in self.given.paths.items():
            text = text.replace(str(place / below), str(path))
        return _in_users_lines(text, place / self.name, self.shown_as, self.lines) + _missing(text, self.root)


def _names(backends: Iterable[str]) -> list[str]:
    return [backends] if isinstance(backends, str) else list(backends)


def _check(name, cuda_source, declarations) -> None:
    check_name("load_inline", name)
    for argument, value in (("cuda_source", cuda_source), ("declarations", declarations)):
        path = argument == "cuda_source" and isinstance(value, os.PathLike)
        if not (isinstance(value, str) or path or (value is None and argument == "declarations")):
            raise CaffeTypeError(f"load_inline: {argument}: expected a string, got {value!r}"[:200])
    if isinstance(cuda_source, str) and not cuda_source.strip():
        raise CaffeValueError("load_inline: cuda_source: expected CUDA, got an empty string")


def _defined(macros) -> bytes:
    """The definitions of the caller's macros. tools/new_layer/inline.py reads them, too."""
    given = {} if macros is None else macros
    # What ends or goes beyond its line would change the next macro.
    if not isinstance(given, Mapping) or not all(
        isinstance(name, str)
        and re.fullmatch(r"[A-Za-z_]\w*", name)
        and not re.search(r"[\n\r\v\f\0]|/\*|\\\s*\Z", str(value))
        for name, value in given.items()
    ):
        raise CaffeTypeError(
            f'load_inline: macros: expected values by name, such as {{"SIZE": 4}}, got {macros!r}'[:300]
        )
    return "".join(f"#define {name} {value}\n" for name, value in given.items()).encode()


def _flags(given) -> Flags:
    try:
        asked = Flags(given)
    except ValueError as error:
        raise CaffeValueError(f"load_inline: flags: {error}") from None
    if asked.openmp or asked.libraries:
        other = "-fopenmp" if asked.openmp else asked.libraries[0]
        raise CaffeValueError(
            f"load_inline: flags: {other} is for host code, and kernels alone are built: leave it out"
        )
    return asked


def _listed(instances) -> bytes:
    """A line for each instance, as tools/new_layer/inline.py reads them."""
    lines = []
    for kernel, several in instances.items() if isinstance(instances, Mapping) else [(instances, ())]:
        texts = [several] if isinstance(several, str) else list(several)
        if not (isinstance(kernel, str) and texts and all(isinstance(text, str) for text in texts)):
            raise CaffeTypeError(
                'load_inline: instances: expected template arguments by kernel, such as {"gemm": ["float, 16"]}, '
                f"got {instances!r}"[:300]
            )
        lines += [f"{kernel}: {' '.join(text.split())}" for text in texts]
    return "\n".join(lines).encode()


def _read(name: str, cuda_source, include_dirs, sources, macros: bytes) -> tuple[Gathered, str]:
    """The source with its headers, and what errors call it."""
    folders, others = (
        [Path(path).expanduser().absolute() for path in _paths(argument, paths)]
        for argument, paths in (("include_dirs", include_dirs), ("sources", sources))
    )
    if isinstance(cuda_source, str):
        if folders or others:
            raise CaffeTypeError(
                "load_inline: include_dirs, sources: cuda_source is a string; give the path of its file"
            )
        return Gathered(cuda_source.encode(), cuda_source.encode(), {}, {}, Path()), f"{name}.cu"
    path = Path(cuda_source).expanduser().absolute()
    try:
        return with_headers(path, folders, others, macros), str(path)
    except OSError as error:
        raise CaffeValueError(
            f"load_inline: cuda_source: {error.filename or path}: {error.strerror}"
        ) from None


def _paths(argument: str, paths) -> list:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not all(isinstance(path, str | os.PathLike) for path in given):
        raise CaffeTypeError(f"load_inline: {argument}: expected paths, got {paths!r}"[:200])
    return given


def _complete(source: Path) -> None:
    """Write the declarations, and launchers if the source has only kernels."""
    command = [sys.executable, "-m", "tools.new_layer.inline", str(source)]
    done = subprocess.run(
        command,
        cwd=toolkit.root(),
        capture_output=True,
        text=True,
        errors="replace",
        env=environment(),
        umask=0o077,
    )
    if done.returncode:
        raise CaffeBuildError((done.stdout + done.stderr).strip())


def _without_host_code(staged: Path, errors: str, name: str) -> bool:
    """Leave out the host code that has these errors, if launchers were made: they need the kernels alone."""
    if b"\n// Made by load_inline: " not in (staged / f"{name}.cu").read_bytes():
        return False
    command = [sys.executable, "-m", "tools.new_layer.host_trim", str(staged)]
    done = subprocess.run(
        command,
        cwd=toolkit.root(),
        input=errors,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment(),
        umask=0o077,
    )
    if done.returncode not in (0, STAYS):
        raise CaffeBuildError(done.stderr.strip())
    *before, last = ["", *(staged / "left_out").read_text().splitlines()]
    if done.returncode == 0:
        before, last = ([*before, last], LEFT_OUT) if not last.startswith(LEFT_OUT) else (before, last)
        last += ", ".join([""] * last.endswith(")") + done.stdout.splitlines())
        (staged / "left_out").write_text("\n".join([*before, last]).lstrip("\n") + "\n")
    return done.returncode == 0


def _launched_only(source: Path, original: bytes) -> bool:
    """Make launchers for the types that the source launches alone. False if they are the same as before."""
    marker, header = source.with_name("launched_only"), source.with_suffix(".h")
    if marker.exists() or b"\n// Made by load_inline: " not in source.read_bytes():
        return False
    before = header.read_bytes()
    marker.touch()
    source.write_bytes(original)
    _complete(source)
    if header.read_bytes() == before:
        return False
    said = source.with_name("left_out")
    said.write_text(f"{ONE_TYPE}\n{said.read_text()}")
    return True


def _missing(text: str, root: Path | None) -> str:
    """Where a header was searched, if a compiler found none; what adds a function that the linker lacks."""
    if "undefined reference to" in text and root is not None:
        return "\nIf other .cu files of the project have these: load_inline(..., sources=[...])."
    if not re.search(r"fatal error: .*: No such file", text):
        return ""
    if root is None:
        return "\nA string has no folder: pass the file's path, pathlib.Path(...), and its headers are found."
    return (
        f"\nHeaders are searched in the file's folder, in those above it up to {root}, and in their "
        f"{', '.join(FOLDERS[1:])}; in a repository anywhere, if one file alone ends so; in load_inline's include_dirs."
    )


def _in_users_lines(text: str, stem: Path, shown_as: str, lines: list[str]) -> str:
    """The compiler's text, with the source's name, and with each line of it that an error names.

    Args:
        stem: the path of the built file without its suffix.
        shown_as: the name that the user knows.
        lines: of the source.
    """
    # Compilers name a place as "file.cu:3:5:" (g++) or "file.cu(3):" (nvcc).
    place = re.compile(rf"{re.escape(str(stem))}(\.cu|\.h)([:(])(\d+)")
    result: list[str] = []
    named: dict[int, bool] = {}
    for line in text.split("\n"):
        if found := place.search(line):
            number = int(found[3])
            if found[1] == ".cu" and number > len(lines):
                line = place.sub("a launcher made for it", line, count=1)
            else:
                named[number] = named.get(number) or found[1] == ".cu"
        result.append(line.replace(f"{stem}.cu", shown_as).replace(str(stem), stem.name))
    # nvcc does not quote the line.
    shown = "\n".join(result)
    own = [n for n, in_source in named.items() if in_source and lines[n - 1].strip() not in shown]
    return "\n".join([shown, *(f"line {n}: {lines[n - 1].strip()}" for n in own)])
