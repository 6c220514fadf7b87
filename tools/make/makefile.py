"""Write BUILD/layers.mk: for each layer and backend its objects, their prerequisites and recipes.

One set of rules serves all kinds of folders (kinds.py). The recipes are in mk/: <backend>_native compiles a .cu, and
`rewrite` runs before it. A wing's kind has recipes of its own. All names were checked (tools/make/folders.py), so
nothing needs quotes.
"""

from __future__ import annotations

import glob
import os
import time

from . import requirements
from .backends import BACKENDS, HOST, edge
from .folders import Folder
from .kinds import MACROS_FIRST, kinds
from .package import PACKAGE, ROOT
from .settings import full
from .stale import Files, Inputs

# The extension that makes calls, one for all layers.
CALL = f"{PACKAGE}/runtime/_call.abi3.so"
# The record of these (stale.py) is in the toolkit's own folder, whatever BUILD and CORE are.
TOOLKITS = "build"
# The programs that write code, by the variable of make that lists them.
WRITERS = {
    "REWRITERS": ("tools/*.py", "tools/cuda/*.py"),
    "WRAPPERS": (
        "build_ffi.py",
        "tools/make/declarations.py",
        "tools/make/backends.py",
        "tools/make/python_abi.py",
    ),
}


class Rules:
    """The text of a makefile, and the files that it needs."""

    def __init__(self, settings):
        self.settings, self.lines, self.files = settings, [], {}
        self.libraries: dict[tuple[str, str], str] = {}  # (layer, backend) -> path
        self.depfiles: list[str] = []
        self.again: dict[str, str] = {}  # rewritten for the host -> AGAIN of mk/rules.mk
        self.lists: dict[str, str] = {}  # a folder's path -> the list of its files
        self.needed: list[str] = []  # the toolkit's own objects that these layers need
        self.edge = os.path.relpath(str(edge.__file__), settings.root)
        programs = [WRITERS, *(kind.writers for kind in kinds())]
        self.writers = {name: files_of(of) for own in programs for name, of in own.items()}
        self.started = time.time_ns()
        files = Files(self.started)
        self.core_inputs = Inputs(files, self.shared, self.is_generated)
        self.layer_inputs = Inputs(files, self.shared, self.is_generated)
        # Of the rules that are added now; "" if they serve all backends, None if they serve all compilers, too.
        self.backend: str | None = ""
        self.inputs = self.core_inputs

    def rule(self, targets: str, needs: list[str], recipe: str = "+@:", place: str = ""):
        """Add a rule. Without a recipe, the needs' recipes write the targets if they change.

        Without the +, make -q would take the file for changed.

        Args:
            place: the folder whose record has the targets' inputs, if not the targets' own.
        """
        self.lines.append(f"{targets}: {' '.join(needs)}\n\t{recipe}")
        read = [file for need in needs for file in self.writers.get(need.strip("$()"), [need])]
        for target in targets.split():
            self.inputs.add(target, read, place, self.backend)

    def shared(self, backend: str | None) -> list[str]:
        """The files on which all outputs for a backend depend: recipes, compilers, packages that write code.

        None is for outputs that builds with different compilers share. So no compiler is among the files.
        """
        recipes = ["mk/rules.mk", *[f"mk/{backend}.mk"] * bool(backend)]
        recipes += [file for kind in kinds() for file in kind.recipes]
        compilers = [] if backend is None else self.settings.compiler_files(backend)
        return [*recipes, *compilers, *requirements.writers()]

    def is_generated(self, path: str) -> bool:
        """Does make write this file to BUILD or CORE?"""
        made = (self.settings.build, self.settings.core)
        return path.startswith(tuple(f"{place}/" for own in made for place in (own, full(own))))

    def told(self, target: str):
        """Note that the target's recipe writes a depfile."""
        self.depfiles.append(f"{target}.d")
        self.inputs.told(target)

    def places(self) -> set[str]:
        """The folders in which make writes."""
        return {os.path.dirname(path) for path in [*self.depfiles, *self.files]}

    def compiled(self, recipe: str, what: str, source: str, made: str, needs: list[str], flags: str) -> str:
        """Add the rule that compiles a source into the object `made`. Returns the object.

        Args:
            recipe: its name in mk/, and the backend if it is for all of them.
            what: the source's name in what make prints.
            needs: what the object depends on besides the source.
        """
        self.rule(made, [source, *needs], f"$(call {recipe},{what},{flags})")
        self.told(made)
        if source in self.again:
            self.lines.append(f"{made}: private AGAIN := {self.again[source]}")
        return made

    def rewritten(self, folder: Folder, source: str, backend: str, place: str) -> str:
        """Add the rule that rewrites a .cu for the backend's compiler. Returns the rewritten file."""
        made = f"{place}/{source}{BACKENDS[backend].rewritten}"
        beside = [f"{folder.path}/{file}" for file in folder.beside if file == "plain_loops"]
        word, tool = ("HOST", "to_host") if BACKENDS[backend].on_host else ("LOOPS", "for_nvcc")
        module, writers = folder.kind.rewriting(folder, tool)
        self.rule(
            made,
            [f"{folder.path}/{source}", f"$({writers})", *beside, self.lists[folder.path]],
            f"$(call rewrite,{word},{folder.name}/{source},{module})",
        )
        self.told(made)
        self.may_be_plain(made, f"{folder.path}/{source}", module, backend)
        return made

    def may_be_plain(self, made: str, source: str, module: str, backend: str) -> None:
        """Note how the host's text of a source is written once more, without loops, if it does not compile."""
        if BACKENDS[backend].on_host:
            self.again[made] = f"{module} {source}"

    # ----------------------------------------------------------------------------------- parts of a folder

    def listed(self, folder: Folder, build: str) -> str:
        """Add the list of a folder's files. All outputs of the folder depend on it.

        A new file may hide another file of its name, and a removed file leaves nothing newer behind.
        """
        names = [*folder.sources, *folder.headers, *folder.others, *folder.beside]
        self.lists[folder.path] = f"{build}/files"
        self.files[self.lists[folder.path]] = "".join(f"{name}\n" for name in names)
        return self.lists[folder.path]

    def archive(self, path: str, objects: list[str], listed: str):
        self.rule(path, [listed, *objects], "$(archive)")

    # --------------------------------------------------------------------------------------------- folders

    def wrappers_headers(self):
        """Add the rules of the headers that all wrappers include, precompiled."""
        for backend in self.settings.backends:
            self.backend, gch = backend, self.wrappers_std(backend)
            needs = ["src/edge/ffi_std.hpp", "$(WRAPPERS)", f"{os.path.dirname(gch)}/flags"]
            self.rule(gch, needs, "$(wrappers_std)")
            self.told(gch)

    def precompile(self, header: str, place: str, flags: str, known: str = "flags"):
        """Add the rule of a precompiled header in `place`, beside a copy of the header.

        Args:
            flags: the variable of make that has them.
            known: the file in `place` that tells when they change.
        """
        gch = f"{place}/{os.path.basename(header)}.gch"
        self.rule(
            gch, [header, f"{place}/{known}"],
            f"$(Q)cp $< $(@D) && $(call compile,$(CXX) $({flags}) -x c++-header)",
        )  # fmt: skip
        self.told(gch)

    def host_runtime(self, backend: str) -> list[str]:
        return [f"{self.settings.core_of(backend)}/host_launch.o"] if BACKENDS[backend].on_host else []

    def cuda_headers(self, backend: str, with_macros: bool) -> list[str]:
        """The precompiled headers that a native layer's objects include first: of CUDA's names, or of our macros."""
        name = "caffe_cuda_macro.h" if with_macros else "cuda_runtime.h"
        return [f"{self.settings.core_of(backend)}/{name}.gch"] if BACKENDS[backend].on_host else []

    def runtime(self):
        self.backend, place = HOST.name, self.settings.core_of(HOST.name)
        for header in ("include/host/cuda_runtime.h", "include/caffe_cuda_macro.h"):
            self.precompile(header, place, "host_FLAGS")
        self.compiled(
            "host_native", "host_launch.cpp", "src/host/host_launch.cpp", f"{place}/host_launch.o", [f"{place}/flags"],
            ",$(host_LAUNCH)",
        )  # fmt: skip

    def wrapper(self, name: str, backend: str, header: str, output: str, *, flags: str = "", own=()):
        """Add the rule of the Python wrapper of a header's functions. `own`: more files that it is made from."""
        needs = [
            header,
            *own,
            *map(path_of, edge.EVERY),
            self.edge,
            "$(WRAPPERS)",
            self.wrappers_std(backend),
        ]
        self.rule(output, needs, f"$(call wrapper,{name},{backend},{flags})")
        self.told(output)

    def wrappers_std(self, backend: str) -> str:
        """The headers that all wrappers include, precompiled."""
        return f"{self.settings.core_of(backend, of_kernels=False)}/ffi_std.hpp.gch"

    def layer(self, folder: Folder):
        self.backend, build = "", f"{self.settings.build}/{folder.name}"
        for backend in self.settings.backends:
            self.libraries[folder.name, backend] = f"{folder.path}/{BACKENDS[backend].library}"
        if folder.refused:
            self.files[f"{build}/refused"] = "\n".join(folder.refused) + "\n"
            targets = " ".join(self.libraries[folder.name, backend] for backend in self.settings.backends)
            self.rule(targets, [f"{build}/refused"], "@sed 's/^/  FAIL  /' $<; exit 1", build)
            return
        ready = folder.kind.ready(self, folder, build)
        for backend in self.settings.backends:
            self.library(folder, backend, build, ready)
        folder.kind.more(self, folder, build)

    def library(self, folder: Folder, backend: str, build: str, ready: list[str]):
        """Add a layer's library for one backend: objects -> archive -> extension, with the Python wrapper."""
        self.backend, place = backend, f"{build}/{backend}"
        archive = f"{place}/lib{folder.name}.a"
        parts = folder.kind.link_inputs(self, folder, backend, build, ready)
        self.archive(archive, parts.objects, ready[0])
        needs = [parts.wrapper, archive, *parts.archives, *parts.headers]
        needs += ["tools/make/link.py", "tools/make/metadata.py"]
        library = self.libraries[folder.name, backend]
        self.rule(library, needs, f"$(call link,{folder.name},{backend})", place)
        self.inputs.goes_with(place, library)
        if build in self.inputs.records:  # files that all its libraries share
            self.inputs.records[build].libraries.append(library)

    # ------------------------------------------------------------------------------------------------ text

    def text(self, folders: list[Folder]) -> str:
        if HOST.name in self.settings.backends:
            self.runtime()
        self.backend, own = None, self.settings.makes_toolkit
        call = [CALL] * own
        for_python = [file for kind in kinds() for file in kind.for_python(self)] if own else []
        if own:
            self.rule(
                CALL,
                [*map(path_of, edge.call_files()), self.edge, "tools/make/build_call.py", "$(WRAPPERS)"],
                "$(runner)",
                TOOLKITS,
            )
        whole = [target for kind in kinds() for target in kind.core(self)]
        self.wrappers_headers()
        self.inputs = self.layer_inputs
        for folder in folders:
            self.lines.append(f"\n# {folder.name}")
            self.layer(folder)
        wanted = " ".join([*for_python, *self.libraries.values()])
        backends = self.settings.backends
        with_macros = sorted({MACROS_FIRST in folder.others for folder in folders} or {False})
        self.needed = [
            *for_python,
            *call,
            *(target for kind in kinds() for target in kind.needed(self, folders)),
            *map(self.wrappers_std, backends),
            *self.host_runtime(backends[0]),
            *(header for macros in with_macros for header in self.cuda_headers(backends[0], macros)),
        ]
        head = ["# Written by tools/make/makefile.py; do not edit.", *self.settings.make_variables()]
        head += [f"CORE_{backend} := {self.settings.core_of(backend)}" for backend in backends]
        head += [f"WITHOUT_KERNELS := {self.settings.core_of(HOST.name, of_kernels=False)}"]
        head += [f"{name} := {' '.join(files)}" for name, files in self.writers.items()]
        head += ["include mk/rules.mk", *(f"include mk/{backend}.mk" for backend in backends)]
        head += [f"include {file}" for kind in kinds() for file in kind.recipes]
        tail = [
            f"\nlibraries: {' '.join(call)} {wanted}\n\t@:",
            f"core: {' '.join(self.needed)}",
            f"whole_core: {' '.join(for_python)} {' '.join(sorted(whole))}",
        ]
        tail.append(f"-include {' '.join(self.depfiles)}")
        return "\n".join(head + self.lines + tail) + "\n"


def path_of(file: str) -> str:
    """A file of edge.py's lists, from the toolkit's folder."""
    return f"{PACKAGE}/{file.removeprefix('cuffi/')}" if file.startswith("cuffi/") else file


def files_of(patterns: tuple[str, ...]) -> list[str]:
    """The toolkit's files that match, below its folder."""
    return sorted(path for pattern in patterns for path in glob.glob(pattern, root_dir=ROOT))
