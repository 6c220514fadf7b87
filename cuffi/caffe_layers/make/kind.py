"""make's rules for Caffe layers, and for the Caffe core that they share (tools/make/kinds.py)."""

from __future__ import annotations

import functools
import glob
import os
import re
from typing import ClassVar

from tools.files import read
from tools.make.backends import edge
from tools.make.folders import HEADERS, SOURCES, Folder
from tools.make.kinds import LinkInputs, Native
from tools.make.makefile import TOOLKITS, Rules, path_of
from tools.make.package import PACKAGE, ROOT

from .macros import INSTANTIATE, REGISTER

WING = f"{PACKAGE}/caffe_layers"
CORE_SOURCES = f"{WING}/core"
STOCK_PROTO = f"{CORE_SOURCES}/proto/caffe.proto"
# Words that mark a folder as a Caffe layer's, or as one of Caffe's tests (lab/caffetest).
_REGISTERS = re.compile(
    rb'^[ \t]*(?:%b)[^A-Z_]|^extern "C" int64_t caffe_test_run' % "|".join([*REGISTER, INSTANTIATE]).encode(),
    re.M,
)
# Words in sources that need the core's stock layers or its Net: headers, and functions that make a layer by type.
_USES_STOCK = re.compile(
    rb"caffe/(?:layers/(?!loss_layer\.|neuron_layer\.)\w+_layer|(?:common|neuron|vision)_layers|net|caffe|layer_factory)"
    rb"\.hpp|caffe/util/insert_splits\.hpp|\bCreateLayer\b|\bNet\s*<"
)
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
# The error of a compiler for a field that a fork's messages have, and the folder's lack.
_NO_FIELD = re.compile(r"class \W?caffe::(\w+Parameter)\W+has no member\W+(?:named\W+)?(\w+)")


class Kind(Native):
    """Caffe layers: sources that register one, as a fork has them."""

    name = "caffe"
    suffixes = (".proto",)
    recipes = (f"{WING}/make/recipes.mk",)
    writers: ClassVar = {
        "MESSAGES": ("tools/*.py", f"{WING}/make/proto*.py"),
        "PREPARERS": ("tools/*.py", "tools/cuda/*.py", "tools/make/folders.py", f"{WING}/make/*.py"),
    }
    made = ("_caffe.desc",)
    made_in_build = ("caffetest", "verify-net")
    tests = "verify"

    # ----------------------------------------------------------------------------------------- a folder

    def is_of(self, folder, texts):
        return any(_REGISTERS.search(texts[source]) for source in folder.sources)

    def examine(self, folder, texts):
        own = {os.path.basename(file).encode() for file in (*texts, *folder.others)}
        words = (found for text in texts.values() for found in _USES_STOCK.findall(text))
        uses_stock = any(os.path.basename(word) not in own for word in words)
        folder.archives = (*["libstock.a"] * uses_stock, "libcaffe.a")
        folder.note_beside("plain_loops", "overwrites", f"{folder.name}_ffi.cpp")

    def files(self, folder):
        return [*folder.sources, *folder.headers, *folder.others]

    # ------------------------------------------------------------------------------------- a layer's rules

    def ready(self, rules, folder, build):
        """The messages, and the forwarding headers."""
        is_core, listed = folder.path == CORE_SOURCES, rules.listed(folder, build)
        protos = [f"{folder.path}/{proto}" for proto in folder.others]
        descriptor = f"{folder.path}/_caffe.desc"
        where = "" if is_core else f"--layer-dir {folder.path} --descriptor {descriptor} "
        # It is beside the layer's files, so a user may remove it while the stamp stays.
        gone = not is_core and not os.path.exists(os.path.join(rules.settings.root, descriptor))
        if gone:
            rules.rule(descriptor, [], "@:", place=build)
        rules.rule(
            f"{build}/proto.stamp",
            [*protos, listed, STOCK_PROTO, "$(MESSAGES)", *[descriptor] * gone],
            f"$(call messages,{folder.name},{where}--include-dir {build}/include)",
        )  # fmt: skip
        rules.rule(f"{build}/include/caffe/proto/caffe.pb.h", [f"{build}/proto.stamp"])
        beside = [file for file in folder.beside if file == "overwrites"]
        used = [f"{folder.path}/{file}" for file in folder.sources + folder.headers + beside]
        # `forwarded` lists the forwarding headers. If the list changes, any object may include another header.
        rules.rule(
            f"{build}/forward.stamp",
            [*used, listed, "$(PREPARERS)"],
            f"$(call headers,{folder.name},{folder.path},{build})",
        )
        rules.rule(f"{build}/forwarded {build}/registration.cpp", [f"{build}/forward.stamp"])
        return [listed, f"{build}/forwarded", f"{build}/include/caffe/proto/caffe.pb.h"]

    def link_inputs(self, rules, folder, backend, build, ready):
        objects = self._objects(rules, folder, backend, build, ready)
        wrapper = core_wrapper(rules, backend)
        if folder.has("caffe_test.h"):  # Caffe's tests have a C ABI of their own
            wrapper = f"{build}/{backend}/_{backend}.o"
            self._wrap(rules, folder.name, backend, f"{folder.path}/caffe_test.h", wrapper)
        return LinkInputs(objects, wrapper, core_archives(rules, folder, backend), [])

    def _wrap(self, rules: Rules, name: str, backend: str, header: str, output: str) -> None:
        own = map(path_of, edge.structs()["caffe_layers"].files)
        rules.wrapper(name, backend, header, output, flags="$(UNSHARED)", own=own)

    def _objects(self, rules: Rules, folder: Folder, backend: str, build: str, ready) -> list[str]:
        place, registration = f"{build}/{backend}", "registration.cpp"
        header = f"{rules.settings.core_of(backend)}/std.hpp.gch"
        needs = [header, f"{rules.settings.build}/{backend}.caffe.flags", *ready]
        flags = f"$(call caffe,{folder.path},{build}) {OLD}"
        objects = [
            self._object(rules, folder, source, backend, place, needs, flags) for source in folder.sources
        ]
        registers = rules.compiled(
            f"plain,{backend}", f"{folder.name}/{registration}", f"{build}/{registration}",
            f"{place}/{registration}.o", needs, flags,
        )  # fmt: skip
        return [*objects, registers]

    def _object(self, rules: Rules, folder: Folder, source: str, backend, place, needs, flags) -> str:
        """Add the rules of the object in `place` of one file of a layer or of the core. Returns the object."""
        path, recipe = f"{folder.path}/{source}", f"plain,{backend}"
        if source.endswith(".cu"):
            path, recipe = rules.rewritten(folder, source, backend, place), f"{backend}_kernel"
            # Rewritten headers first. A .cpp sees only the fork's own: `#pragma once` misses a copy.
            flags = f"$(call own,{place}) {flags}"
        return rules.compiled(recipe, f"{folder.name}/{source}", path, f"{place}/{source}.o", needs, flags)

    def more(self, rules, folder, build):
        if not folder.has_init:
            init = f"{folder.path}/__init__.py"
            rules.rule(
                init, [], f"$(Q)$(PYTHON) -m cuffi.caffe_layers.make.prepare init {folder.path}", build
            )
            rules.lines.append(f"libraries: {init}")

    def rewriting(self, folder, tool):
        return f"cuffi.caffe_layers.make.rewrite_layer {tool} --root {folder.path}", "PREPARERS"

    # ---------------------------------------------------------------------------------- the core

    def for_python(self, rules):
        """Stock Caffe's messages, for each package that has additions to them in a forks.proto."""
        made = []
        for additions in sorted(glob.glob(f"{PACKAGE}/*/*/forks.proto", root_dir=ROOT)):
            descriptor = f"{os.path.dirname(additions)}/_caffe.desc"
            place = f"{rules.settings.core}/{os.path.basename(os.path.dirname(additions))}"
            proto = "$(PYTHON) -m cuffi.caffe_layers.make.proto --layer-dir $(@D) --descriptor $@"
            rules.rule(
                descriptor,
                [STOCK_PROTO, additions, "$(MESSAGES)"],
                f"$(call step,PROTO,stock Caffe,{place}.log,{proto} --include-dir {place} && touch $@)",
                TOOLKITS,
            )
            made.append(descriptor)
        return made

    def core(self, rules):
        """Archives for the libraries, and the Python wrapper of the core's C ABI."""
        folder, settings = core_folder(ROOT), rules.settings
        rules.backend, whole = "", []
        ready = self.ready(rules, folder, settings.core)
        for backend in settings.backends:
            rules.backend, place = backend, settings.core_of(backend)
            base, stock = self._core_objects(rules, folder, backend, ready)
            rules.archive(f"{place}/libstock.a", stock, ready[0])
            rules.archive(f"{place}/libcaffe.a", base + rules.host_runtime(backend), ready[0])
            output = core_wrapper(rules, backend)
            self._wrap(rules, "caffe", backend, f"{folder.path}/caffe_layer.h", output)
            for each in sorted({place, settings.core_of(backend, of_kernels=False)}):
                rules.precompile(f"{folder.path}/std.hpp", each, f"{backend}_PLAIN", "caffe.flags")
            whole += [f"{place}/libcaffe.a", f"{place}/libstock.a", output]
        return whole

    def _core_objects(self, rules: Rules, folder: Folder, backend: str, ready: list[str]):
        """Add the rules of the core's objects. Returns those that every Caffe layer needs, and the stock layers'."""
        base, stock = [], []
        for unit, sources in units(folder).items():
            place = rules.settings.core_of(backend, of_kernels=unit.endswith(".cu"))
            needs = [f"{place}/std.hpp.gch", f"{place}/caffe.flags", *ready]
            flags = f"$(call caffe,{folder.path},{rules.settings.core}) -DCAFFE_CORE=1"
            flags += ",-O1" * bool(BOOKKEEPING.match(sources[0]))
            if sources == [unit]:
                made = self._object(rules, folder, unit, backend, place, needs, flags)
            else:
                path = f"{place}/{unit}"
                rules.files[path] = "".join(f'#include "{folder.path}/{source}"\n' for source in sources)
                what, flags = f"{folder.name}/{unit}", f"-iquote . {flags}"
                made = rules.compiled(f"plain,{backend}", what, path, f"{path}.o", needs, flags)
            (stock if STOCK.match(sources[0]) else base).append(made)
        return base, stock

    def needed(self, rules, folders):
        backends = rules.settings.backends
        own = [folder for folder in folders if folder.kind is self]
        archives = {archive for f in own for b in backends for archive in core_archives(rules, f, b)}
        return sorted(archives | ({core_wrapper(rules, b) for b in backends} if own else set()))

    # ------------------------------------------------------------------------------------- messages, programs

    def lacks(self, folder):
        return ""

    def advice(self, folder, logs):
        """A line for each field that the layer's files use and its messages lack."""
        fields = dict.fromkeys(field for log in logs for field in _NO_FIELD.findall(read(log, "utf-8")))
        return [
            f"{folder.name}: {message} has no {field}: put the fork's caffe.proto into {folder.path}, "
            "or a .proto with only that message (docs/port-a-caffe-layer.md, section 1)."
            for message, field in fields
        ]

    def targets(self):
        from .verify_target import verify

        return {"verify": verify}

    def run_without_cases(self, package, name, dtype, device):
        from ..verify.without_cases import run

        return run(package, name, dtype, device)


def core_wrapper(rules: Rules, backend: str) -> str:
    """Python's side of the core's C ABI."""
    return f"{rules.settings.core_of(backend, of_kernels=False)}/_{backend}.o"


def core_archives(rules: Rules, folder: Folder, backend: str) -> list[str]:
    """The archives of the core with which a layer is linked."""
    return [f"{rules.settings.core_of(backend)}/{archive}" for archive in folder.archives]


def units(folder: Folder) -> dict[str, list[str]]:
    """The units of compilation: one source each; many for the core's, because they share most of their headers."""
    made: dict[str, list[str]] = {}
    for source in folder.sources:
        unit = source
        if folder.path == CORE_SOURCES and source.endswith(".cpp") and not REPLACEABLE.match(source):
            unit = f"{'stock' if STOCK.match(source) else 'base'}{'' if BOOKKEEPING.match(source) else '_loops'}.cpp"
        made.setdefault(unit, []).append(source)
    return made


@functools.cache
def core_folder(root: str) -> Folder:
    """The folder of the Caffe core, cuffi/caffe_layers/core."""
    core = Folder.__new__(Folder)
    core.path, core.name, core.kind, core.refused, core.headers = CORE_SOURCES, "caffe", Kind(), [], []
    core.sources, core.others, core.beside, core.has_init = [], [], [], True
    for place, _, found in os.walk(os.path.join(root, CORE_SOURCES)):
        below = os.path.relpath(place, os.path.join(root, CORE_SOURCES))
        core.sources += [os.path.normpath(f"{below}/{f}") for f in found if f.endswith(SOURCES)]
        core.headers += [os.path.normpath(f"{below}/{f}") for f in found if f.endswith(HEADERS)]
    core.sources.sort(), core.headers.sort()
    return core
