"""make sanitize: every case under AddressSanitizer, UBSan, the race finder and, on a GPU, compute-sanitizer.

It works in a copy of the layers, so that the libraries in use do not change. initcheck runs without half: it does not
see the writes of cuBLAS's half products (by TMA, on Hopper), and would report their results as uninitialised.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys

from ..refused import Refused
from . import requirements
from .backends import CPU, GPU
from .build import build, copied, is_dry, make_flags
from .job import Job
from .settings import ROOT, Settings, of_each_folder

# The status of tools.cases.run_cases if nothing is wrong, but some layer has no cases and no fitting guess.
NO_VERDICT = 3


def library(cxx: str, name: str) -> str:
    command = [*shlex.split(cxx), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def run_cases(
    layers_dir: str, device: str, environment: dict[str, str], *further: str, tool: tuple[str, ...] = ()
) -> int:
    command = [
        sys.executable,
        "-m",
        "tools.cases.run_cases",
        f"--layers-dir={layers_dir}",
        "--device",
        device,
    ]
    return subprocess.call([*tool, *command, *further], env=os.environ | environment)


def on_the_host(settings: Settings) -> dict[str, int]:
    """Statuses by what was done: build, cases and random calls under AddressSanitizer and UBSan."""
    made = copied(settings, "1", f"{settings.build}/sanitize")
    if status := build(Job(made), keep_going=True):
        return {"build for AddressSanitizer": status}
    print("AddressSanitizer, UBSan:", flush=True)
    checked = {
        "CUDA_VISIBLE_DEVICES": "",
        "LD_PRELOAD": f"{library(settings.cxx, 'libasan.so')} {library(settings.cxx, 'libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    fuzz = [sys.executable, "-m", "lab.fuzz", f"--layers-dir={made.layers_dir}"]
    return {
        "AddressSanitizer, UBSan": run_cases(made.layers_dir, CPU, checked),
        "random calls": subprocess.call(fuzz, env=os.environ | checked),
    }


def races(settings: Settings) -> dict[str, int]:
    made = copied(settings, "races", f"{settings.build}/races")
    if status := build(Job(made), keep_going=True):
        return {"build for the race finder": status}
    print("Races between a launch's threads:", flush=True)
    return {"races": run_cases(made.layers_dir, CPU, {"CUDA_VISIBLE_DEVICES": ""})}


def on_the_gpu(settings: Settings) -> dict[str, int]:
    import torch

    if not torch.cuda.is_available():
        print("compute-sanitizer: no GPU here")
        return {}
    found = {}
    for tool in ("memcheck", "racecheck", "initcheck"):
        print(f"compute-sanitizer {tool}:", flush=True)
        further = ["--dtypes", "float32", "float64"] if tool == "initcheck" else []
        before = ("compute-sanitizer", "--tool", tool, "--error-exitcode", "9")
        # torch's CUDA allocator must not cache: a write past a tensor's end would hit other memory of torch's, and
        # nobody would notice.
        uncached = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
        found[tool] = run_cases(settings.layers_dir, GPU, uncached, *further, tool=before)
    return found


def sanitize(settings: Settings) -> int:
    """Run all stages, also after an error. The status is 3, "no verdict", only if nothing is wrong."""
    os.makedirs(settings.build, exist_ok=True)
    requirements.need(["build", "run", "test"], f"{settings.build}/packages.test")
    status = build(Job(settings))
    if status or is_dry(make_flags()):
        return status
    found = on_the_host(settings) | races(settings) | on_the_gpu(settings)
    words = {0: "clean", NO_VERDICT: "no verdict on some layers"}
    said = "; ".join(
        f"{what}: {words.get(status, f'FAILED (status {status})')}" for what, status in found.items()
    )
    print(f"make sanitize: {said}")
    wrong = [status for status in found.values() if status not in words]
    return max(wrong, default=max(found.values()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", metavar="NAME=value", help="make's, as LAYERS_DIR=/my/layers")
    arguments = parser.parse_args().settings
    os.chdir(ROOT)
    try:
        settings, unknown = of_each_folder(arguments)
        if unknown:
            parser.error(f"no such setting: {' '.join(unknown)}")
        return max([sanitize(one) for one in settings])
    except Refused as error:
        print(f"make sanitize: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
