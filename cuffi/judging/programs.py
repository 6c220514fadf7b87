"""Build a program from CUDA files: rewritten for the host (tools/cuda), with the launcher (src/host)."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..loading import private, toolkit
from ..loading.headers import Project
from . import kept
from .findings import Finding, difference, of_run
from .harness import harness, is_sized, promise_of
from .limits import Limits, Ran, run
from .promises import Refused
from .rewriters import HostRewriter, Unit, cxx, decided, read, rewrite_unit

# Unoptimised, because an optimiser removes accesses whose value nobody uses, and takes longer than most runs.
MODES = {
    "races": [
        *("-O0", "-gdwarf-4", "-g1", "-fsanitize=thread", "--param=tsan-distinguish-volatile=1"),
        *("-DCAFFE_HOST_RACES=1", "-Wno-tsan"),
    ],
    # Not what a GPU defines: signed overflow wraps, and a copy of no bytes may be from nowhere.
    "memory": [
        *("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
        "-fno-sanitize=signed-integer-overflow,shift-base,nonnull-attribute",
    ],
    "plain": ["-O2", "-g1"],
}
OF_COMPILER = {"-fsanitize=thread", "-O0"}  # for kernels, and not for the launcher
UNBOUNDED = "the bounds of arrays: without a main() nobody knows their sizes"
# There is nothing in it.
STDIN = re.compile(r"\bstdin\b|\bscanf\s*\(|\bcin\b|\bgetchar\s*\(|\bSTDIN_FILENO\b")
AS_NVCC = [
    "-fsigned-char", "-fno-strict-aliasing", "-fno-finite-loops", "-fno-delete-null-pointer-checks", "-fpermissive",
    "-w",
]  # fmt: skip
OF_CUDA = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](cuda|vector_types|builtin_types|cu(blas|rand))", re.M)


@dataclass
class NotBuilt(Exception):
    """The file cannot be built. `kind`: 'refused' (the host cannot run it), 'not-built' or 'no-kernel'."""

    kind: str
    lines: list[str]


@dataclass
class Unbuilt:
    """A rewritten program: its texts by their paths, of which `sources` are compiled, in folders for headers."""

    texts: dict[str, str]
    sources: list[str]
    folders: list[str]
    kernels: list[str]
    has_main: bool
    in_c: list[Path] = field(default_factory=list)  # compiled as C, where they lie
    is_sized: bool = False  # the sizes of all arrays of its kernels are promised
    takes_arguments: bool = False  # or reads what is typed
    not_watched: list[str] = field(default_factory=list)
    lines: list[tuple[str, int, int, str]] = field(
        default_factory=list
    )  # of kernels: file, first, last, name


def rewritten(files: list[Path], options: Sequence[str] = (), promises: Mapping | None = None) -> Unbuilt:
    """The C++ texts of CUDA files, and of the headers of their project that they include.

    Raises:
        NotBuilt: the host cannot run the code, or there is nothing to run.
    """
    made = Unbuilt({}, [], [], [], False)
    units, of_c = [], []
    projects = [Project(file) for file in files]
    root = Path(os.path.commonpath([project.folders[-1] for project in projects]))
    given = [Path(word[2:]).resolve() for word in options if word.startswith("-I")]
    for number, (file, project) in enumerate(zip(files, projects, strict=True)):

        def find(name: str, file=file, project=project) -> str | None:
            """A header that is not beside the file that includes it."""
            own = next((folder / name for folder in given if (folder / name).is_file()), None)
            # Whether its #include has quotes is not known here. No header of a system's ends so.
            header = own or project.header((name, not name.endswith((".cuh", ".hpp", ".cu"))), file)
            if header is None or not header.is_relative_to(root):
                return None
            place = str(header.relative_to(root))
            below = name.lstrip("./")
            made.folders.append(place.removesuffix(below) + "up/" * name.count("../"))
            return place

        try:
            unit = Unit(read(str(file)), str(file), HostRewriter.defined, find, root=str(root))
        except OSError as error:
            raise NotBuilt("not-built", [f"{file}: {error.strerror}"]) from error
        if is_c(file, unit):
            made.in_c.append(file)
            of_c.append(decided(unit))
            continue
        texts, problems, notes = rewrite_unit(unit, RaceRewriter, "cuffi.judge", "")
        if problems:
            raise NotBuilt("refused", [str(problem) for problem in problems[:3]])
        units.append(decided(unit))
        made.not_watched += notes
        made.sources.append(str(file.parent.relative_to(root) / f"judged{number}.cpp"))
        made.texts |= {name or made.sources[-1]: text for name, text in texts.items()}
    units += of_c
    functions = [f for unit in units for source in unit.sources for f in source.functions]
    for source in (source for unit in units for source in unit.sources):
        for f in (f for f in source.functions if f.is_kernel):
            first, last = (source.text.count("\n", 0, at) + 1 for at in (f.head, f.end))
            made.lines.append((str(Path(source.path).resolve()), first, last, f.name))
    made.kernels = list(dict.fromkeys(f.name for f in functions if f.is_kernel))
    made.has_main = any(f.name == "main" and not f.scope for f in functions)
    made.takes_arguments = any(f.name == "main" and f.parameters for f in functions) or any(
        STDIN.search(source.text) for unit in units for source in unit.sources
    )
    if not made.has_main:
        _invent(made, units[0], files[0], promises)
    made.folders = list(dict.fromkeys(made.folders))
    return made


def is_c(file: Path, unit: Unit) -> bool:
    """Is it C, as nvcc takes it? CUDA's host API is C++ here, so a file that includes it is taken for C++."""
    return file.suffix == ".c" and not any(OF_CUDA.search(source.text) for source in unit.sources)


def _step(unit: Unit) -> str:
    """What to write into a file that has no kernel."""
    own = next((f.name for f in unit.main.functions), "")
    if not unit.main.text.strip():
        return ": the file is empty: write a kernel into it"
    return f": add a kernel that calls {own}" if own else ": write a kernel into it"


def _invent(made: Unbuilt, unit: Unit, file: Path, promises: Mapping | None):
    """Add a main() that calls what the file has, with invented arguments, of which something may be promised."""
    if not made.kernels:
        raise NotBuilt(
            "no-kernel", [f"{file}: no kernel (a function with __global__) and no main(){_step(unit)}"]
        )
    try:
        made.texts[made.sources[0]] += harness(unit, promises)
    except Refused as error:
        raise NotBuilt("not-built", [f"{file}: {error}"]) from None
    own = [f for f in unit.main.functions if f.is_kernel and not f.scope]
    made.is_sized = all(is_sized(f, promise_of(f, unit.main.text, promises)) for f in own)


class RaceRewriter(HostRewriter):
    """Rewrites for the race finder, and for the others alike."""

    watched = True


class Program:
    """CUDA files as a program of each mode. With a reference, its main() must print what that prints."""

    more_seconds = 3.0  # of a run that is not the first

    def __init__(
        self,
        files: list[Path],
        arguments: list[str],
        options: list[str],
        reference: Path | None,
        promises: Mapping | None = None,
    ):
        self.files, self.arguments, self.options, self.reference = files, arguments, options, reference
        self.unbuilt = rewritten(files, options, promises)
        self.kernels, self.built = self.unbuilt.kernels, dict[str, Path]()
        self.is_invented = not self.unbuilt.has_main  # what its kernels get
        self.not_judged = self.unbuilt.not_watched + (
            [UNBOUNDED] if self.is_invented and not self.unbuilt.is_sized else []
        )
        if reference and not self.unbuilt.has_main:
            raise NotBuilt("incomplete", [f"{files[0]}: --reference needs a main() that prints"])

    def run(self, mode: str, folder: Path, limits: Limits, **settings) -> Ran:
        if not self.is_invented:  # all memory of its kernels is made in the program
            settings["CAFFE_JUDGE_HOST"] = "1"
        if mode not in self.built:
            self.built[mode] = program(self.unbuilt, self.files, mode, folder / mode, self.options, limits)
        return run(self.built[mode], self.arguments, limits, folder, **settings)

    def findings(self, ran: Ran, seconds: float) -> list[Finding]:
        """What the run's output says."""
        return of_run(ran, list(map(str, self.files)), seconds)

    def result(self, ran: Ran) -> list[Finding]:
        """What its result says, if nothing else does."""
        if ran.status and self.unbuilt.has_main:
            return [Finding("wrong-status", f"main() ended with status {ran.status}")]
        told = difference(ran.output, self.expected()) if self.reference else ""
        return [Finding("different-result", told)] if told else []

    def expected(self) -> str:
        """What the reference prints."""
        command = [sys.executable, str(self.reference), *self.arguments]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1]
            raise NotBuilt("incomplete", [f"{self.reference}: {last}"])
        return done.stdout

    def placed(self, one: Finding) -> Finding:
        """With the kernel whose line it is."""
        file, _, number = one.place.rpartition(":")
        inside = (
            name
            for its, first, last, name in self.unbuilt.lines
            if its == file and number.isdigit() and first <= int(number) <= last
        )
        return one if one.kernel else replace(one, kernel=next(inside, ""))


def program(
    unbuilt: Unbuilt,
    files: list[Path],
    mode: str,
    folder: Path,
    options: list[str],
    limits: Limits | None = None,
    linked: Sequence[str] = (),
) -> Path:
    """Compile and link the program of one mode, in its folder, within the limits of building.

    Args:
        options: for the compiler. linked: for the linker.

    Raises:
        NotBuilt: the compiler's or the linker's first errors.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in unbuilt.texts.items():
        to = folder / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text, encoding="latin-1")
    for place in unbuilt.folders:
        (folder / place).mkdir(parents=True, exist_ok=True)
    header, launcher = prepared(mode)
    around = [f"-I{folder / place}" for place in unbuilt.folders]
    around += [*dict.fromkeys(f"-I{file.parent}" for file in files), *options]
    objects = []
    for number, source in enumerate(unbuilt.sources):
        objects.append(folder / f"judged{number}.o")
        around_it = [*compiler(), *flags(mode), "-include", header, *around]
        call([*around_it, "-c", folder / source, "-o", objects[-1]], limits, folder)
    for number, source in enumerate(unbuilt.in_c):
        objects.append(folder / f"c{number}.o")
        words = [word for word in around if not word.startswith("-std=")]
        call(
            [*compiler(), "-x", "c", *c_flags(mode), *words, "-c", source, "-o", objects[-1]], limits, folder
        )
    # Without -fsanitize=thread: the launcher has its functions.
    sanitizer = ["-fsanitize=address,undefined"] if mode == "memory" else []
    ends = ["-o", folder / "judged", "-pthread", "-ldl", *sanitizer, *linked]
    call([*compiler(), *objects, launcher, *ends], limits, folder)
    return folder / "judged"


def call(command: list, limits: Limits | None = None, folder: Path | None = None):
    """Call a compiler. With limits, it may change this folder.

    Raises:
        NotBuilt: its first errors, or the limit that it reached.
    """
    words = [str(word) for word in command]
    if not shutil.which(words[0]):
        text = f"there is no {words[0]}, which builds the judged program: install g++, or name a C++ compiler in CXX"
        raise NotBuilt("not-built", [text])
    if limits and folder:
        within = replace(limits, seconds=limits.building, file_megabytes=1 << 12)
        done = run(Path(words[0]), words[1:], within, folder, (folder,))
        if done.stopped:
            raise NotBuilt(
                "not-built", [f"the compiler reached the limit of {done.stopped}{_of(within, done.stopped)}"]
            )
        status, errors = done.status, done.errors
    else:
        ran = subprocess.run(words, capture_output=True, text=True, errors="replace")
        status, errors = ran.returncode, ran.stderr
    if status:
        lines = errors.splitlines()
        told = [n for n in lines if re.search(r"\berror: |undefined reference|\bld: cannot (find|open)", n)]
        raise NotBuilt("not-built", (told or lines[-1:] or ["the compiler ended"])[:3])


def _of(limits: Limits, stopped: str) -> str:
    return {"time": f": {limits.seconds:g} s", "memory": f": {limits.megabytes} MB"}.get(stopped, "")


@functools.cache
def compiler() -> list[str]:
    return shlex.split(cxx())


def flags(mode: str) -> list[str]:
    root = toolkit.root()
    return [
        "-std=c++17",
        *AS_NVCC,
        f"-I{root}/include/host",
        f"-I{root}/include",
        f"-I{root}/src",
        *MODES[mode],
    ]


def c_flags(mode: str) -> list[str]:
    return ["-std=gnu17", *(word for word in AS_NVCC if word != "-fpermissive"), *MODES[mode]]


@functools.cache
def prepared_name(mode: str) -> str:
    """The name of what is prepared for a mode by this version of the toolkit."""
    root = toolkit.root()
    words = hashlib.sha256(repr((flags(mode), compiler(), os.uname().release)).encode())
    for file in sorted([*root.glob("include/**/*.h"), *root.glob("src/host/*"), *root.glob("src/edge/*.h")]):
        words.update(file.read_bytes())
    return f"{mode}-{words.hexdigest()[:16]}"


def prepared(mode: str) -> tuple[Path, Path]:
    """The precompiled headers and the launcher of a mode, made once for this version of the toolkit."""
    folder = kept.folder() / prepared_name(mode)
    header, launcher = folder / "judge.h", folder / "launch.o"
    if not kept.is_whole(folder):
        with kept.only_one(folder.name):
            if not kept.is_whole(folder):
                _prepare(mode, folder, header, launcher)
    return header, launcher


def _prepare(mode: str, folder: Path, header: Path, launcher: Path):
    private.make_private(folder)
    header.write_text(f'#include "{toolkit.root()}/src/host/judge.h"\n')
    here = f".{os.getpid()}"  # another process may have no locks
    call([*compiler(), *flags(mode), "-x", "c++-header", header, "-o", f"{header}.gch{here}"])
    os.replace(f"{header}.gch{here}", f"{header}.gch")
    own = [word for word in flags(mode) if word not in OF_COMPILER]
    source = toolkit.root() / "src/host/host_launch.cpp"
    call([*compiler(), *own, "-O2", "-c", source, "-o", f"{launcher}{here}"])
    os.replace(f"{launcher}{here}", launcher)
    kept.complete(folder, [header.name, f"{header.name}.gch", launcher.name])
