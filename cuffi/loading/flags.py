"""The options of a project's makefile: which of them change a program, and which are the toolkit's own choice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

STANDARD = re.compile(r"--?std[= ]?(?:c|gnu)\+\+(\d\w)\Z")
STANDARDS = {"17": "17", "1z": "17", "20": "20", "2a": "20", "23": "23", "2b": "23"}
# What both compilers choose themselves here: architectures, optimisation, debugging, warnings, libraries of CUDA.
CHOSEN = re.compile(
    r"-O\w*|-g\w*|-G|-W.*|-w|-m(64|arch=.*|tune=.*|avx\w*|fma|sse[\d.]*)|-shared|-static\S*|-pthread|-pedantic|-s|-dc"
    r"|-f(PIC|pic|PIE|no-.*|fast-math|visibility=.*|permissive|openmp-simd|rounding-math|strict-aliasing|inline\S*)"
    r"|-f?unroll-loops|--?(arch|code|gencode|generate-code|gpu-architecture|gpu-code)(=.*)?"
    r"|--?(lineinfo|generate-line-info|use_fast_math|resource-usage|expt-.*|extended-lambda|dlto|keep.*|default-stream=.*)"
    r"|--?(rdc=.*|relocatable-device-code=.*|x|t=?\d*|threads=?\d*|maxrregcount=?\d*|ptxas-options=.*|Xptxas(=.*)?)"
    r"|--?(Xcudafe(=.*)?|diag-suppress(=.*)?|ftz=.*|fmad=.*|prec-\w+=.*|cudart=?\w*|ccbin(=.*)?|compiler-bindir=.*)"
    r"|--?(forward-unknown-to-host-compiler|std=c\+\+(0x|11|14|03|98))"
)
# Of these the value is the next word.
WITH_VALUE = {
    *(
        "-arch",
        "-code",
        "-gencode",
        "--gpu-architecture",
        "--generate-code",
        "-Xptxas",
        "-Xcudafe",
        "-x",
        "-ccbin",
    ),
    *("-maxrregcount", "-diag-suppress", "-t", "--threads", "-cudart", "-o"),
}
# The launcher stands for the first of them, and the processor has none of the others.
OF_CUDA = re.compile(r"-l(cuda\w*|cu(blas|rand|fft|sparse|solver|dnn)\w*|npp\w*|nv\w*)")
LIBRARY = re.compile(r"-l[\w.+-]+|-L.+|-Wl,.*|-Xlinker.*")


class Flags:
    """Options as a makefile has them.

    Attributes:
        macros: definitions, as the compiler takes them: -DX=3, -UX.
        folders: of headers.
        standard: of C++, such as "20"; "" if none is asked for that is newer than the toolkit's.
        openmp: host code uses OpenMP.
        libraries: -l, -L.

    Raises:
        ValueError: an option is none that is known.
    """

    def __init__(self, words: Iterable[str]):
        self.macros: list[str] = []
        self.folders: list[str] = []
        self.libraries: list[str] = []
        self.standard, self.openmp = "", False
        waiting = list(words)
        while waiting:
            self._take(waiting.pop(0), waiting)

    def for_compiler(self) -> list[str]:
        """The options of g++ and clang++."""
        standard = [f"-std=c++{self.standard}"] * bool(self.standard)
        return [
            *self.macros,
            *(f"-I{folder}" for folder in self.folders),
            *standard,
            *["-fopenmp"] * self.openmp,
        ]

    def definitions(self) -> bytes:
        """The macros as a header has them."""
        found = []
        for word in self.macros:
            name, sign, value = word[2:].partition("=")
            found.append(f"#undef {name}" if word[1] == "U" else f"#define {name} {value if sign else 1}")
        return "".join(f"{line}\n" for line in found).encode()

    def for_linker(self) -> list[str]:
        return [*self.libraries, *["-fopenmp"] * self.openmp]

    def _take(self, word: str, waiting: list[str]) -> None:
        if word in ("-Xcompiler", "--compiler-options"):
            waiting[:1] = waiting[:1] and [w for w in re.split(r"[,\s]+", waiting[0].strip("\"'")) if w]
        elif found := re.match(r"(?:-Xcompiler|--compiler-options)=?(.+)", word):
            waiting[:0] = [w for w in re.split(r"[,\s]+", found[1].strip("\"'")) if w]
        elif word in ("-D", "-U", "-I", "-isystem", "-l", "-L") and waiting:
            self._take({"-isystem": "-I"}.get(word, word) + waiting.pop(0), waiting)
        elif word in ("-std", "--std") and waiting:
            self._take(f"-std={waiting.pop(0)}", waiting)
        elif re.match(r"-[DU]\w", word):
            self.macros.append(word)
        elif word.startswith("-I"):
            self.folders.append(os.path.abspath(os.path.expanduser(word[2:])))
        elif (found := STANDARD.match(word)) and found[1] in STANDARDS:
            self.standard = max(self.standard, STANDARDS[found[1]])
        elif word == "-fopenmp":
            self.openmp = True
        elif word in WITH_VALUE:
            del waiting[:1]
        elif CHOSEN.fullmatch(word) or OF_CUDA.fullmatch(word):
            return
        elif LIBRARY.fullmatch(word):
            self.libraries.append(word)
        else:
            raise ValueError(f"{word}: no option that is known here")
