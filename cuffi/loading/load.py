"""load: build a layer's folder in the cache, and import it."""

import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import ModuleType

from ..base.files import nearest
from ..base.providers import providers
from ..runtime import CaffeTypeError, CaffeValueError
from ..runtime.layer import has_launchers
from . import races
from .loaded import imported
from .recipe import Recipe, check_name, settings_for

SOURCES = (".cu", ".cpp", ".cc")
# Files that are not needed for a build.
NOT_BUILT = (".py", ".pyc", ".so", ".desc", ".md", ".partial")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)


def load(
    folder: str | os.PathLike | None = None,
    sources=None,
    *,
    arch: str | None = None,
    backends: Iterable[str] | None = None,
    sanitize: str | None = None,
    **of_torch,
) -> ModuleType:
    """Build a layer's folder and import it. If the cache has the build, no compiler starts.

    torch's own load(name, sources) has the same name: a call with sources is that (old_torch/cpp_extension.py).

    Nothing is written to the folder. Its sources are copied to the cache, and the toolkit's make builds them there. Its
    Python files are imported from the folder, as a package beside the toolkit's `runtime`.

    Args:
        folder: the folder of one layer, native (foo.cu, foo.h, __init__.py) or Caffe (foo_layer.hpp, ...), as for
            `make`.
        arch: GPU architectures, "sm_90" or "sm_80 sm_90". Default: ARCH in the environment, or this machine's GPUs.
        backends: one name or several. Default: host; and cuda, if there is nvcc, and a GPU or an arch.
        sanitize: "races" builds a native layer for the host with the race finder (docs/trust.md). A call whose kernel
            races raises CaffeRuntimeError with both lines.

    Returns:
        The layer's module. The same folder with the same content gives the same module.

    Raises:
        CaffeTypeError, CaffeValueError: an argument is wrong, or the folder is not a layer's.
        CaffeBuildError: it does not build. The message has the compiler's output.
        CaffeRuntimeError: the cache folder, make or a compiler is missing or cannot be used.
    """
    if sources is not None or of_torch:
        (cpp_extension,) = providers("torch_extensions")
        races.refuse_extension("load", sanitize)
        given = {"name": folder, "sources": sources or ()}
        return cpp_extension.load(**(given | of_torch), arch=arch, backends=backends)
    path = _checked(folder)
    if not (path / "cases.py").exists():
        warnings.warn(
            f"load: {path} has no cases.py, so the layer cannot be tested",
            stacklevel=2,
        )
    sanitized, backends = races.settings_of("load", sanitize, backends)
    settings, chosen = settings_for("load", arch, backends, sanitized)
    files = _files(path)
    above = Path(os.path.commonpath([path.parent, *(f.parent for f in files)]))
    recipe = Recipe(
        name=path.name,
        files={PurePosixPath(file.relative_to(above)): content for file, content in files.items()},
        layer=PurePosixPath(path.relative_to(above)),
        settings=settings,
        backends=chosen,
        shown=lambda text, sources: text.replace(str(sources), str(above)),
    )
    entry = recipe.built()
    folders = [*([] if (path / "__init__.py").exists() else [entry.folder]), path]
    module = imported(path.name, entry, *folders, wrap=recipe.watch(entry))
    if sanitize and not has_launchers(module.__name__):
        raise CaffeValueError(
            f"load: sanitize: expected a native layer, got {path}, a Caffe layer. `make verify LAYER={path.name}` in "
            "the toolkit's folder runs the race finder on it"
        )
    return module


def _checked(folder) -> Path:
    try:
        path = Path(os.path.normpath(Path(os.fspath(folder)).expanduser().absolute()))
    except TypeError:
        raise CaffeTypeError(f"load: folder: expected a path, got {folder!r}") from None
    if not path.is_dir():
        what = (
            "it is a file, which load_inline(name, Path(file)) builds"
            if path.exists()
            else f"there is none{nearest(path)}. `cuffi new NAME` begins one"
        )
        raise CaffeValueError(f"load: folder: expected a layer's folder, got {path}: {what}")
    check_name("load", path.name)
    if not any(file.suffix in SOURCES for file in path.rglob("*")):
        raise CaffeValueError(
            f"load: folder: expected a layer's folder, got {path}: it holds neither .cu nor .cpp"
        )
    return path


def _files(folder: Path) -> dict[Path, bytes]:
    """The content of the folder's files, and of files outside of it that they include by relative paths."""
    return with_included(
        file
        for file in sorted(folder.rglob("*"))
        if file.is_file()
        and file.suffix not in NOT_BUILT
        and not any(p.startswith(".") or p == "__pycache__" for p in file.relative_to(folder).parts)
    )


def with_included(files: Iterable[Path], folders: Iterable[Path] = ()) -> dict[Path, bytes]:
    """The content of files, and of those that they include from their own folders or from `folders`."""
    found, waiting = {}, list(files)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found[file] = file.read_bytes()
        if b"\0" not in found[file]:  # not in binary files
            for name in INCLUDE.finditer(found[file]):
                waiting += [path for path in places_of(name, file, folders) if path.is_file()][:1]
    return found


def places_of(include: re.Match, file: Path, folders: Iterable[Path]) -> list[Path]:
    """Where the header of an #include in `file` may lie, in the compiler's order: that of "x.h" first beside the file.

    That of <x.h> lies in one of `folders`, then in one that only a makefile knows, such as the file's own.
    """
    own = [file.parent]
    searched = [*own, *folders] if include[1] == b'"' else [*folders, *own]
    return [Path(os.path.normpath(folder / os.fsdecode(include[2]))) for folder in searched]
