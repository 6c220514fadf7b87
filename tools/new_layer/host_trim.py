"""Leave out host code that does not compile here: a file's launchers need its kernels alone.

    python -m tools.new_layer.host_trim FOLDER < errors

reads the errors of the compilers and the linker. If each is in host code, or in an #include of a header that is not
here, that code becomes blank in the folder's files, line for line, and a line for each is printed. Otherwise nothing
changes, and the status is 3.

No other code may get another meaning. So a declaration stays if it belongs to device code, specialises a template, or
has a name that other code declares, too; an #include stays if an #if asks for a macro that the header could define.
"""

from __future__ import annotations

import itertools
import os
import re
import sys

from ..cuda.branches import NOT_ON_THE_HOST
from ..cuda.lexer import Directive, tokens_and_directives
from ..cuda.outline import Part, head_name
from ..cuda.source import Source
from ..cuda.tokens import macro_body
from ..files import read, write
from .declared import OPENING_DIRECTIVES, type_names

# An error of g++, nvcc or the linker, and g++'s place in the user's code of an error in a template of others.
PLACE = re.compile(r"(?P<path>/[^\s:()]+)[:(](?P<line>\d+)(?:[:)]\S*)*\s+(?P<text>.*)")
ERROR = re.compile(r"((fatal |catastrophic )?error[: ]|(warning: )?undefined reference)")
NO_HEADER = re.compile(
    r"(fatal |catastrophic )?error: (the host has no <|.*: No such file or directory|cannot open source file)"
)
EXPANDED = re.compile(r"note: in expansion of macro")
FROM = re.compile(r"required (from|by)")
# The linker on an object of nvcc: `x.cudafe1.cpp:(.text+0x2): undefined reference to `one::f(int)', without a line.
# (One of g++'s has its line there since binutils 2.41: `x.cu:12:(.text+0x2): ...`.)
WITHOUT_PLACE = re.compile(
    r"(?<!\S)[^\s:]+:\(\.\S+\): (?:warning: )?undefined reference to [`'](?:[\w~]+(?:<.*?>)?::)*(\w+)"
)
# Words of declarations that device code may use.
OF_DEVICES = {"__global__", "__device__", "__constant__", "__shared__", "__managed__"}
# Macros of compilers, and of CUDA itself.
OF_COMPILERS = re.compile(
    r"(_\w+|CUDA\w*|CAFFE_\w+|NDEBUG|DEBUG|WIN\w*|_?MSC_VER|defined|true|false|and|or|not|linux|unix)\Z"
)
# CUDA's libraries that the host has. A compiler for a GPU may have none.
OF_CUDA = re.compile(r"(cublas(_v2|_api)|library_types)\.h\Z")
# What the headers of CUDA's libraries include, and their types, on the header's line.
ALSO_INCLUDED = "#include <caffe_library_types.h>"
HEADER = re.compile(r'[<"]([^>"]+)')
SUFFIXES = (".cu", ".h", ".hpp", ".cuh", ".hh", ".inl")
# Headers of libraries that only host code calls.
OF_HOST_LIBRARIES = re.compile(
    r"(boost|GL|GLES\d?|GLFW|EGL|X11|SDL2?|glad|glm|imgui|glog|gflags|google|gtest|gmock|benchmark|catch2?|doctest|opencv2?"
    r"|Eigen|unsupported|spdlog|fmt|nlohmann|rapidjson|yaml-cpp|tclap|cxxopts|args|CLI|tbb|oneapi|hdf5|netcdf|vtk\S*|pcl|osg"
    r"|Magick\+\+|libconfig|openssl|curl|sqlite3|readline|ncurses|png|jpeg|nvtx3|hwloc|papi|likwid|ros|zmq|armadillo|gsl|mkl"
    r"|openblas)(/\S+|\.h\w*)\Z|(nvml|mpi|curand\w*|gl\w*|cblas|lapacke?|fftw3\w*|helper_\w+|cutil\w*|shrUtils|sdkHelper"
    r"|pngio|png|jpeglib|turbojpeg|tiffio|zlib|zstd|lz4|sndfile|hdf5\w*|netcdf\w*|H5\w+|gmp\w*|mpfr|papi|likwid\S*|ncurses"
    r"|curses|conio|windows|io|direct|process|winsock2?|intrin|yaml|expat|pcap|numa|sqlite3|jansson|cJSON|raylib"
    r"|nvToolsExt\w*|freeimage|FreeImage\w*|IL\w*)\.h(pp)?\Z"
)
# Those of CUDA's samples, which programs name with quotes, too.
OF_SAMPLES = re.compile(r"(helper_\w+|cutil\w*|shrUtils|sdkHelper|GL/\w+)\.h\Z")
# Macros that headers of these and of CUDA's libraries define, as far as a project may ask for them. A library's plain
# name, `#ifdef CUDNN`, is the project's own switch: no header defines it.
OF_LIBRARIES = re.compile(
    r"(CUB|CUTE|CUTLASS|THRUST|LIBCU|NCCL|NV|CU(BLAS|DNN|FFT|SPARSE|SOLVER|RAND)|BOOST|GL|GOOGLE|OPENCV|CV|OPEN_?MPI|MPI"
    r"|C?BLAS|LAPACK|FFTW|SPDLOG|FMT|EIGEN|GLM|GLAD|GLFW|SDL|IMGUI|X11|GTEST|CATCH|DOCTEST|TBB|H5|HDF5|NC|VTK|PCL|PNG|JPEG"
    r"|TIFF|Z(LIB|STD)|LZ4|GMP|MPFR|PAPI|LIKWID|GSL|ARMA|MKL|NLOHMANN|JSON|YAML|HELPER|CUTIL|SDK|FREEIMAGE|SQLITE|CURL"
    r"|OPENSSL)\w*_\w*\Z"
)
STAYS = 3
# The file has launchers below this line.
MADE = "// Made by load_inline: "


def _of_cuda(header: str) -> bool:
    return bool(NOT_ON_THE_HOST.match(header) or OF_CUDA.match(header))


class Stays(Exception):
    """There is an error in code that a launcher may need."""


class File:
    """One of the folder's files."""

    def __init__(self, path: str):
        self.path, self.source = path, Source(read(path), path)
        self.text = self.source.text
        self.made = self.text.find(MADE)
        self.macros_of_devices = {
            m.tokens[0].text for m in self.source.macros if OF_DEVICES & {t.text for t in macro_body(m)}
        }

    def words(self, part: Part) -> list[str]:
        """The words of a declaration, or of a function's head."""
        tokens = self.source.lexed.tokens[part.first : part.last + 1]
        if part.kind == "function":
            body = next(f.body for f in self.source.functions if f.head == tokens[0].start)
            tokens = [t for t in tokens if t.start < body]
        return [t.text for t in tokens]

    def names(self, part: Part) -> set[str]:
        """What a part declares."""
        tokens, partner = self.source.lexed.tokens, self.source.lexed.partner
        if part.kind == "function":
            return {f.name for f in self.source.functions if f.head == tokens[part.first].start}
        if (at := head_name(tokens, partner, part.first, part.last)) is not None:
            return {tokens[at].text}
        text = self.text[tokens[part.first].start : tokens[part.last].end]
        variable = re.match(r"[^({=;]*?(\w+)\s*(\[[^;]*\]\s*)*[;={(]", text)
        return type_names(text) or ({variable[1]} if variable else set())

    def in_macro(self, line: int) -> bool:
        position = self.source.lexed.position
        return any(position(m.start)[0] <= line <= position(m.end)[0] for m in self.source.macros)

    def place(self, line: int, text: str) -> tuple[int, int, str, set[str]]:
        """(start, end, what it is, what it declares) of the code with the error."""
        if NO_HEADER.match(text):
            return self._include(line)
        tokens = self.source.lexed.tokens
        position = self.source.lexed.position
        found = [
            part
            for part in self.source.parts
            if part.kind in ("function", "declaration")
            and position(tokens[part.first].start)[0] <= line <= position(tokens[part.last].end)[0]
        ]
        if len(found) != 1:
            raise Stays
        part = found[0]
        start, end = tokens[part.first].start, tokens[part.last].end
        if not self._is_hosts(part) or (0 <= self.made < end):
            raise Stays
        names = self.names(part)
        if not names:
            raise Stays
        return start, end, f"{', '.join(sorted(names))} (line {position(start)[0]})", names

    def others(self, gone: set[str]):
        """Host functions that call functions that are gone, and what declares one again: (start, end, what, names)."""
        tokens = self.source.lexed.tokens
        for part in self.source.parts:
            if part.kind not in ("function", "declaration"):
                continue
            start, end = tokens[part.first].start, tokens[part.last].end
            if 0 <= self.made < end:
                continue
            names = self.names(part)
            inside = tokens[part.first : part.last + 1]
            calls = part.kind == "function" and any(
                t.text in gone and after.text in ("(", "<") for t, after in itertools.pairwise(inside)
            )
            if not (names & gone or calls):
                continue
            if names and self._is_hosts(part):
                yield (
                    start,
                    end,
                    f"{', '.join(sorted(names))} (line {self.source.lexed.position(start)[0]})",
                    names,
                )
            elif names & gone:
                raise Stays  # device code has the name, too

    def _is_hosts(self, part: Part) -> bool:
        words = self.words(part)
        if "constexpr" in words or "operator" in words or words[:3] == ["template", "<", ">"]:
            return False
        if (OF_DEVICES | self.macros_of_devices) & set(words):
            return False
        if re.search(r"\b(struct|class)\s+\w+\s*<", " ".join(words)):  # of some types only
            return False
        start, end = self.source.lexed.tokens[part.first].start, self.source.lexed.tokens[part.last].end
        depth = 0
        for item in tokens_and_directives(self.text[start:end]):
            if isinstance(item, Directive):
                if item.word in ("define", "undef", "include"):
                    return False
                depth += (item.word in OPENING_DIRECTIVES) - (item.word == "endif")
                if depth < 0 or (depth == 0 and item.word in ("else", "elif")):
                    return False
        return depth == 0

    def _include(self, line: int) -> tuple[int, int, str, set[str]]:
        for directive in self.source.lexed.directives:
            if directive.word == "include" and self.source.lexed.position(directive.start)[0] == line:
                name = self.text[directive.start : directive.end].strip()
                header = HEADER.search(name)
                known = header and (_of_cuda(header[1]) or OF_SAMPLES.match(header[1]))
                if "<" not in name and not known:
                    raise Stays  # a project's own header: nobody knows what it has
                return directive.start, directive.end, f"{name} (line {line})", set()
        raise Stays


def trim(folder: str, errors: str) -> list[str]:
    """Make the code with these errors blank. Returns what it was.

    Raises:
        Stays: an error is in other code.
    """
    files: dict[str, File] = {}
    for parent, _, names in os.walk(os.path.realpath(folder)):
        files |= {
            path: File(path) for name in names if (path := os.path.join(parent, name)).endswith(SUFFIXES)
        }
    found: dict[str, set[tuple[int, int, str]]] = {path: set() for path in files}
    gone: set[str] = set()
    for path, line, text in _places(errors, files):
        try:
            start, end, what, names = files[path].place(line, text)
        except Stays:
            # Without its callers, a template or an inline function of a class asks the linker for nothing.
            if "undefined reference" not in text:
                raise
            continue
        found[path].add((start, end, what))
        gone |= names
    missing = set(WITHOUT_PLACE.findall(errors))
    gone |= missing | {
        name.removesuffix("_v2") for name in missing
    }  # cuBLAS's header renames its functions by macros
    _check_macros(files, found)
    # The functions that call these, and the declarations of both.
    for _ in range(len(files) + 20):
        before = len(gone)
        for path, file in files.items():
            for start, end, what, names in file.others(gone):
                found[path].add((start, end, what))
                gone |= names
        if len(gone) == before:
            break
    if not any(found.values()):
        raise Stays
    lines = []
    for path, places in found.items():
        text = files[path].text
        for start, end, what in sorted(places, reverse=True):
            header = HEADER.search(what)
            of_cuda = what.startswith("#") and header and _of_cuda(header[1])
            instead = ALSO_INCLUDED if of_cuda else ""
            text = text[:start] + instead + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
            lines.append(what)
        if places:
            write(path, text)
    return lines


def _places(errors: str, files: dict[str, File]):
    """(path, line, text) of each error, in the files. Compilers may name a file by its real path, or by a link."""
    around: tuple[str, int] | None = None
    found: list[list] = []
    for line in errors.split("\n"):
        place = PLACE.match(line)
        if not place:
            if ERROR.match(line):
                raise Stays
            continue
        path, number, text = os.path.realpath(place["path"]), int(place["line"]), place["text"]
        if FROM.match(text):
            around = (path, number) if path in files else around
        elif EXPANDED.match(text) and found and path in files and files[found[-1][0]].in_macro(found[-1][1]):
            found[-1][:2] = path, number
        elif ERROR.match(text):
            if path not in files:
                if around is None and "undefined reference" in text:
                    continue  # a template of C++'s own: without the code that uses it, it asks for nothing
                if around is None:
                    raise Stays
                path, number = around
            around = None
            found.append([path, number, text])
    return found


def _check_macros(files: dict[str, File], found: dict) -> None:
    """Does an #if ask for a macro that a header which is left out might define?"""
    headers = [
        HEADER.search(what) for places in found.values() for _, _, what in places if what.startswith("#")
    ]
    if not headers:
        return
    directives = [
        d for file in files.values() for d in tokens_and_directives(file.text) if isinstance(d, Directive)
    ]
    defined = {d.tokens[0].text for d in directives if d.word == "define" and d.tokens}
    asking = (d for d in directives if d.word in ("if", "ifdef", "ifndef", "elif"))
    unknown = {t.text for d in asking for t in d.tokens if t.kind == "name"} - defined
    if all(header and (_of_cuda(header[1]) or OF_HOST_LIBRARIES.match(header[1])) for header in headers):
        may_be_defined = any(map(OF_LIBRARIES.match, unknown))
    else:
        may_be_defined = not all(map(OF_COMPILERS.match, unknown))
    if may_be_defined:
        raise Stays


def main(folder: str) -> int:
    try:
        lines = trim(folder, sys.stdin.read())
    except Stays:
        return STAYS
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
