"""Is this kernel right? Judge CUDA files on the processor, without a GPU.

    python -m cuffi.judge file.cu [more.cu] [--json] [-- arguments of its main()]
    python -m cuffi.judge file.py [--reference ref.py]    a Python file that calls load_inline or load
    python -m cuffi.judge --resident < requests     JSON lines {"files": [...]} or {"text": "...", "name": "k.py"};
                                                    one answer a line

A file with main() runs as it is. Of a file without one, the host functions that launch its kernels are called, or else
the kernels themselves, with arguments by their types, on several sizes. Two programs run side by side: one under the
race finder, one under AddressSanitizer and UBSan.

--reference: of a .cu, a Python file that prints what its main() must print. Of a .py, a Python file whose Model is what
the ModelNew of the .py must compute, for what its get_inputs() returns (KernelBench's words).

Exit status: 0 nothing found, 1 wrong, 2 usage, 3 no verdict.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from . import proving
from .command_line import Parser
from .judging import kept
from .judging.defined import unfit_pair
from .judging.findings import NO_VERDICT, Finding, gravest, of_log, sampled
from .judging.invented import Invented
from .judging.limits import Limits, Ran, interrupted
from .judging.pool import judge_all
from .judging.programs import NotBuilt, Program
from .judging.python import Script
from .judging.remedies import remedy
from .judging.resident import Resident
from .judging.shown import for_github, lines, sarif, shown

NO_ARGUMENTS = "; no kernel had run; arguments of main() follow --, and nothing can be typed"
OF_SCRIPT = "; no kernel had run; the script's arguments follow --"
OF_REFERENCE = ". --reference takes the .py file with Model and get_inputs(), or what prints main()'s output"
OF_OTHERS = (
    ".txt", ".md", ".rst", ".json", ".yaml", ".yml", ".toml", ".ipynb", ".prototxt", ".so", ".o", ".ptx",
)  # fmt: skip
SCHEMA = 3  # of the JSON
BLOCKS = 64  # of a launch, under the race finder


def judge(
    files: list,
    arguments: Iterable[str] = (),
    limits: Limits | None = None,
    options: Iterable[str] = (),
    blocks: int = BLOCKS,
    reference=None,
    promises=None,
) -> dict:
    """Judge the program that these files make.

    Args:
        files: paths of .cu files, or of one .py.
        arguments: of its main().
        limits: of each run.
        options: further options for the compiler, such as -DN=3.
        blocks: how many blocks of a launch the race finder runs at most.
        reference: path of a .py (--reference).
        promises: what is promised of the arguments of functions, by their names (judging/promises.py).

    Returns:
        A dict that JSON can have (docs/judge-a-kernel.md).
    """
    began, limits = time.perf_counter(), limits or Limits()
    paths = [Path(file).resolve() for file in files]
    said: dict = {"schema": SCHEMA, "files": [str(path) for path in paths], "limits": asdict(limits)}
    outcome = Outcome()
    try:
        its, words, asked = Path(reference).resolve() if reference else None, list(arguments), list(options)
        if paths[0].suffix == ".py":
            program: Program | Script = Script(paths, words, asked, its)
            if wrong := unfit_pair(paths[0], its):
                raise NotBuilt("incomplete", [wrong])
        else:
            program = Program(paths, words, asked, its, promises)
        _run(program, outcome, limits, blocks, bool(arguments))
    except NotBuilt as error:
        outcome.findings = [Finding(error.kind, line) for line in error.lines]
    except (OSError, subprocess.SubprocessError, ValueError, RecursionError) as error:
        outcome.findings = [Finding("not-built", f"{type(error).__name__}: {error}")]
    verdict, status = gravest(findings := outcome.findings)
    findings.sort(key=lambda one: (one.is_warning, one.kind != verdict))
    return {
        "verdict": verdict,
        "status": status,
        "findings": [asdict(one) | {"remedy": remedy(one)} for one in findings],
        "ran": sorted(outcome.ran),
        "not_run": outcome.not_run,
        **outcome.outputs,
        "seconds": round(time.perf_counter() - began, 3),
        **said,
    }


@dataclass
class Outcome:
    """What the runs of a program gave."""

    findings: list[Finding] = field(default_factory=list)
    ran: set[str] = field(default_factory=set)
    not_run: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)


def _run(program: Program | Script, outcome: Outcome, limits: Limits, blocks: int, has_arguments: bool):
    """Run both programs, side by side."""
    with kept.of_a_run() as place, ThreadPoolExecutor(2) as pool:
        folder = Path(place)
        races = pool.submit(_races, program, folder, limits, blocks)
        memory = pool.submit(_memory, program, folder, limits)
        found, outcome.ran, outcome.not_run = races.result()
        more, outcome.outputs = memory.result()
        found = _without_doubles(found + more)
        if program.is_invented:
            found = _invented(program, folder, limits, blocks).certain(found)
            outcome.not_run = [why for why in outcome.not_run if "a grid of 0 x" not in why]  # of no elements
        found = [program.placed(one) for one in found]
    if not outcome.ran:  # then there is no kernel, either, instead of which torch computes
        found = [one for one in found if one.kind != "not-the-kernel"]
    outcome.not_run += [
        f"{name}: did not run" for name in program.kernels if outcome.ran and name not in outcome.ran
    ]
    if not outcome.ran and not found:
        found.append(Finding("incomplete", "no kernel ran"))
    elif (
        not outcome.ran and not has_arguments
    ):  # a main() that says how it is used, or takes what is not there
        is_script = isinstance(program, Script)
        takes = is_script or program.unbuilt.takes_arguments
        said = OF_SCRIPT if is_script else NO_ARGUMENTS
        found = [
            one
            if one.kind in NO_VERDICT or ((one.place or one.kind == "launch") and not takes)
            else replace(one, kind="incomplete", text=one.text + said)
            for one in found
        ]
    outcome.findings = found
    outcome.not_run += program.not_judged
    if isinstance(program, Script) and program.drift:
        outcome.outputs["drift"] = program.drift


def _races(program: Program | Script, folder: Path, limits: Limits, blocks: int):
    """Under the race finder: from the first thread, and if nothing is found, from the last, and changing at atomics."""
    settings = {"CAFFE_RACES_BLOCKS": str(blocks)}
    first = program.run("races", folder, limits, **settings)
    found, ran, left = of_log(first.log)
    found += program.findings(first, limits.seconds)
    if first.stopped == "time" and (again := _sample(program, "races", folder, limits, blocks)):
        more, its, why = of_log(again.log)
        found, ran, left = sampled([*found, *more], again, limits.seconds), ran | its, [*left, *why]
    elif all(one.is_warning for one in found):
        # A program whose threads wait for earlier ones does not end so, which says nothing.
        within = replace(limits, seconds=min(limits.seconds, program.more_seconds))
        for order in ("CAFFE_RACES_BACKWARDS", "CAFFE_RACES_CHANGING"):
            again = program.run("races", folder, within, **settings, **{order: "1"})
            found += [one for one in of_log(again.log)[0] if one.kind == "race"]
    return found, ran, left


def _invented(program: Program | Script, folder: Path, limits: Limits, blocks: int) -> Invented:
    within = replace(limits, seconds=min(limits.seconds, program.more_seconds))

    def races(**settings) -> list[Finding]:
        settings |= {"CAFFE_RACES_BLOCKS": str(blocks)}
        first, last = (
            program.run("races", folder, within, **settings, **more)
            for more in ({}, {"CAFFE_RACES_BACKWARDS": "1"})
        )
        return of_log(first.log)[0] + of_log(last.log)[0]

    def memory(**settings) -> list[Finding]:
        return program.findings(program.run("memory", folder, within, **settings), within.seconds)

    return Invented(races, memory)


def _sample(program: Program | Script, mode: str, folder: Path, limits: Limits, blocks: int) -> Ran | None:
    """Run a program that was out of time by a sample of its blocks. None: that is not known how."""
    if isinstance(program, Script) or program.is_invented:
        return None
    settings = {
        "CAFFE_RACES_BLOCKS": str(blocks),
        "CAFFE_JUDGE_SAMPLE": str(blocks),
        "CAFFE_JUDGE_SECONDS": str(max(1, int(limits.seconds * 0.8))),
    }
    return program.run(mode, folder, limits, **settings)


def _memory(program: Program | Script, folder: Path, limits: Limits):
    """Under AddressSanitizer and UBSan."""
    ran = program.run("memory", folder, limits)
    if ran.stopped == "time" and (again := _sample(program, "memory", folder, limits, BLOCKS)):
        found = program.findings(again, limits.seconds)
        found = sampled([*program.findings(ran, limits.seconds), *found], again, limits.seconds)
    else:
        found = program.findings(ran, limits.seconds) or program.result(ran)
    return found, {"output": ran.output[-4000:], "errors": ran.errors[-4000:]}


def _without_doubles(findings: list[Finding]) -> list[Finding]:
    """Both programs may tell of one mistake. The hang of one, if the other ended, says that it was slow."""
    told: dict[tuple, Finding] = {}
    for one in findings:
        told.setdefault((one.kind, one.place if one.kind != "hang" else "", one.place or one.text), one)
    return list(told.values())


def resident(limits: Limits, options: list[str], blocks: int = BLOCKS) -> int:
    """Answer requests from standard input, one JSON object a line, until it ends."""
    for answer in Resident(judge, limits, options, blocks).answers(sys.stdin):
        print(answer, flush=True)
    return 0


def many(given: argparse.Namespace, arguments: list[str], options: list[str]) -> int:
    """Judge each file alone. Returns 1 if one is wrong, else 3 if one has no verdict."""
    asked = [
        *options,
        f"--seconds={given.seconds:g}",
        f"--megabytes={given.megabytes}",
        f"--blocks={given.blocks}",
    ]
    requests = (
        {"files": [str(Path(file).resolve())], "arguments": arguments, "reference": given.reference}
        for file in given.files
    )
    statuses = set()
    for said in judge_all(requests, given.jobs, options=asked):
        print(json.dumps(said), flush=True)
        statuses.add(said["status"])
    return next((status for status in (1, 2, 3) if status in statuses), 0)


def parser() -> Parser:
    made = Parser(
        prog="cuffi judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("files", nargs="*", metavar="file.cu")
    made.add_argument("--reference", metavar="ref.py", help="what must come out")
    made.add_argument("--promises", metavar="FILE", help="JSON with what is promised of kernels' arguments")
    made.add_argument(
        "--prove", action="store_true", help="of what is not wrong, prove it for every size (z3)"
    )
    made.add_argument("--json", action="store_true", help="print one JSON object")
    made.add_argument("--lines", action="store_true", help="print file:line:column: error: ..., for editors")
    made.add_argument("--sarif", metavar="FILE", help="write the findings as SARIF 2.1.0, too")
    made.add_argument("--annotate", action="store_true", help="print GitHub's annotations, too")
    made.add_argument("--resident", action="store_true", help="read requests from standard input")
    jobs = "judge each file alone, N at once: a JSON line for each, in order"
    made.add_argument("--jobs", type=int, metavar="N", help=jobs)
    made.add_argument("--seconds", type=float, default=20, help="of each run (20)")
    made.add_argument("--megabytes", type=int, default=6000, help="of memory of each run (6000)")
    made.add_argument(
        "--blocks", type=int, default=BLOCKS, help=f"of a launch for the race finder ({BLOCKS})"
    )
    made.add_argument(
        "-D", action="append", default=[], metavar="NAME=VALUE", help="a macro for the compiler"
    )
    made.add_argument("-I", action="append", default=[], metavar="FOLDER", help="a folder of headers")
    return made


def _no_file(path: Path, given: list[str]) -> str:
    """What is said of a path that is no file, with what is near it."""
    if path.is_dir():
        inside = sorted(f"{path / f.name}" for f in path.iterdir() if f.suffix in (".cu", ".py"))
        return f"{path} is a folder: name its files: {' '.join(inside[:4]) or 'it has no .cu and no .py'}"
    if not path.parent.is_dir():
        return f"no file {path}: there is no folder {path.parent}"
    beside = [f.name for f in path.parent.iterdir() if f"{f}" not in given]
    near = difflib.get_close_matches(path.name, beside, n=1)
    where = f"; did you mean {path.with_name(near[0])}?" if near else f" in {path.absolute().parent}"
    return f"no file {path}{where}"


def _usage(given: argparse.Namespace) -> str:
    """What is wrong with the command line; "" if nothing."""
    for file in (words := [*given.files, *filter(None, [given.reference, given.promises])]):
        if not Path(file).is_file():
            its = OF_REFERENCE if file == given.reference and not Path(file).is_dir() else ""
            return _no_file(Path(file), [f"{Path(word)}" for word in words]) + its
    if other := next((file for file in given.files if Path(file).suffix in OF_OTHERS), ""):
        return f"{other} is no CUDA file: name a .cu or a .py"
    if given.promises:
        try:
            if not isinstance(json.loads(Path(given.promises).read_text()), dict):
                return f"{given.promises}: expected a JSON object"
        except ValueError as error:
            return f"{given.promises}: {error}"
    if not given.files:
        return "name a .cu or a .py file"
    if given.prove and (wrong := proving.why_not(given.files, given.jobs)):
        return wrong
    if not given.jobs and len(given.files) > 1 and any(file.endswith(".py") for file in given.files):
        return "a .py file is judged alone"
    return ""


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    at = words.index("--") if "--" in words else len(words)
    try:
        given = parser().parse_args(words[:at])
    except SystemExit as end:
        return 2 if end.code else 0
    limits = Limits(given.seconds, given.megabytes, building=min(Limits.building, 5 * given.seconds))
    options = [*(f"-D{word}" for word in given.D), *(f"-I{Path(word).resolve()}" for word in given.I)]
    if given.resident and not given.prove:
        return resident(limits, options, given.blocks)
    if wrong := _usage(given):
        print(f"cuffi judge: {wrong}", file=sys.stderr)
        return 2
    if given.jobs:
        return many(given, words[at + 1 :], options)
    promises = json.loads(Path(given.promises).read_text()) if given.promises else None

    def judged(promises: Mapping | None) -> dict:
        own = words[at + 1 :]
        return judge(given.files, own, limits, options, given.blocks, given.reference, promises)

    said = judged(promises)
    if given.prove:
        from .proving.judged import with_proofs

        said = with_proofs(said, given.files, options, promises, judged)
    print(json.dumps(said, indent=1) if given.json else lines(said) if given.lines else shown(said))
    if given.annotate and said["findings"]:
        print(for_github(said))
    if given.sarif:
        Path(given.sarif).write_text(json.dumps(sarif([said]), indent=1) + "\n")
    return said["status"]


def _interrupted(*_):
    interrupted.set()
    raise KeyboardInterrupt


def command() -> int:
    """`main`, which ends quietly if nobody reads what it prints, and by Ctrl-C."""
    try:
        signal.signal(signal.SIGINT, _interrupted)
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes as it ends
        return 141
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(command())
