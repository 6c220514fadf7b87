"""Sets of programs whose labels others gave: what is judged, how it is called, and what its label says."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tools.cuda.source import Source
from tools.files import read

WORDS = Path(__file__).parent / "words.h"


@dataclass
class Case:
    """One program. `wrong`: its label, or None. `text`: the file with a main() that calls its kernels."""

    file: Path
    wrong: bool | None
    arguments: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    text: str = ""
    mark: str = ""
    more: list[Path] = field(default_factory=list)
    right: str = ""  # what shows that it is right (whole.py)


def scor(folder: Path) -> Iterator[Case]:
    """github.com/csl-iisc/ScoR, its microbenchmarks."""
    for file in sorted((folder / "microbenchmarks" / "src").glob("*.cu")):
        yield Case(file, file.name.startswith("race"))


def esbmc(folder: Path) -> Iterator[Case]:
    """github.com/esbmc/esbmc, regression/cuda/benchmarks."""
    for place in sorted((folder / "regression" / "cuda" / "benchmarks").iterdir()):
        label = (place / "test.desc").read_text() if (place / "test.desc").exists() else ""
        wrong = "FAILED" in label if re.search("FAILED|SUCCESSFUL", label) else None
        for file in sorted([*place.glob("*.cu"), *place.glob("*.cpp")]):
            yield Case(file, wrong, options=["-include", str(WORDS)])


def indigo(folder: Path) -> Iterator[Case]:
    """github.com/burtscher/IndigoSuite, as its generator made it, with its header indigo_cuda.h. In the folder lies
    graph.egr, and 300 programs are drawn at random."""
    files = sorted(file for file in folder.rglob("*.cu"))
    for file in sorted(random.Random(50).sample(files, min(300, len(files)))):
        bugs = re.findall("atomicBug|raceBug|guardBug|syncBug|boundsBug", file.stem, re.I)
        yield Case(
            file, bool(bugs), [str(folder / "graph.egr"), "64", "20"], [f"-I{folder}"], mark="+".join(bugs)
        )


def gpuverify(folder: Path) -> Iterator[Case]:
    """github.com/mc-imperial/gpuverify, testsuite/CUDA. It has kernels only: arguments are invented, 1,024 threads
    a block at most, and 16,384 in all."""
    for file in sorted((folder / "testsuite" / "CUDA").rglob("*.cu")):
        text = read(str(file)).replace("\r", "")
        label, options, *_ = text.split("\n")
        sizes = {
            name: [int(n) for n in found[1].split(",")]
            if (found := re.search(rf"--{name}=\[?([\d,]+)\]?", options))
            else [1]
            for name in ("gridDim", "blockDim")
        }
        threads = shrunk(sizes["blockDim"], 1024)
        shrunk(sizes["gridDim"], max(2, 16384 // threads))
        kind = label.strip("/ ").lower()
        # The other labels are errors of GPUVerify's own front end.
        wrong = {"pass": False, "xfail:not_all_verified": True}.get(kind)
        if re.search(r"__other_int|__axiom", text):
            wrong = None  # it says what holds of values that no call can choose
        given = re.findall(r"-D\S+", options)
        around = ["-DJUDGE_GPUVERIFY", "-include", str(WORDS), f"-I{file.parent}", *given]
        yield Case(file, wrong, [], around, with_main(file, text, sizes))


def shrunk(extents: list[int], most: int) -> int:
    """Halve the largest extent until all have at most so many elements. Returns how many."""
    while (product := _product(extents)) > most and max(extents) > 1:
        extents[extents.index(max(extents))] //= 2
    return product


def _product(numbers: list[int]) -> int:
    return numbers[0] * _product(numbers[1:]) if numbers else 1


def with_main(file: Path, text: str, sizes: dict[str, list[int]]) -> str:
    source = Source(text, str(file))
    grid, block = (", ".join(map(str, sizes[name])) for name in ("gridDim", "blockDim"))
    shared = 16384 if "extern" in text and "__shared__" in text else 0
    lines = [text, "int main() {", f"  const dim3 grid({grid}), block({block});"]
    for kernel in (f for f in source.functions if f.is_kernel):
        head, body = text[kernel.head : kernel.at], text[kernel.body : kernel.end]
        name = kernel.name
        if found := re.search(r"template\s*<([^>]*)>", head):
            parts = found[1].split(",")
            name += f"<{', '.join('float' if re.match(r' *(typename|class)', p) else '16' for p in parts)}>"
        lines.append(f'  judge::invented("{kernel.name}", grid, block, [=](judge::Invented& given) {{')
        lines.append(f"    using K = decltype(&{name});")
        for i, parameter in enumerate(kernel.parameters):
            lines.append(f"    auto {parameter.name} = given.argument<judge::parameter<{i}, K>::type>();")
            if fixed := re.search(rf"__requires\([^;]*\b{parameter.name}\s*==\s*(\w+)\b", body):
                lines.append(f"    {parameter.name} = {fixed[1]};")
        for fresh in re.findall(r"__requires_fresh_array\(([^;]*)\);", body):
            lines.append(
                f"    {fresh} = given.array<std::remove_pointer_t<std::decay_t<decltype({fresh})>>>();"
            )
        names = ", ".join(parameter.name for parameter in kernel.parameters)
        lines.append(f"    {name}<<<grid, block, {shared}>>>({names});")
        lines.append("  });")
    return "\n".join([*lines, "}", ""])


def others(folder: Path) -> Iterator[Case]:
    """Any folder: a name with `race`, `bug` or `wrong` in it is wrong, unless it begins with `norace`."""
    for file in sorted(folder.rglob("*.cu")):
        clean = file.name.startswith("norace")
        yield Case(file, not clean and bool(re.search(r"race|bug|wrong", file.name, re.I)))


def programs(folder: Path) -> Iterator[Case]:
    """Whole programs, as lab/judge/programs.txt or the folder's own programs.txt lists them. `!`: wrong."""
    own = folder / "programs.txt"
    for line in (own if own.exists() else WORDS.with_name("programs.txt")).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        named, options, right = (part.strip() for part in [*line.split("|", 2), "", ""][:3])
        words = named.replace("@", str(folder)).split()
        wrong = words[0] == "!"
        files, *arguments = words[wrong:]
        first, *more = (folder / name for name in files.split("+"))
        given = [word.replace("@@", str(WORDS.parent)).replace("@", str(folder)) for word in options.split()]
        yield Case(first, wrong, arguments, given, more=more, right=right)


SETS = {s.__name__: s for s in (scor, esbmc, indigo, gpuverify, programs, others)}
