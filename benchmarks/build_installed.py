"""load_inline of a new string where pip installed the toolkit's wheels, beside the same in the checkout.

The wheels are built from the checkout, and installed into a new environment over the packages of this Python. Each
string is compiled in a process of its own. The time is what a user waits for after `import torch`: the import of the
toolkit, load_inline, and one call. "again" is the same string in another process. The processor's time is that of all
programs that the process starts, too: it says more on a busy machine.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch

from . import _machine, _make
from ._report import Report, Settings
from ._timing import in_turns

GROUP = "build"
CHECKOUT, INSTALLED = "checkout", "installed"
NEW, AGAIN = "a new string", "again"
# Seconds on an installed wheel that are asked of each way.
TARGETS = {"host": 0.7, "cuda by nvcc": 1.4, "cuda by nvrtc": 0.3}
PROGRAM = """
import json, resource, sys, time, torch
number, backend, device = sys.argv[1:]
x = torch.arange(1000.0, device=device)
y = torch.zeros_like(x)
def processor():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
start, before = time.perf_counter(), processor()
import cuffi
module = cuffi.load_inline("twice", '''
__global__ void twice(int64_t n, const float* bottom, float* top) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) top[i] = 2 * bottom[i] + %s;
}
__host__ void run(int64_t n, const float* b, float* t) { twice<<<(n + 255) / 256, 256>>>(n, b, t); }
''' % number, backends=backend)
module.twice(1000, x, y)
if device != "cpu":
    torch.cuda.synchronize()
seconds = time.perf_counter() - start
used = processor() - before
assert torch.equal(y, 2 * x + int(number)), "the kernel's result is wrong"
print(json.dumps([seconds, used, cuffi.__file__]))
"""


class Way(NamedTuple):
    """What compiles a string for what."""

    name: str
    backend: str
    device: str
    environment: dict[str, str]


def measure(settings: Settings) -> Report:
    report = Report("load_inline where pip installed the wheels, and in the checkout, s (s of the processor)")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        start = time.perf_counter()
        pythons = {CHECKOUT: Path(sys.executable), INSTALLED: installed(place)}
        report.notes.append(f"Both wheels were built and installed in {time.perf_counter() - start:.0f} s.")
        for way in ways():
            first = Strings(pythons[INSTALLED], place / "empty", way, True)
            report.notes.append(
                f"{way.name}, the first string of an empty cache, installed: {first():.2f} s."
            )
            for what, least in ((NEW, 2 if settings.quick else 5), (AGAIN, 3 if settings.quick else 5)):
                timers = {
                    name: Strings(python, place / name, way, what == NEW) for name, python in pythons.items()
                }
                times = in_turns(dict(timers), 0, least=least, warm=True)
                columns = {
                    name: f"{times.median(name):.3f} ({min(timer.processor):.3f})"
                    for name, timer in timers.items()
                }
                report.row(way=way.name, what=what, **columns)
                here = _machine.here(way.device)
                if what == NEW:
                    asked = TARGETS[way.name]
                    report.figure(
                        f"a new string, installed, {way.name}, s", here, times.median(INSTALLED), asked
                    )
                    ratio = times.ratio(INSTALLED, CHECKOUT)
                    report.figure(f"a new string, {way.name}, installed / checkout", here, ratio, 1.1)
    return report


def ways() -> list[Way]:
    found = [Way("host", "host", "cpu", {})]
    if torch.cuda.is_available():
        found += [Way("cuda by nvrtc", "cuda", "cuda", {"CUFFI_CUDA": "nvrtc"})]
        if _make.has_nvcc():
            found += [Way("cuda by nvcc", "cuda", "cuda", {"CUFFI_CUDA": "nvcc"})]
    return found


def installed(place: Path) -> Path:
    """The Python of a new environment that has the checkout's wheels, over the packages of this one."""
    pip = [sys.executable, "-m", "pip"]
    wheels, environment = place / "wheels", place / "environment"
    _make.run(
        [*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), ".", "./packaging/nets"]
    )
    _make.run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    packages = sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)})
    Path(packages, "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = environment / "bin" / "python"
    files = [str(file) for file in sorted(wheels.glob("cuffi*.whl"))]
    _make.run([*pip, "--python", str(python), "install", "-q", "--no-deps", *files])
    return python


class Strings:
    """A timer of load_inline in a process of its own: of a new string each time, or always of the same.

    Attributes:
        processor: the seconds of the processor that each took.
    """

    def __init__(self, python: Path, cache: Path, way: Way, new: bool):
        self.python, self.cache, self.way, self.new = python, cache, way, new
        self.number, self.processor = 0, list[float]()

    def __call__(self) -> float:
        self.number += self.new
        self.cache.mkdir(exist_ok=True)
        environment = os.environ | self.way.environment | {"CUFFI_CACHE": str(self.cache)}
        is_checkout = str(self.python) == sys.executable
        environment["PYTHONPATH"] = str(_make.ROOT) if is_checkout else ""
        command = [str(self.python), "-c", PROGRAM, str(self.number), self.way.backend, self.way.device]
        done = subprocess.run(command, cwd=self.cache, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{self.way.name}: {done.stderr[-2000:]}")
        seconds, used, file = json.loads(done.stdout.splitlines()[-1])
        if Path(file).is_relative_to(_make.ROOT) != is_checkout:
            raise RuntimeError(f"{file} is not of the {CHECKOUT if is_checkout else INSTALLED} toolkit")
        self.processor.append(used)
        return seconds
