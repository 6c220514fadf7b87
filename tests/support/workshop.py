"""Building in a test: make itself, layers that are built once per run, and a Workshop of tiny layers."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Generator
from pathlib import Path

import torch
from support import python_with_torch
from support.compiler import CXX

from cuffi.runtime.cases import load_package
from tools.make.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"


class Made(subprocess.CompletedProcess):
    """A run of make."""

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def make(*arguments: str, timeout: float = 120, with_torch: bool = False, **environment) -> Made:
    """Run make in the toolkit's folder, with this Python.

    Args:
        with_torch: with one that has imported torch, which `make all` does to run the layers. Not with -j.
    """
    python = python_with_torch.script() if with_torch else sys.executable
    command = ["make", "--no-print-directory", "-C", str(ROOT), f"PYTHON={python}", *arguments]
    # A make above this one (make test) would hand down its own options.
    above = {
        k: v
        for k, v in os.environ.items()
        if k not in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "LAYERS_DIR")
    }
    given = above | {"PWD": str(ROOT)} | environment
    return Made(**vars(subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=given)))


CORE = Settings({"NVCC": "", "CXX": CXX})


def core_archives() -> list[Path]:
    """The tree's own Caffe core for the host, made: its stock layers, and all else."""
    command = [sys.executable, "-m", "tools.make.build", "core", "NVCC=", f"CXX={CXX}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return [ROOT / CORE.core_of("host") / f"lib{name}.a" for name in ("stock", "caffe")]


CAFFES = ("-Icuffi/caffe_layers/include", "-Icuffi/caffe_layers/include/legacy")


def core_includes() -> list[str]:
    """The include options of a program that uses the core, in the toolkit's folder."""
    return [f"-I{CORE.core}/include", "-Iinclude", *CAFFES, "-Iinclude/host"]


def settings_here() -> list[str]:
    """The targets of the tests: the host and, if possible, this GPU."""
    return ["ARCH=native"] if torch.cuda.is_available() else ["NVCC="]


@contextlib.contextmanager
def locked(file: Path) -> Generator[None]:
    """One worker of the run at a time."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """A folder within one that all workers of the run share, filled by the first worker."""
    done = folder / ".done"
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder


class SharedLayers:
    """A folder of layers for all workers of a run: what a test asks for is built by the worker that comes first.

    Args:
        base: a folder that all workers of this run share.
        settings: for make; for the host and, where one can run, this GPU, if nothing is said.

    Attributes:
        folder: the folder of layers.
        build: what make made on the way. The toolkit's own objects are those of build/core.
    """

    def __init__(self, base: Path, *settings: str):
        self.folder, self.build, self._lock = base / "layers", base / "build", base / "lock"
        self.settings = settings or settings_here()
        base.mkdir(exist_ok=True)
        self.folder.mkdir(exist_ok=True)

    @property
    def package(self) -> str:
        """The folder's name as a package, to import layers from."""
        return load_package(self.folder, f"built_for_tests_in_{self.folder.parent.name}")

    def build_layers(self, *sources: str) -> Path:
        """The folders in tests/fixtures, each a layer or a folder of layers; the folder of layers, with these built."""
        with locked(self._lock):
            names = []
            for source in map(FIXTURES.joinpath, sources):
                layers = [source] if any(source.glob("*.cpp")) else [f.parent for f in source.glob("*/*.h")]
                for layer in layers:
                    names.append(layer.name)
                    if not (self.folder / layer.name).exists():
                        shutil.copytree(layer, self.folder / layer.name)
            if missing := [n for n in names if not any((self.folder / n).glob("_*.abi3.so"))]:
                where = [f"LAYERS_DIR={self.folder}", f"BUILD={self.build}", f"LAYERS={' '.join(missing)}"]
                done = make(*where, *self.settings, "-k", "-j4", "libraries", timeout=1800)
                assert done.returncode == 0, done.stdout + done.stderr
        return self.folder


# Without a kernel, so without the headers of one: they take half a second of each compilation.
TINY = """extern "C" int {name}_fill(float* top, int64_t count, void*) {{
  for (int64_t i = 0; i < count; ++i) top[i] = {value};
  return 0;
}}
"""
WITH_KERNEL = """#include "caffe_cuda_macro.h"

__global__ void {name}_kernel(const int64_t n, float* top) {{
  CUDA_KERNEL_LOOP(i, n) {{ top[i] = {value}; }}
}}

extern "C" int {name}_fill(float* top, int64_t count, void* stream) {{
  {name}_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}}
"""


class Fork:
    """A script in a fork of this process: torch is imported there, which takes a new process 1.5 s of processor.

    It is like a subprocess.Popen. Its texts are there when it has ended.
    """

    def __init__(self, script: str, folder: Path = ROOT, stderr: int | None = None):
        self.returncode = None
        self._texts = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.pid = os.fork()
        if not self.pid:
            self._run(script, folder, stderr)

    def _run(self, script: str, folder: Path, stderr: int | None) -> None:
        status = 1
        try:
            os.dup2(self._texts[0].fileno(), 1)
            os.dup2(self._texts[1].fileno() if stderr is None else stderr, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.path.insert(0, str(folder))
            os.chdir(folder)
            exec(script, {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def communicate(self, timeout: float = 300) -> list[str]:
        """What it printed, and its errors."""
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                self.send_signal(signal.SIGKILL)
                self._wait()
                raise TimeoutError(f"a fork took longer than {timeout} s")
            time.sleep(0.005)
        for text in self._texts:
            text.seek(0)
        return [text.read() for text in self._texts]

    def _wait(self, options: int = 0) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, options)) != (0, 0):
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode


class Workshop:
    """A folder of tiny layers to build in, only for the host by default."""

    def __init__(self, folder: Path):
        self.folder = folder

    def layer(self, name: str, value: str = "1", **files: str) -> Path:
        """Write a layer that fills with a value. `files` replace or add: cu=..., more_cu=... is more.cu."""
        layer = self.folder / name
        layer.mkdir(parents=True)
        (layer / "__init__.py").write_text("from .._runtime import Layer\n\nlayer = Layer(__name__)\n")
        (layer / f"{name}.h").write_text(f"int {name}_fill(float *top, int64_t count, void *stream);\n")
        (layer / f"{name}.cu").write_text(TINY.format(name=name, value=value))
        for file, text in files.items():
            stem, _, ending = file.rpartition("_")
            (layer / f"{stem or name}.{ending}").write_text(text)
        return layer

    def settings(self, *arguments: str) -> list[str]:
        own = [f"LAYERS_DIR={self.folder}"]
        return (
            [*own, *arguments]
            if any(a.startswith("NVCC") for a in arguments)
            else [*own, "NVCC=", *arguments]
        )

    def make(self, *arguments: str, **options) -> Made:
        return make(*self.settings(*(arguments or ("libraries",))), **options)

    def build(self, *arguments: str, **options) -> str:
        """Runs make, which must succeed; returns its output."""
        done = self.make(*arguments, **options)
        assert done.returncode == 0, done.output
        return done.output

    def fill(self, name: str) -> float:
        """The built layer's value, from a new process, which need not import torch."""
        script = f"""
import ctypes, importlib.machinery as machinery, importlib.util as util
loader = machinery.ExtensionFileLoader("_host", {str(self.folder / name / "_host.abi3.so")!r})
module = util.module_from_spec(util.spec_from_loader("_host", loader))
loader.exec_module(module)
top = (ctypes.c_float * 5)()
assert module.lib.{name}_fill_ffi(ctypes.addressof(top), 5, 0) == 0
print(*set(top))
"""
        return float(self.python(script))

    def import_and_fill(self, name: str) -> str:
        """The same by importing the layer, as a user would. Returns the output, including an error's text."""
        return self.forked(self.importing(name))

    def importing(self, name: str) -> str:
        return f"""
import importlib, torch
layer = importlib.import_module("{self.folder.name}.{name}").layer
top = torch.zeros(5)
try:
    layer.{name}_fill(top, 5)
    print(*set(top.tolist()))
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""

    def forked(self, script: str) -> str:
        """The output in a fork of this process."""
        fork = Fork(script, self.folder.parent)
        output, errors = fork.communicate()
        assert fork.returncode == 0, errors
        return output.strip()

    def python(self, script: str) -> str:
        """The output in a new process."""
        command, folder = [sys.executable, "-c", script], self.folder.parent
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        }
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def steps(output: str) -> list[str]:
    """What make announced: ["CXX a/a.cu", ...]. Waiting is no step: other tests share the lock of the core."""
    found = [" ".join(line.split()) for line in output.splitlines() if re.match(r"  [A-Z]+ +\S", line)]
    return [step for step in found if not step.startswith("WAIT")]
