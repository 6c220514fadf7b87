"""The settings of a build, checked, with the Makefile's defaults."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys

from ..package_module import package_module
from ..refused import Refused
from . import architectures, find_nvcc, folders
from .backends import BACKENDS, Backend
from .package import IS_INSTALLED, OWN, PACKAGE, ROOT

shell = package_module("base/shown").command
compiler = package_module("base/compiler")

_DEFAULT = re.compile(r"^(\w+) *\?= *(.*?) *$", re.M)
# They compile C++, and link without its library.
_C_COMPILER = re.compile(r"(gcc|clang|cc)(-[\d.]+)?")
# Variables that compilers read.
_OF_COMPILERS = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS",
)  # fmt: skip
_ARCH = re.compile(r"[\w.-]+\Z")


def of_compilers() -> dict[str, str]:
    """The variables of the environment that compilers read, and that are set."""
    return {name: text for name in _OF_COMPILERS if (text := os.environ.get(name))}


def defaults() -> dict[str, str]:
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as makefile:
        return dict(_DEFAULT.findall(makefile.read()))


def is_called_elsewhere() -> bool:
    """Was make called in another folder than the toolkit's, as `make -C toolkit`?"""
    return os.path.realpath(os.environ.get("CALLED_IN") or ROOT) != os.path.realpath(ROOT)


def called_as(by_make: str) -> str:
    """The command that the user typed: `cuffi ffi --build`, which cuffi/commands gives, or make's."""
    return os.environ.get("CALLED_AS") or by_make


def make_command() -> list[str]:
    """The make command for the toolkit, from the user's folder."""
    return ["make", "-C", ROOT] if is_called_elsewhere() else ["make"]


def suite_command(layers_dir: str, options: str = "") -> str:
    """The command that tests layers. An installed toolkit has no tests, and runs the cases.

    Args:
        layers_dir: "" if they are the toolkit's own.
    """
    where = [f"LAYERS_DIR={layers_dir}"] if layers_dir else []
    script = os.path.join(ROOT, "test.py")
    if not os.path.exists(script):
        return shell(*make_command(), "test", *where)
    # Every Linux and every environment has python3; Debian has no python.
    return shell(*where, "python3", script if is_called_elsewhere() else "test.py", *options.split())


class Settings:
    """The attributes are the Makefile's settings in lower case. Paths in the toolkit are relative to it."""

    def __init__(self, values: dict[str, str]):
        self.root = ROOT
        known = defaults()
        value = {name: values.get(name, default) for name, default in known.items()}
        self.arguments = {name: text for name, text in values.items() if name not in known and text}
        self.wanted_cxx = value["CXX"]
        self.cuda_home = value["CUDA_HOME"]
        self.wanted_nvcc = value["NVCC"].strip()
        self.arch = self._words(value["ARCH"], "ARCH")
        self.host_arch = self._words(value["HOST_ARCH"], "HOST_ARCH")
        self.sanitize = value["SANITIZE"].strip()
        if self.sanitize not in ("", "1", "races"):
            raise Refused(f"SANITIZE={folders.shown(self.sanitize)}: expected 1 or races")
        self.verbose = bool(value["V"].strip())
        self.limit = seconds(value["LIMIT"], "LIMIT")
        self.layers_dir = tidy(value["LAYERS_DIR"], "LAYERS_DIR")
        self.outside = os.path.realpath(full(self.layers_dir)) != os.path.realpath(full(OWN))
        if not self.outside:
            self.layers_dir = OWN
        beside = os.path.join(self.layers_dir, "build") if self.outside else "build"
        self.build = tidy(value["BUILD"] or beside, "BUILD")
        self.core = tidy(value["CORE"], "CORE") if value["CORE"] else self._shared_core()
        self.layers = [folders.check_layer(name, "LAYERS") for name in value["LAYERS"].split()]
        self.wanted_backends = value["BACKENDS"].split() or list(BACKENDS)
        if strange := set(self.wanted_backends) - set(BACKENDS):
            raise Refused(f"BACKENDS={folders.shown(' '.join(strange))}: there are {' and '.join(BACKENDS)}")
        self._searched = [b for b in BACKENDS.values() if value[b.compiler] == "search"]
        self._nvcc: str | None = None

    @functools.cached_property
    def cxx(self) -> str:
        """The C++ compiler. Refused if there is none: a net of stock types, and `make new`, need none."""
        return command(compiler.cxx(self.wanted_cxx) if self.wanted_cxx.strip() else "", "CXX")

    @property
    def nvcc(self) -> str:
        """The CUDA compiler; "" if there is none, or NVCC= is empty."""
        if self._nvcc is None:
            found = find_nvcc.find(self.cuda_home) if self.wanted_nvcc == "search" else self.wanted_nvcc
            if self.wanted_nvcc == "search" and (said := find_nvcc.elsewhere(self.cuda_home, found)):
                print(f"make: {said}", file=sys.stderr)
            self._nvcc = optional(found, "NVCC")
        return self._nvcc

    @property
    def backends(self) -> list[str]:
        """The names of the backends to build for: wanted, and with a compiler."""
        found = [name for name in self.wanted_backends if self.of(BACKENDS[name].compiler)]
        if not found:
            compilers = " and ".join(BACKENDS[name].compiler for name in self.wanted_backends)
            raise Refused(f"BACKENDS={' '.join(self.wanted_backends)}: there is no compiler: see {compilers}")
        return found

    @property
    def missing(self) -> list[Backend]:
        """The backends that are wanted, but whose compiler was not found."""
        wanted = [backend for backend in self._searched if backend.name in self.wanted_backends]
        return [backend for backend in wanted if backend.name not in self.backends]

    def of(self, setting: str) -> str:
        """The value of a setting, by its name in make."""
        return getattr(self, setting.lower())

    def check_processor(self) -> None:
        """Refuse a HOST_ARCH that the C++ compiler does not know. `native` is known."""
        if self.host_arch == "native" or "host" not in self.backends:
            return
        asked = [*shlex.split(self.cxx), f"-march={self.host_arch}", "-x", "c++", "-E", os.devnull]
        done = subprocess.run(asked, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
        if done.returncode:
            known = re.search(r"\bare: (.*?)(;|$)", done.stderr, re.M)
            there = f" There are: {' '.join(known[1].replace(',', ' ').split())}" if known else ""
            raise Refused(f"HOST_ARCH={self.host_arch}: {self.cxx} does not know this processor.{there}")

    def check_gpu(self) -> None:
        """Refuse ARCH=native without a GPU, and GPUs that nvcc does not know.

        Without a GPU nvcc would only warn, and build for its oldest one. Before 11.6 it does not know "native".
        """
        if "cuda" not in self.backends:
            return
        nothing = ["-dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull]
        for arch in set(self.arch.split()) - {"all", "all-major"}:
            asked = subprocess.run([self.nvcc, f"-arch={arch}", *nothing], capture_output=True, text=True)
            if arch == "native" and "Cannot find valid GPU" in asked.stderr:
                raise Refused(
                    "ARCH=native: nvcc finds no GPU here. Name the target GPU, as in ARCH=sm_90, or leave the "
                    "CUDA backend out: NVCC="
                )
            if asked.returncode:
                raise Refused(
                    f"ARCH={arch}: this nvcc does not know it. `{self.nvcc} --list-gpu-code` lists what it knows. "
                    "A newer GPU runs what is built for the newest of these."
                )

    def core_key(self, backend: str, of_kernels: bool = True) -> str:
        """A key for the toolkit's own objects, which depends on the settings, and on what compilers read besides."""
        of = {name: self.of(name) for name in ("CXX", *BACKENDS[backend].settings)}
        if not of_kernels and of.get("SANITIZE") == "races":
            of["SANITIZE"] = ""
        words = [*of.values(), *map("=".join, of_compilers().items())]
        return hashlib.sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()[:8]

    def core_of(self, backend: str, of_kernels: bool = True) -> str:
        """The folder of the toolkit's own objects for a backend.

        Args:
            of_kernels: false for objects without kernels, which the race finder does not need.
        """
        return f"{self.core}/{backend}-{self.core_key(backend, of_kernels)}"

    def compiler_files(self, backend: str = "") -> list[str]:
        """The files of the compilers of a backend, and of the C++ compiler, which each backend needs.

        All files of the name on PATH, because the first may be a wrapper that calls the next.
        """
        named = [self.cxx, *([self.of(BACKENDS[backend].compiler)] if backend else [])]
        words = dict.fromkeys(word for text in named for word in shlex.split(text))
        folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
        found = [w if os.sep in w else f"{f}/{w}" for w in words for f in folders]
        return [path for path in dict.fromkeys(found) if os.path.isfile(path) and os.access(path, os.X_OK)]

    @property
    def temporary(self) -> str:
        """The folder of the compilers' temporary files. The next make removes what a killed compiler leaves."""
        return f"{self.build}/_tmp"

    def make_variables(self) -> list[str]:
        """The settings as lines of a makefile."""
        values = {"PYTHON": shlex.quote(sys.executable), "PACKAGE": PACKAGE}
        values |= {"UNSHARED": self._unshared(), **self._shared()}
        values["ENVIRONMENT"] = " ".join(f"{name}={text}" for name, text in of_compilers().items())
        if "cuda" in self.backends:
            values |= architectures.options(self.nvcc, self.arch) | find_nvcc.options(self.nvcc)
        escaped = {name: text.replace("$", "$$").replace("#", r"\#") for name, text in values.items()}
        return [f"{name} := {text}" for name, text in escaped.items()]

    def _unshared(self) -> str:
        """Libraries of layers are loaded together, and may have classes of the same name.

        clang never makes one of two, and clang 14 does not know g++'s option for it.
        """
        option = "-fno-gnu-unique"
        # With -### the driver prints the commands, and runs nothing.
        nothing = ["-###", "-fsyntax-only", "-x", "c++", os.devnull]
        asked = subprocess.run([*shlex.split(self.cxx), option, *nothing], capture_output=True)
        return "" if asked.returncode else option

    def hint(self, target: str = "", **arguments: str) -> str:
        """A make command for the same layers: with LAYERS_DIR and BUILD, if they are not the defaults."""
        words = [*make_command(), *([target] if target else [])]
        if self.outside:
            words.append(f"LAYERS_DIR={self.layers_dir}")
        if self.build != (os.path.join(self.layers_dir, "build") if self.outside else "build"):
            words.append(f"BUILD={self.build}")
        words += [f"{name}={text}" for name, text in arguments.items()]
        return shell(*words)

    def suite(self, options: str = "") -> str:
        """The command that tests these layers."""
        return suite_command(self.layers_dir if self.outside else "", options)

    def environment(self) -> dict[str, str]:
        """The environment for another tool with the same settings."""
        return {"LAYERS_DIR": self.layers_dir, "LAYERS": " ".join(self.layers), **self._shared()}

    def _shared(self) -> dict[str, str]:
        own = {name: self.of(name) for backend in BACKENDS.values() for name in backend.settings}
        return {**own, "BUILD": self.build, "CORE": self.core, "V": "1" if self.verbose else ""}

    @property
    def makes_toolkit(self) -> bool:
        """Does make write what Python needs into the package: the extension that makes calls, the wings' files?

        A checkout's own make does, and no build with a CORE elsewhere, such as that of load. An installed package, or
        another user's checkout, has them.
        """
        package = os.path.join(ROOT, PACKAGE, "runtime")
        return not IS_INSTALLED and self.core == "build/core" and os.access(package, os.W_OK)

    def _shared_core(self) -> str:
        if IS_INSTALLED:  # nothing is written into what pip installed
            return os.path.join(self.build, "core")
        shared = os.path.join(ROOT, "build", "core")
        nearest = shared
        while not os.path.exists(nearest):
            nearest = os.path.dirname(nearest)
        return "build/core" if os.access(nearest, os.W_OK) else os.path.join(self.build, "core")

    @staticmethod
    def _words(text: str, setting: str) -> str:
        words = text.split()
        if not words or not all(_ARCH.match(word) for word in words):
            raise Refused(f"{setting}={folders.shown(text)}: expected a name such as native or sm_90")
        return " ".join(words)


def full(path: str) -> str:
    return os.path.normpath(os.path.join(ROOT, path))


def tidy(path: str, setting: str) -> str:
    """The path in one form: relative in the toolkit, otherwise absolute. Files of a build contain paths."""
    path = full(os.path.expanduser(path))
    inside = os.path.relpath(path, ROOT)
    return folders.check_path(path if inside.startswith("..") else inside, setting)


def command(text: str, setting: str) -> str:
    """A program, perhaps with options, quoted for a shell."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or "\n" in text or not shutil.which(words[0]):
        needed = ": building a layer needs a C++ compiler, g++ or clang++" if setting == "CXX" else ""
        raise Refused(
            f"{setting}={folders.shown(text)}: there is no such program{needed}: "
            f"install it, or give its path: {setting}=/path/to/it"
        )
    if alone := _C_COMPILER.fullmatch(os.path.basename(words[0])):
        better = {"gcc": "g++", "clang": "clang++"}.get(alone[1], "c++") + (alone[2] or "")
        raise Refused(f"{setting}={folders.shown(text)} cannot link C++: use {better}")
    return shlex.join(words)


def seconds(text: str, setting: str) -> float:
    try:
        if (found := float(text)) > 0:
            return found
    except ValueError:
        pass
    raise Refused(f"{setting}={folders.shown(text)}: expected a number of seconds, above 0")


def optional(program: str, setting: str) -> str:
    """A compiler that may be missing."""
    if program and not shutil.which(program):
        raise Refused(
            f"{setting}={folders.shown(program)}: there is no such program. {setting}= builds without it"
        )
    return program


def of_each_folder(arguments: list[str]) -> tuple[list[Settings], list[str]]:
    """The settings for each folder of layers, from the environment and the arguments (NAME=value), which win.

    And the other arguments.
    """
    asked = {
        **dict.fromkeys(defaults()),
        **dict.fromkeys(("LAYER", "PARAM", "SHAPES", "TYPE", "MINUTES", "SEED")),
    }
    values = {name: os.environ[name] for name in asked if name in os.environ}
    unknown = []
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if equals and name in asked:
            values[name] = text
        else:
            unknown.append(argument)
    folders = package_module("folders").split(values.get("LAYERS_DIR", "")) or [defaults()["LAYERS_DIR"]]
    if len(folders) > 1 and values.get("BUILD"):
        raise Refused("BUILD: several folders of layers cannot share a build folder: name one LAYERS_DIR")
    return [Settings(values | {"LAYERS_DIR": folder}) for folder in folders], unknown


def from_environment(arguments: list[str]) -> tuple[Settings, list[str]]:
    """The settings for the first folder, to which new layers are written."""
    settings, unknown = of_each_folder(arguments)
    return settings[0], unknown
