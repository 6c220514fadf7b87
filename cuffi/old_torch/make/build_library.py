"""Build the libraries of one extension of torch.utils.ffi: write the rules, and run make on them.

The job is a JSON file of cuffi/old_torch/ffi/build_extension.py:

    name, place     the extension's name, and the folder for its libraries
    copies, above   the folder of the copied sources, and the user's folder that they are copies of
    sources, headers, local, kernels
                    copied files: C and C++, the declarations, other files that these include, and .cu files, each
                    {"source", "flags"}
    flags           -I and -D for all
    objects, link   further files to link with, and options
    with_cuda       are there tensors on a GPU? Without, there is one library, for the processor
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

from tools.files import write
from tools.make import folders, requirements
from tools.make.backends import BACKENDS, HOST
from tools.make.build import locked, making_core, run_make, used
from tools.make.makefile import Rules, path_of
from tools.make.package import PACKAGE
from tools.make.settings import Settings

from ..edge_files import FILES

CPP = (".cpp", ".cc", ".cxx")
# As tools/make/report.py says it.
NO_HOST = "No host library: "


def escaped(words: list[str]) -> str:
    """Words for a recipe of make."""
    return " ".join(shlex.quote(word).replace("$", "$$").replace(",", "$(comma)") for word in words)


def through_nvcc(words: list[str]) -> list[str]:
    """Options for the C++ compiler, as nvcc passes them on: it splits at commas, and starts that by a shell."""

    def quoted(word: str) -> str:
        return shlex.quote(word).replace(",", "\\,")

    made = []
    given = iter(words)
    for word in given:
        if word == "-iquote":
            made += ["-Xcompiler", f"-iquote,{quoted(next(given))}"]
        elif word.startswith("-f") and not word.startswith(("-fmad=", "-ftz=")):  # these are nvcc's own
            made += ["-Xcompiler", quoted(word)]
        else:
            made.append(word)
    return made


class LibraryRules(Rules):
    """The rules of one extension."""

    def __init__(self, settings: Settings, path: str):
        super().__init__(settings)
        self.path, self.job = path, json.loads(Path(path).read_text())
        self.makefile = f"{settings.build}/ffi.mk"
        self.made: list[str] = []  # the backends
        self.core: list[str] = []  # files that other extensions share

    def flags(self, source: str, own: list[str]) -> list[str]:
        words = ["-iquote", os.path.dirname(source), *own, *self.job["flags"]]
        return [*words, f"-ffile-prefix-map={self.job['copies']}={self.job['above']}"]

    def objects(self, backend: str, place: str) -> list[str]:
        made = []
        for source in self.job["sources"]:
            recipe = "ffi_cpp" if source.endswith(CPP) else "ffi_c"
            made.append(self._object(recipe, source, source, backend, place, [], self._declarations()))
        for kernel in self.job["kernels"]:
            source = folders.check_path(kernel["source"], "EXT")
            rewritten = f"{place}/{os.path.relpath(source, self.job['copies'])}{BACKENDS[backend].rewritten}"
            word, tool = ("HOST", "to_host") if BACKENDS[backend].on_host else ("LOOPS", "for_nvcc")
            self.rule(
                rewritten,
                [source, "$(REWRITERS)"],
                f"$(call rewrite,{word},{self._what(source)},tools.cuda.{tool})",
            )
            self.may_be_plain(rewritten, source, f"tools.cuda.{tool}", backend)
            made.append(self._object("ffi_kernel", source, rewritten, backend, place, kernel["flags"]))
        return made

    def _what(self, source: str) -> str:
        return f"{self.job['name']}/{os.path.basename(source)}"

    def _declarations(self) -> str:
        """Includes of the declarations that the headers have."""
        first = "THC/THC.h" if self.job["with_cuda"] else "TH/TH.h"
        return "," + " ".join(f"-include {h}" for h in (first, *self.job["headers"]))

    def _object(
        self, recipe, source: str, path: str, backend: str, place: str, own: list[str], more="", needs=()
    ) -> str:
        made = f"{place}/{os.path.relpath(source, self.job['copies'])}.o"
        folders.check_path(path, "EXT")
        # Rewritten headers lie beside the rewritten file.
        own = [*(["-iquote", os.path.dirname(path)] if path != source else []), *own]
        words = self.flags(source, own)
        if recipe.endswith("_kernel") and not BACKENDS[backend].on_host:
            words = through_nvcc(words)
        return self.compiled(
            f"{recipe},{backend}", self._what(source), path, made, [*needs], escaped(words) + more
        )

    def extension(self, backend: str) -> str:
        name, job = self.job["name"], self.job
        place = f"{self.settings.build}/{name}/{backend}"
        module = f"_{name}_{backend}"
        output, wrapper, archive = (
            f"{job['place']}/{module}.abi3.so",
            f"{place}/{module}.o",
            f"{place}/lib{name}.a",
        )
        objects = self.objects(backend, place) + self.host_runtime(backend)
        self.rule(archive, objects, "$(archive)")
        self.wrapper_rule(wrapper, module, backend)
        shared = [o for o in job["objects"] if ".so" in os.path.basename(o)]
        link = [*shared, *(f"-Wl,-rpath,{os.path.dirname(o)}" for o in shared), *job["link"]]
        options = " ".join(map(shlex.quote, link)).replace("$", "$$")
        self.lines.append(f"{output}: {backend}_LINK += {options}")
        self.rule(
            output,
            [wrapper, archive, *(o for o in job["objects"] if o not in shared)],
            f"$(call link,{name},{backend})",
        )
        self.depfiles.append(f"{place}/_")  # a folder for the objects
        return output

    def wrapper_rule(self, wrapper: str, module: str, backend: str) -> None:
        """Add the rule of the object with the PyInit function."""
        self.rule(wrapper, [self.path, *map(path_of, FILES)], f"$(call ffi_wrapper,{module},{backend})")

    def written(self) -> str:
        backends = [b for b in self.settings.backends if self.job["with_cuda"] or BACKENDS[b].on_host]
        if any(BACKENDS[b].on_host for b in backends):
            self.runtime()
            self.core += self.host_runtime(HOST.name)
        made = {backend: self.extension(backend) for backend in backends}
        head = [*self.settings.make_variables(), "WITHOUT_KERNELS := $(BUILD)/none"]
        head += [f"CORE_{backend} := {self.settings.core_of(backend)}" for backend in self.settings.backends]
        head += [f"{name} := {' '.join(files)}" for name, files in self.writers.items()]
        head += ["include mk/rules.mk", *(f"include mk/{b}.mk" for b in self.settings.backends)]
        tail = [
            f"core: {' '.join(self.core)}",
            f".PHONY: {' '.join(made)}",
            *(f"{backend}: {output}" for backend, output in made.items()),
        ]
        self.made = list(made)
        head.append(f"include {PACKAGE}/old_torch/make/ffi.mk")
        return "\n".join([*head, *self.lines, *tail, f"-include {' '.join(self.depfiles)}", ""])


def build(settings: Settings, path: str, kind: type[LibraryRules] | None = None) -> int:
    """Build the libraries of the job that a file describes. The exit status is make's."""
    os.makedirs(settings.build, exist_ok=True)
    requirements.need(["build"], f"{settings.build}/packages.build")
    rules = (kind or LibraryRules)(settings, path)
    write(rules.makefile, os.fsencode(rules.written()))
    places = {settings.temporary, *rules.places(), *map(settings.core_of, settings.backends)}
    for place in [*places, f"{settings.build}/none"]:
        os.makedirs(os.path.join(settings.root, place), exist_ok=True)
    core = f"{settings.core}/lock"
    with locked(used(core), shared=True):
        if not run_make(rules, "core", quiet=True):
            return _told(rules, {backend: run_make(rules, backend) for backend in rules.made})
    with making_core(rules, core, rules.core):
        run_make(rules, "core")  # an error of these shows again below
    with locked(used(core), shared=True):
        return _told(rules, {backend: run_make(rules, backend) for backend in rules.made})


def _told(rules: LibraryRules, status: dict[str, int]) -> int:
    """The exit status. A host's library that is missing beside the GPU's is told, and is no error."""
    failed = [backend for backend in rules.made if status[backend]]
    if failed == [HOST.name] != rules.made:
        print(f"{NO_HOST}{rules.job['name']}: its files need a GPU; the reasons are above")
        return 0
    return max(status.values())
