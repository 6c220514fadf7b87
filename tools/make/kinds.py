"""The kinds of folders that make builds. Native layers are the toolkit's own kind.

A wing adds a kind: the class `Kind` in its make/kind.py, with the methods of `Native`. Its recipes for make are in the
`.mk` files that it names. Every make runs this, so nothing slow is imported here or there.
"""

from __future__ import annotations

import functools
import glob
import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from ..files import read
from .backends import BACKENDS
from .package import PACKAGE, ROOT

if TYPE_CHECKING:
    import torch

    from .folders import Folder
    from .makefile import Rules
    from .settings import Settings


class LinkInputs(NamedTuple):
    """What a layer's library for one backend is linked from.

    Attributes:
        objects: for the layer's own archive.
        wrapper: the object with the Python module of its C functions.
        archives: the toolkit's own.
        headers: those that declare functions which the library must have.
    """

    objects: list[str]
    wrapper: str
    archives: list[str]
    headers: list[str]


# A file in a layer's folder: the C++ standard of its kernels, "20".
STANDARD = "cxx_standard"
# Another: caffe_cuda_macro.h comes before all else, and no macro of the user's before it. It is precompiled, too.
MACROS_FIRST = "macros_first"


def _standard(folder: Folder) -> str:
    """The C++ standard that a folder asks for; "" if it asks for none."""
    if STANDARD not in folder.others:
        return ""
    asked = read(os.path.join(folder.path, STANDARD)).strip()
    return asked if asked in ("20", "23") else ""


class Native:
    """Native layers: .cu files, and a header that declares their C functions."""

    name = "native"
    # Names of files that count besides sources and headers, as suffixes, in the layer's folder itself.
    suffixes: tuple[str, ...] = (STANDARD, MACROS_FIRST)
    # Recipes: makefiles, from the toolkit's folder.
    recipes: tuple[str, ...] = ()
    # Programs that write code, by the variable of make that lists them: patterns of files.
    writers: ClassVar[dict[str, tuple[str, ...]]] = {}
    # Files that make writes to a layer's folder besides libraries; folders in BUILD that have a subfolder `made`.
    made: tuple[str, ...] = ()
    made_in_build: tuple[str, ...] = ()
    # The target that tests a layer without cases.py; "" if none does.
    tests: str = ""

    # ----------------------------------------------------------------------------------------- a folder

    def is_of(self, folder: Folder, texts: dict[str, bytes]) -> bool:
        """Is the folder, with these texts of its files, of this kind?"""
        return True

    def examine(self, folder: Folder, texts: dict[str, bytes]) -> None:
        """Note facts about the folder of this kind."""
        folder.sources = [f for f in folder.sources if f.endswith(".cu") and "/" not in f]
        folder.note_beside("plain_loops", f"{folder.name}_ffi.cpp")
        folder.note_others(texts)

    def files(self, folder: Folder) -> list[str]:
        """The files whose names make must be able to work with."""
        return folder.sources

    # ------------------------------------------------------------------------------------- a layer's rules

    def ready(self, rules: Rules, folder: Folder, build: str) -> list[str]:
        """Add the rules of what all objects of the layer need first. Returns it; the list of its files is the first."""
        header = os.path.join(folder.path, f"{folder.name}.h")  # below the toolkit's folder, or absolute
        rules.files[f"{build}/declarations.h"] = f'extern "C" {{\n#include "{header}"\n}}\n'
        # If this changes, all objects do.
        rules.files[f"{build}/device_code"] = "linked\n" if folder.needs_others else "alone\n"
        return [rules.listed(folder, build), f"{build}/declarations.h", f"{build}/device_code"]

    def link_inputs(
        self, rules: Rules, folder: Folder, backend: str, build: str, ready: list[str]
    ) -> LinkInputs:
        """Add the rules of one backend's objects. Returns what the library is linked from."""
        place, objects = f"{build}/{backend}", []
        with_macros = MACROS_FIRST in folder.others
        headers = rules.cuda_headers(backend, with_macros)
        needs = [*headers, f"{rules.settings.build}/{backend}.flags", *ready]
        flags = f"$({backend}_{'MACROS' if with_macros else 'CUDA'}) $(call native,{folder.path},{build})"
        standard = _standard(folder)
        linked = folder.needs_others and BACKENDS[backend].links_devices
        flags += f" $({backend}_PARTS)" * linked
        gpus = f",$({backend}_EACH)" * folder.asks_arch
        flags += gpus
        for source in folder.sources:
            path, what = rules.rewritten(folder, source, backend, place), f"{folder.name}/{source}"
            objects.append(
                rules.compiled(f"{backend}_native", what, path, f"{place}/{source}.o", needs, flags)
            )
            if standard:
                rules.lines.append(f"{objects[-1]}: STANDARD := {standard}")
        if linked:
            rules.rule(f"{place}/devices.o", objects, f"$(call {backend}_linked,{folder.name}{gpus})")
            objects = [*objects, f"{place}/devices.o"]
        header, wrapper = f"{folder.path}/{folder.name}.h", f"{place}/_{backend}.o"
        own = [f"{folder.path}/{file}" for file in folder.beside if file.endswith("_ffi.cpp")]
        rules.wrapper(folder.name, backend, header, wrapper, own=[*own, ready[0]])
        return LinkInputs([*objects, *rules.host_runtime(backend)], wrapper, [], [header])

    def more(self, rules: Rules, folder: Folder, build: str) -> None:
        """Add rules of other files that make writes for the layer."""

    def rewriting(self, folder: Folder, tool: str) -> tuple[str, str]:
        """The module that rewrites the layer's .cu files as `tool` does, with options; its variable in `writers`."""
        return f"tools.cuda.{tool}", "REWRITERS"

    # ---------------------------------------------------------------------------------- the kind's own objects

    def for_python(self, rules: Rules) -> list[str]:
        """Add the rules of files that Python reads, which are made once for all layers. Returns the files."""
        return []

    def core(self, rules: Rules) -> list[str]:
        """Add the rules of objects that all layers of this kind share. Returns all of them."""
        return []

    def needed(self, rules: Rules, folders: list[Folder]) -> list[str]:
        """Those of these objects that the layers need."""
        return []

    # ------------------------------------------------------------------------------------------- messages

    def lacks(self, folder: Folder) -> str:
        """Why the layer cannot be built, if no compiler said so; "" if this is not known."""
        header = os.path.join(folder.path, f"{folder.name}.h")
        return "" if os.path.exists(header) else f"{header}, which declares the C functions, is missing"

    def advice(self, folder: Folder, logs: list[str]) -> list[str]:
        """Lines for the report: what to do about the errors in these logs."""
        return []

    # --------------------------------------------------------------------------------------------- programs

    def targets(self) -> dict[str, Callable[[Settings], int]]:
        """Targets of make for a layer of this kind. They take LAYER, and the first folder that has it."""
        return {}

    def run_without_cases(self, package: str, name: str, dtype: torch.dtype, device: str) -> int:
        """Run a layer that has no cases.py on inputs that are guessed. Returns the number of runs."""
        return 0


@functools.cache
def kinds() -> tuple[Native, ...]:
    """All kinds. A folder is of the first one that says so; the native one is the last."""
    found = sorted(glob.glob(os.path.join(PACKAGE, "*", "make", "kind.py"), root_dir=ROOT))
    modules = (f"cuffi.{path.split(os.sep)[-3]}.make.kind" for path in found)
    return (*(importlib.import_module(module).Kind() for module in modules), Native())


def kind_of(name: str) -> Native:
    return next(kind for kind in kinds() if kind.name == name)
