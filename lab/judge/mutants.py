"""Does the judge tell a mistake in a right kernel? Ten kinds of them, in the programs of the folder right, and six in
those of the folder tensor: kernels by cp.async, ldmatrix, mma.sync, wmma and mbarrier.

    python -m lab.judge.mutants --number 200 --seed 1 --jobs 2
    python -m lab.judge.mutants --folder tensor --number 200 --wanted 95
    python -m lab.judge.mutants --only "no atomic" --show       each mistake with what is told of it

Each program must be judged as right, and what it prints is the reference of its mutants. A mutant counts as told if the
judge's verdict is a class of mistakes; "no end", if it reached the limit of time, is counted apart.
Those that do not compile do not count. Nothing else is left out by hand: what would be right, too, is not made, by two
rules of SIMPLE, and the programs have sizes by which each of the others does something else. Both shares are printed,
because a right program that is slow has no end in time, either. Returns 1 if fewer than --wanted percent are told or
have no end: their program ends in a tenth of the limit.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cuffi.judging.findings import NO_VERDICT
from cuffi.judging.pool import judge_all
from lab.mutate.operators import Mutation

RIGHT = Path(__file__).resolve().parent / "right"
ATOMICS = {
    "atomicAdd": "+",
    "atomicMax": "max",
    "atomicMin": "min",
    "atomicExch": "=",
    "atomicCAS": "?",
    "atomicInc": "+1",
}
# What each kind looks for in the text before main(), and what it puts there. `\1` is the first group.
SIMPLE = {
    "no barrier": [(r"__sync(?:threads|warp)\(\);", ";")],
    "barrier in a condition": [(r"__syncthreads\(\);", "if (threadIdx.x % 2) __syncthreads();")],
    "no guard": [
        (r"\bif \([^;{}]*?(?:<|>=)[^;{}=]*?\) (?=[\w*]+[\[ (].*;)(?!return)", ""),
        (r"\bif \([^;{}]*?(?:<|>=)[^;{}]*?\) return;", ""),
        (r"(= )[^=;]*? < [^=;]*? \? (.*?) : [^;]*;", r"\1\2;"),
        (r"(\w+ < \w+)(?= && )", "true"),
        (r"(?<=&& )(\w+(?: \+ [\w.]+)? < \w+)(?=[) ])", "true"),
    ],
    # A step that doubles may come to the whole length: nobody is so far away.
    "off by one": [
        (r"(?<= )<(?= [\w*(])(?! [\w.]+; \w+ \*= 2)", "<="),
        (r"(?<= )>=(?= \w)", ">"),
        (r"(?<= )>(?= 0; )", ">="),
    ],
    "index off by one": [
        (r"(?<=[\w\]])\[([^\[\]]+)\](?!\s*\[|, \w+\[|;\n  (?:int|float|__shared__) )", r"[\1 + 1]")
    ],
    "block or axis forgotten": [
        (r"blockIdx\.x \* blockDim\.x \+ ", ""),
        (r"\bblockIdx\.y\b", "blockIdx.x"),
        (r"\bthreadIdx\.y\b", "threadIdx.x"),
        (r"(?<=\[)blockIdx\.x(?=[\]. *])", "0"),
        (r"\b(\w*warp)\b(?=\]| \+ 1)", "0"),
    ],
    "another lane": [
        (r"0xffffffff(?=, [^;]*\))", "0xffff"),
        # Of xor: 17, 9, 5, 3 and 2 reach all lanes, too.
        (r"(__shfl_(?!xor)\w+\(0xffffffff, .*?), (\w+)\)", r"\1, \2 + 1)"),
        (r"__shfl_down_sync", "__shfl_up_sync"),
        (r"__shfl_up_sync", "__shfl_down_sync"),
    ],
}
OF_SHARED = (r"(__shared__ \w+ \w+(?:\[\w+\])?)\[([^\]]+)\]", r"\1[(\2) / 2]")
OF_HOST = {
    "too small": [
        (r"(cudaMalloc\(&\w+(?:\[\d\])?), (.*)\);", r"\1, (\2) / 2);"),
        (r"(<<<.*, )(\w[^>]* \* sizeof\(\w+\))>>>", r"\1(\2) / 2>>>"),
    ],
    "not set": [(r"cudaMem(?:set|cpyToSymbol)\(.*\);", ";")],
}
SET = r"(?m)^ +(?:if \(.*\) )?\w+\[[^=\n]*\] = (?:0|1|[^;]* \? [^;]*: 0|v|sum|m|__popc\(\w+\));"
# The kinds of the folder tensor.
WAIT = r"wait<\d>\(\);|(?:if \(.*?\) )?wait_phase\(.*?\);|__pipeline_wait_prior\(\d\);"
OF_TENSORS = {
    "no wait": [(WAIT, ";")],
    "no barrier": SIMPLE["no barrier"],
    "no commit": [(r"\bcommit\(\);|__pipeline_commit\(\);", ";")],
    "wrong group": [(r"wait<0>", "wait<1>"), (r"wait<1>", "wait<2>"), (r"wait_prior\(1\)", "wait_prior(2)")],
    "wrong phase": [(r"(wait_phase\(.*?), (.*?)\);", r"\1, 1 ^ (\2));"), (r"arrive\(&\w+\[.*?\]\);", ";")],
    "wrong fragment": [
        (r"lane / (\d+)(?! *% )", r"lane % \1"),
        (r"lane % (\d+)(?! / )", r"lane / \1"),
        (r"(?<=\+ )i / 2 \* 8|(?<=\+ )r % 2 \* 8|(?<=\+ )r / 2 \* 4|(?<=\+ )i % 2\b", "0"),
        (r"tile \* 8", "tile * 4"),
        (r"\[(1 - )?stage\]", "[0]"),
    ],
}


class Mutant(Mutation):
    """A piece of a program, and the text that replaces it."""

    def name(self, source: str) -> str:
        """The program, its line, the kind, and the line as it is now."""
        number = self.line(source)
        lines = self.apply(source).splitlines()
        return f"{self.path}:{number}: {self.kind}: {lines[number - 1].strip()}"


def mutants(program: str, source: str, of_tensors: bool = False) -> Iterator[Mutant]:
    """All mistakes of a program."""
    main = source.index("int main()")
    kinds = OF_TENSORS if of_tensors else SIMPLE

    def found(kind: str, pattern: str, by: str, first: int, last: int) -> Iterator[Mutant]:
        for match in re.compile(pattern).finditer(source, first, last):
            yield Mutant(program, *match.span(), match.expand(by), kind)

    for kind, ways in kinds.items():
        for pattern, by in ways:
            for one in found(kind, pattern, by, 0, main):
                if kind != "index off by one" or "__shared__" not in _line(source, one.start):
                    yield one
    if of_tensors:
        return
    for kind, ways in OF_HOST.items():
        for pattern, by in ways:
            yield from found(kind, pattern, by, main, len(source))
    yield from found("too small", *OF_SHARED, 0, main)
    yield from found("not set", SET, ";", 0, main)
    yield from _without_atomics(program, source, main)


def _line(source: str, at: int) -> str:
    return source[source.rfind("\n", 0, at) + 1 : source.find("\n", at)]


def _without_atomics(program: str, source: str, main: int) -> Iterator[Mutant]:
    """Each atomic as what it does, in steps."""
    for match in re.compile(r"\b(atomic\w+)\(").finditer(source, 0, main):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        words = _split(source[match.end() : end - 1])
        place = f"*({words[0]})"
        by = {
            "+": f"({place} += {words[1]}) - ({words[1]})"
            if source[end] != ";"
            else f"{place} += {words[1]}",
            "max": f"{place} = max({place}, {words[1]})",
            "min": f"{place} = min({place}, {words[1]})",
            "=": f"{place} = {words[1]}",
            "?": f"({place} == {words[1]} ? ({place} = {words[-1]}, {words[1]}) : {place})",
            "+1": f"{place} += 1",
        }[ATOMICS[match[1]]]
        yield Mutant(program, match.start(), end, by, "no atomic")


def _split(text: str) -> list[str]:
    """Arguments, by the commas outside of brackets."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        words = [*words, ""] if letter == "," and not depth else [*words[:-1], words[-1] + letter]
    return [word.strip() for word in words]


def drawn(
    sources: dict[str, str], number: int, seed: int, only: list[str], folder: Path = RIGHT
) -> list[Mutant]:
    """As many of each kind, no two alike."""
    by_kind: dict[str, dict[str, Mutant]] = collections.defaultdict(dict)
    for program, source in sources.items():
        for one in mutants(program, source, folder != RIGHT):
            if one.apply(source) != source:
                by_kind[one.kind].setdefault(one.name(source), one)
    chosen = []
    for kind in sorted(by_kind):
        if not only or kind in only:
            all_of = list(by_kind[kind].values())
            random.Random(f"{seed} {kind}").shuffle(all_of)
            chosen += all_of[: -(-number // (len(only) or len(by_kind)))]
    return chosen


def judged(requests: list[dict], jobs: int, seconds: float) -> dict[str, dict]:
    return {one["id"]: one for one in judge_all(requests, jobs, options=[f"--seconds={seconds:g}"])}


def is_told(said: dict) -> bool:
    return said["verdict"] not in {"ok", *NO_VERDICT}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", nargs="*", default=[], metavar="KIND")
    parser.add_argument("--wanted", type=float, default=98)
    parser.add_argument("--show", action="store_true", help="print what is told of each")
    parser.add_argument("--folder", choices=("right", "tensor"), default="right")
    options = parser.parse_args()
    programs = RIGHT.parent / options.folder
    sources = {file.name: file.read_text() for file in sorted(programs.glob("*.cu"))}
    first = judged(
        [{"id": name, "files": [str(programs / name)]} for name in sources], options.jobs, options.seconds
    )
    if wrong := {name: said["verdict"] for name, said in first.items() if said["verdict"] != "ok"}:
        sys.exit(f"these programs must be right: {wrong}")
    with tempfile.TemporaryDirectory() as folder:
        requests, kinds = [], {}
        for header in RIGHT.parent.glob("*/*.h"):
            (to := Path(folder) / header.parent.name).mkdir(exist_ok=True)
            (to / header.name).write_text(header.read_text())
        for number, one in enumerate(drawn(sources, options.number, options.seed, options.only, programs)):
            source = sources[one.path]
            file = Path(folder) / options.folder / f"{number}.cu"
            file.write_text(one.apply(source))
            said = f"print({first[one.path]['output']!r}, end='')"
            (reference := file.with_suffix(".py")).write_text(said)
            kinds[name := one.name(source)] = one.kind
            requests.append({"id": name, "files": [str(file)], "reference": str(reference)})
        answers = judged(requests, options.jobs, options.seconds)
    return report(answers, kinds, options)


def report(answers: dict[str, dict], kinds: dict[str, str], options: argparse.Namespace) -> int:
    """Print what was told of how many."""
    counts, told, endless = (collections.Counter[str]() for _ in range(3))
    for name, said in answers.items():
        if said["verdict"] == "not-built":
            continue
        counts[kinds[name]] += 1
        told[kinds[name]] += is_told(said)
        endless[kinds[name]] += said["verdict"] == "hang"
        if options.show or not is_told(said):
            text = said["findings"][0]["text"].splitlines()[0] if said["findings"] else ""
            print(f"{'' if is_told(said) else 'NOT TOLD '}{name}: {said['verdict']} {text[:200]}")
    for kind in sorted(counts):
        print(f"{kind:24} {told[kind]} of {counts[kind]}, no end {endless[kind]}")
    shares = [
        100 * found / max(1, counts.total()) for found in (told.total(), told.total() + endless.total())
    ]
    print(
        f"told {told.total()} of {counts.total()} ({shares[0]:.1f}%),"
        f" no end {endless.total()} ({shares[1]:.1f}% with these), seed {options.seed}"
    )
    return shares[1] < options.wanted


if __name__ == "__main__":
    sys.exit(main())
