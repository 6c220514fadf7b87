"""Link a layer's library, and report undefined names.

    python -m tools.make.link OUTPUT.so WRAPPER.o LAYER.a [CORE.a] [--header LAYER.h] -- 'INFO' NVCC g++ ... -- OPTION

All of the layer's objects are linked, because no code names a static registerer. Of the toolkit's archives only the
needed objects are linked. Undefined names are errors here: otherwise they would appear when Python loads the library,
without the place that uses them. Python's own names may stay undefined. A file beside the library describes its build.

A host library is compiled for one kind of processor, so none of its code may run before src/edge/ffi_guard.h has
checked the processor. The loader would run static initialisers, so they are moved to a section that it does not know,
and run after that check.

Calls of functions that end a process are redirected to src/edge/ffi_guard.h, which ends only the layer's call.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from . import metadata
from .backends import HOST

# Names that the interpreter defines, and the sanitizers, which make sanitize loads first.
ELSEWHERE = re.compile(r"_?Py|__\w+san_")
# Functions that end a process.
WRAPPED = ("exit", "_exit", "quick_exit", "abort", "_ZSt9terminatev", "__assert_fail")
# g++ makes calls of these from a kernel's loops. A fault in them is the kernel's (src/host/host_launch.cpp).
COPIES = ("memcpy", "memmove", "memset")
# g++ loads its plugin for -flto into each link, which takes as long as to link.
GCC = re.compile(r"(.*[/-])?g\+\+(-[\d.]+)?")
UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")


def missing(linker_output: str) -> list[str]:
    """The linker's lines about undefined names, without the linker's name, and without names of Python's."""
    lines = linker_output.splitlines()
    ours = [line for line in lines if (name := UNDEFINED.search(line)) and not ELSEWHERE.match(name[1])]
    return [re.sub(r"^\S*ld: (warning: )?", "", line) for line in ours]


def explain(undefined: list[str], header: Path | None) -> str:
    found = {name[1] for line in undefined if (name := UNDEFINED.search(line))}
    if header:
        declared = sorted(found & set(re.findall(r"\w+", header.read_text(errors="replace"))))
        if declared:
            names = ", ".join(declared)
            return f'{header}: error: declared here but defined nowhere as `extern "C"`: {names}'
    whose = "the layer's folder" if header else "Neither the layer's folder nor the toolkit"
    return "\n".join(undefined) + (
        f"\nNothing in {whose} defines these." if header
        else f"\n{whose} defines these: files of the fork are missing here."
    )  # fmt: skip


def held_back(archives: list[Path], place: str, cxx: list[str]) -> list[Path]:
    """Copies of the archives, whose static initialisers src/edge/ffi_guard.h runs."""
    # The compiler's own: conda's tools, for example, have another name, and are not in PATH.
    asked = subprocess.run([*cxx, "-print-prog-name=objcopy"], capture_output=True, text=True, check=True)
    objcopy = asked.stdout.strip()
    made = [Path(place, f"{i}-{archive.name}") for i, archive in enumerate(archives)]
    for archive, copy in zip(archives, made, strict=True):
        # The flags make plain data of them. Else some linkers would find them by their section type. An ELF file has no
        # place for "rom", but without it these are the old flags, and objcopy keeps the old type. Flags that stand in
        # --rename-section itself cost the section its relocations until binutils 2.39: all its pointers became NULL.
        plain = ".init_array=alloc,load,data,contents,rom"
        move = ["--rename-section", ".init_array=caffe_initialisers", "--set-section-flags", plain]
        subprocess.run([objcopy, *move, archive, copy], check=True)
    # The linker defines names for the beginning and the end of them. They must not be exported.
    Path(place, "local").write_text("{ local: __start_caffe_initialisers; __stop_caffe_initialisers; };")
    return made


def main() -> int:
    split, end = (i for i, word in enumerate(sys.argv) if word == "--")
    files, (info, nvcc, *cxx), options = sys.argv[1:split], sys.argv[split + 1 : end], sys.argv[end + 1 :]
    header = Path(files[files.index("--header") + 1]) if "--header" in files else None
    output, wrapper, layer, *core = map(Path, files[: files.index("--header")] if header else files)
    partial = output.with_name(output.name + ".partial")
    commit = metadata.commit()
    wrapped = (*WRAPPED, *(COPIES if info.split()[0] == HOST.name else ()))
    with tempfile.TemporaryDirectory(prefix="link.") as place:
        if info.split()[0] == HOST.name:
            layer, *core = held_back([layer, *core], place, cxx)
            options.append(f"-Wl,--version-script={place}/local")
        if GCC.fullmatch(cxx[0]) and not any(word.startswith("-flto") for word in [*cxx, *options]):
            options.append("-fno-use-linker-plugin")
        done = subprocess.run(
            [*cxx, "-shared", "-o", partial, wrapper, "-Wl,--whole-archive", layer, "-Wl,--no-whole-archive", *core,
             *options, *(f"-Wl,--wrap={name}" for name in wrapped), "-Wl,--exclude-libs,ALL",
             "-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"],
            capture_output=True, text=True, errors="replace",
        )  # fmt: skip
    undefined = missing(done.stderr)
    if done.returncode or undefined:
        print(explain(undefined, header) if undefined else done.stderr)
        partial.unlink(missing_ok=True)
        return 1
    metadata.write(partial, output, info, nvcc, commit())
    os.replace(partial, output)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{error}")
