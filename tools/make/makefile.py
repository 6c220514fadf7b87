"""Write BUILD/layers.mk: for each layer and backend its objects, their prerequisites and recipes.

One set of rules serves native layers, Caffe layers and the Caffe core. The recipes are in mk/: <backend>_native and
<backend>_kernel compile a native layer's .cu and a Caffe layer's .cu, `rewrite` runs before them, and `plain` compiles
a .cpp. All names were checked (tools/make/folders.py), so nothing needs quotes.
"""

from __future__ import annotations

import glob
import os
import re
import time

from . import requirements
from .backends import BACKENDS, HOST, edge
from .folders import HEADERS, SOURCES, Folder
from .package import PACKAGE, ROOT
from .settings import full
from .stale import Files, Inputs

CORE_SOURCES = f"{PACKAGE}/caffe_layers/core"
STOCK_PROTO = f"{CORE_SOURCES}/proto/caffe.proto"
# The extension that makes calls, one for all layers.
CALL = f"{PACKAGE}/runtime/_call.abi3.so"
# The record of these (stale.py) is in the toolkit's own folder, whatever BUILD and CORE are.
TOOLKITS = "build"
# The core's own layers and its Net. Only layers that own sub-layers need them.
STOCK = re.compile(
    r"layers/(?!loss_layer\.|neuron_layer\.)|net\.cpp|stock_layers\.cpp|util/insert_splits\.cpp"
)
# The core's files without loops over elements. They are compiled with less optimisation, in half the time.
BOOKKEEPING = re.compile(r"(?!util/|layers/(pooling|softmax)\w*\.).*\.cpp")
# Files of which a folder may have its own version. They are separate objects, so that the linker can leave them out.
REPLACEABLE = re.compile(r"util/|io\.cpp")
# For forks' files, which were written for the less strict compilers of 2014.
OLD = "-w -fpermissive"
# The programs that write code, by the variable of make that lists them.
WRITERS = {
    "REWRITERS": ("tools/*.py", "tools/cuda/*.py"),
    "MESSAGES": ("tools/*.py", f"{PACKAGE}/caffe_layers/make/proto*.py"),
    "PREPARERS": ("tools/*.py", "tools/cuda/*.py", f"{PACKAGE}/caffe_layers/make/*.py"),
    "WRAPPERS": ("build_ffi.py", "tools/make/backends.py", "tools/make/python_abi.py"),
}


class Rules:
    """The text of a makefile, and the files that it needs."""

    def __init__(self, settings):
        self.settings, self.lines, self.files = settings, [], {}
        self.libraries: dict[tuple[str, str], str] = {}  # (layer, backend) -> path
        self.depfiles: list[str] = []
        self.lists: dict[str, str] = {}  # a folder's path -> the list of its files
        self.edge = os.path.relpath(edge.__file__, settings.root)
        self.writers = {name: files_of(patterns) for name, patterns in WRITERS.items()}
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
        return made

    def rewritten(self, folder: Folder, source: str, backend: str, place: str) -> str:
        """Add the rule that rewrites a .cu for the backend's compiler. Returns the rewritten file."""
        made = f"{place}/{source}{BACKENDS[backend].rewritten}"
        beside = [f"{folder.path}/{file}" for file in folder.beside if file == "plain_loops"]
        option = f"--caffe {folder.path}" if folder.is_caffe else ""
        word, tool = ("HOST", "to_host") if BACKENDS[backend].on_host else ("LOOPS", "for_nvcc")
        self.rule(
            made,
            [f"{folder.path}/{source}", "$(REWRITERS)", *beside, self.lists[folder.path]],
            f"$(call rewrite,{word},{folder.name}/{source},{tool},{option})",
        )
        self.told(made)
        return made

    # ----------------------------------------------------------------------------------- parts of a folder

    def native_objects(self, folder: Folder, backend: str, build: str, ready: list[str]) -> list[str]:
        """Add the rules of a native layer's objects. Returns the objects."""
        place, objects = f"{build}/{backend}", []
        needs = [*self.cuda_headers(backend), f"{self.settings.build}/{backend}.flags", *ready]
        flags = f"$({backend}_CUDA) $(call native,{folder.path},{build})"
        flags += f",$({backend}_EACH)" * folder.asks_arch
        for source in folder.sources:
            path = self.rewritten(folder, source, backend, place)
            what = f"{folder.name}/{source}"
            objects.append(
                self.compiled(f"{backend}_native", what, path, f"{place}/{source}.o", needs, flags)
            )
        return objects

    def caffe_object(
        self, folder: Folder, source: str, backend: str, place: str, needs: list[str], flags: str
    ) -> str:
        """Add the rules of the object in `place` of one file of a Caffe layer or of the core. Returns the object."""
        path, recipe = f"{folder.path}/{source}", f"plain,{backend}"
        if source.endswith(".cu"):
            path, recipe = self.rewritten(folder, source, backend, place), f"{backend}_kernel"
            # Rewritten headers first. A .cpp sees only the fork's own: `#pragma once` misses a copy.
            flags = f"$(call own,{place}) {flags}"
        return self.compiled(recipe, f"{folder.name}/{source}", path, f"{place}/{source}.o", needs, flags)

    def caffe_objects(self, folder: Folder, backend: str, build: str, ready: list[str]) -> list[str]:
        """Add the rules of a Caffe layer's objects. Returns the objects."""
        place, registration = f"{build}/{backend}", "registration.cpp"
        header = f"{self.settings.core_of(backend)}/std.hpp.gch"
        needs = [header, f"{self.settings.build}/{backend}.caffe.flags", *ready]
        flags = f"$(call caffe,{folder.path},{build}) {OLD}"
        objects = [
            self.caffe_object(folder, source, backend, place, needs, flags) for source in folder.sources
        ]
        registers = self.compiled(
            f"plain,{backend}", f"{folder.name}/{registration}", f"{build}/{registration}",
            f"{place}/{registration}.o", needs, flags,
        )  # fmt: skip
        return [*objects, registers]

    def core_objects(self, folder: Folder, backend: str, ready: list[str]) -> tuple[list[str], list[str]]:
        """Add the rules of the core's objects. Returns those that every Caffe layer needs, and the stock layers'."""
        base, stock = [], []
        for unit, parts in units(folder).items():
            place = self.settings.core_of(backend, of_kernels=unit.endswith(".cu"))
            needs = [f"{place}/std.hpp.gch", f"{place}/flags", *ready]
            flags = f"$(call caffe,{folder.path},{self.settings.core}) -DCAFFE_CORE=1"
            flags += ",-O1" * bool(BOOKKEEPING.match(parts[0]))
            if parts == [unit]:
                made = self.caffe_object(folder, unit, backend, place, needs, flags)
            else:
                path = f"{place}/{unit}"
                self.files[path] = "".join(f'#include "{folder.path}/{part}"\n' for part in parts)
                flags = f"-iquote . {flags}"
                made = self.compiled(
                    f"plain,{backend}", f"{folder.name}/{unit}", path, f"{path}.o", needs, flags
                )
            (stock if STOCK.match(parts[0]) else base).append(made)
        return base, stock

    def prepared(self, folder: Folder, build: str) -> list[str]:
        """Add the rules of a Caffe folder's messages and forwarding headers, which its objects need first."""
        core, listed = folder.path == CORE_SOURCES, self.listed(folder, build)
        protos = [f"{folder.path}/{proto}" for proto in folder.protos]
        descriptor = f"{folder.path}/_caffe.desc"
        where = "" if core else f"--layer-dir {folder.path} --descriptor {descriptor} "
        # It is beside the layer's files, so a user may remove it while the stamp stays.
        gone = not core and not os.path.exists(os.path.join(self.settings.root, descriptor))
        if gone:
            self.rule(descriptor, [], "@:", place=build)
        self.rule(
            f"{build}/proto.stamp",
            [*protos, listed, STOCK_PROTO, "$(MESSAGES)", *[descriptor] * gone],
            f"$(call messages,{folder.name},{where}--include-dir {build}/include)",
        )  # fmt: skip
        self.rule(f"{build}/include/caffe/proto/caffe.pb.h", [f"{build}/proto.stamp"])
        beside = [file for file in folder.beside if file == "overwrites"]
        used = [f"{folder.path}/{file}" for file in folder.sources + folder.headers + beside]
        # `forwarded` lists the forwarding headers. If the list changes, any object may include another header.
        self.rule(
            f"{build}/forward.stamp",
            [*used, listed, "$(PREPARERS)"],
            f"$(call headers,{folder.name},{folder.path},{build})",
        )
        self.rule(f"{build}/forwarded {build}/registration.cpp", [f"{build}/forward.stamp"])
        return [listed, f"{build}/forwarded", f"{build}/include/caffe/proto/caffe.pb.h"]

    def listed(self, folder: Folder, build: str) -> str:
        """Add the list of a folder's files. All outputs of the folder depend on it.

        A new file may hide another file of its name, and a removed file leaves nothing newer behind.
        """
        names = [*folder.sources, *folder.headers, *folder.protos, *folder.beside]
        self.lists[folder.path] = f"{build}/files"
        self.files[self.lists[folder.path]] = "".join(f"{name}\n" for name in names)
        return self.lists[folder.path]

    def archive(self, path: str, objects: list[str], listed: str):
        self.rule(path, [listed, *objects], "$(archive)")

    # --------------------------------------------------------------------------------------------- folders

    def core(self, folder: Folder):
        """Add the Caffe core: archives for the libraries, and the Python wrapper of its C ABI."""
        self.backend, build = "", self.settings.core
        ready = self.prepared(folder, build)
        for backend in self.settings.backends:
            self.backend, place = backend, self.settings.core_of(backend)
            base, stock = self.core_objects(folder, backend, ready)
            self.archive(f"{place}/libstock.a", stock, ready[0])
            self.archive(f"{place}/libcaffe.a", base + self.host_runtime(backend), ready[0])
            header, output = f"{folder.path}/caffe_layer.h", self.core_wrapper(backend)
            self.wrapper(
                "caffe",
                backend,
                header,
                output,
                flags="$(UNSHARED)",
                own=edge_of("caffe_layers"),
            )
            for each in sorted({place, self.settings.core_of(backend, of_kernels=False)}):
                self.precompile(f"{folder.path}/std.hpp", each, f"{backend}_PLAIN")
            gch = self.wrappers_std(backend)
            self.rule(
                gch,
                ["src/edge/ffi_std.hpp", "$(WRAPPERS)", f"{os.path.dirname(gch)}/flags"],
                "$(wrappers_std)",
            )
            self.told(gch)

    def precompile(self, header: str, place: str, flags: str):
        """Add the rule of a precompiled header in `place`, beside a copy of the header."""
        gch = f"{place}/{os.path.basename(header)}.gch"
        self.rule(
            gch, [header, f"{place}/flags"],
            f"$(Q)cp $< $(@D) && $(call compile,$(CXX) $({flags}) -x c++-header)",
        )  # fmt: skip
        self.told(gch)

    def core_wrapper(self, backend: str) -> str:
        """Python's side of the core's C ABI."""
        return f"{self.settings.core_of(backend, of_kernels=False)}/_{backend}.o"

    def core_archives(self, folder: Folder, backend: str) -> list[str]:
        """The archives of the core with which a layer is linked."""
        of = ["libstock.a"] * folder.uses_stock + ["libcaffe.a"] * folder.is_caffe
        return [f"{self.settings.core_of(backend)}/{archive}" for archive in of]

    def host_runtime(self, backend: str) -> list[str]:
        return [f"{self.settings.core_of(backend)}/host_launch.o"] if BACKENDS[backend].on_host else []

    def cuda_headers(self, backend: str) -> list[str]:
        return [f"{self.settings.core_of(backend)}/cuda_runtime.h.gch"] if BACKENDS[backend].on_host else []

    def runtime(self):
        self.backend, place = HOST.name, self.settings.core_of(HOST.name)
        self.precompile("include/host/cuda_runtime.h", place, "host_FLAGS")
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
        if folder.is_caffe:
            ready = self.prepared(folder, build)
        else:
            header = os.path.join(folder.path, f"{folder.name}.h")  # below the toolkit's folder, or absolute
            self.files[f"{build}/declarations.h"] = f'extern "C" {{\n#include "{header}"\n}}\n'
            ready = [self.listed(folder, build), f"{build}/declarations.h"]
        for backend in self.settings.backends:
            self.library(folder, backend, build, ready)
        if not folder.has_init and folder.is_caffe:
            init = f"{folder.path}/__init__.py"
            self.rule(init, [], f"$(Q)$(PYTHON) -m cuffi.caffe_layers.make.prepare init {folder.path}", build)
            self.lines.append(f"libraries: {init}")

    def library(self, folder: Folder, backend: str, build: str, ready: list[str]):
        """Add a layer's library for one backend: objects -> archive -> extension, with the Python wrapper."""
        self.backend, place = backend, f"{build}/{backend}"
        archive, wrapper, linked = f"{place}/lib{folder.name}.a", f"{place}/_{backend}.o", []
        if not folder.is_caffe:
            objects = self.native_objects(folder, backend, build, ready) + self.host_runtime(backend)
            own = [f"{folder.path}/{file}" for file in folder.beside if file.endswith("_ffi.cpp")]
            linked = [f"{folder.path}/{folder.name}.h"]
            self.wrapper(folder.name, backend, linked[0], wrapper, own=[*own, ready[0]])
        else:
            objects = self.caffe_objects(folder, backend, build, ready)
            if folder.has("caffe_test.h"):  # Caffe's tests have a C ABI of their own
                header = f"{folder.path}/caffe_test.h"
                self.wrapper(
                    folder.name,
                    backend,
                    header,
                    wrapper,
                    flags="$(UNSHARED)",
                    own=edge_of("caffe_layers"),
                )
            else:
                wrapper = self.core_wrapper(backend)
        self.archive(archive, objects, ready[0])
        needs = [wrapper, archive, *self.core_archives(folder, backend), *linked]
        needs += ["tools/make/link.py", "tools/make/metadata.py"]
        library = self.libraries[folder.name, backend]
        self.rule(library, needs, f"$(call link,{folder.name},{backend})", place)
        self.inputs.goes_with(place, library)
        if build in self.inputs.records:  # a Caffe layer's messages and headers
            self.inputs.records[build].libraries.append(library)

    def stock_messages(self) -> str:
        """Add stock Caffe's messages for Python, with which cuffi/nets/net reads nets."""
        made, place = f"{PACKAGE}/nets/net/_caffe.desc", f"{self.settings.core}/net"
        proto = f"$(PYTHON) -m cuffi.caffe_layers.make.proto --layer-dir $(@D) --descriptor $@ --include-dir {place}"
        self.rule(
            made,
            [STOCK_PROTO, f"{PACKAGE}/nets/net/known.proto", "$(MESSAGES)"],
            f"$(call step,PROTO,stock Caffe,{place}.log,{proto} && touch $@)",
            TOOLKITS,
        )
        return made

    # ------------------------------------------------------------------------------------------------ text

    def text(self, folders: list[Folder], core_sources: Folder) -> str:
        if HOST.name in self.settings.backends:
            self.runtime()
        # An installed toolkit, or another user's, has them already.
        self.backend, own = None, os.access(os.path.join(self.settings.root, os.path.dirname(CALL)), os.W_OK)
        call, messages = ([CALL], [self.stock_messages()]) if own else ([], [])
        if own:
            self.rule(
                CALL,
                [*map(path_of, edge.call_files()), self.edge, "tools/make/build_call.py", "$(WRAPPERS)"],
                "$(runner)",
                TOOLKITS,
            )
        self.core(core_sources)
        self.inputs = self.layer_inputs
        for folder in folders:
            self.lines.append(f"\n# {folder.name}")
            self.layer(folder)
        wanted = " ".join([*messages, *self.libraries.values()])
        backends = self.settings.backends
        core = {archive for f in folders for b in backends for archive in self.core_archives(f, b)}
        whole = {f"{self.settings.core_of(b)}/lib{a}.a" for b in backends for a in ("caffe", "stock")}
        wrappers = set(map(self.core_wrapper, backends))
        needed = [
            *messages,
            *call,
            *sorted(core | (wrappers if core else set())),
            *map(self.wrappers_std, backends),
            *self.host_runtime(backends[0]),
            *self.cuda_headers(backends[0]),
        ]
        head = ["# Written by tools/make/makefile.py; do not edit.", *self.settings.make_variables()]
        head += [f"CORE_{backend} := {self.settings.core_of(backend)}" for backend in backends]
        head += [f"WITHOUT_KERNELS := {self.settings.core_of(HOST.name, of_kernels=False)}"]
        head += [f"{name} := {' '.join(files)}" for name, files in self.writers.items()]
        head += ["include mk/rules.mk", *(f"include mk/{backend}.mk" for backend in backends)]
        tail = [
            f"\nlibraries: {' '.join(call)} {wanted}\n\t@:",
            f"core: {' '.join(needed)}",
            f"whole_core: {' '.join(messages)} {' '.join(sorted(whole | wrappers))}",
        ]
        tail.append(f"-include {' '.join(self.depfiles)}")
        return "\n".join(head + self.lines + tail) + "\n"


def path_of(file: str) -> str:
    """A file of edge.py's lists, from the toolkit's folder."""
    return f"{PACKAGE}/{file.removeprefix('cuffi/')}" if file.startswith("cuffi/") else file


def edge_of(wing: str) -> list[str]:
    """The files of a wing's edge (`structs` in edge.py)."""
    return [path_of(file) for file in edge.structs()[wing].files]


def files_of(patterns: tuple[str, ...]) -> list[str]:
    """The toolkit's files that match, below its folder."""
    return sorted(path for pattern in patterns for path in glob.glob(pattern, root_dir=ROOT))


def units(folder: Folder) -> dict[str, list[str]]:
    """The units of compilation: one source each; many for the core's, because they share most of their headers."""
    made: dict[str, list[str]] = {}
    for source in folder.sources:
        unit = source
        if folder.path == CORE_SOURCES and source.endswith(".cpp") and not REPLACEABLE.match(source):
            unit = f"{'stock' if STOCK.match(source) else 'base'}{'' if BOOKKEEPING.match(source) else '_loops'}.cpp"
        made.setdefault(unit, []).append(source)
    return made


def core_folder(root: str) -> Folder:
    """The folder of the Caffe core, cuffi/caffe_layers/core."""
    core = Folder.__new__(Folder)
    core.path, core.name, core.is_caffe, core.refused, core.headers = CORE_SOURCES, "caffe", True, [], []
    core.sources, core.protos, core.beside = [], [], []
    for place, _, found in os.walk(os.path.join(root, CORE_SOURCES)):
        below = os.path.relpath(place, os.path.join(root, CORE_SOURCES))
        core.sources += [os.path.normpath(f"{below}/{f}") for f in found if f.endswith(SOURCES)]
        core.headers += [os.path.normpath(f"{below}/{f}") for f in found if f.endswith(HEADERS)]
    core.sources.sort(), core.headers.sort()
    return core
