"""What every test of a layer starts from: a Point, one case on one input, device and dtype.

A test asks for points by the name of a grid (GRIDS below) and is run once for each of its points. The points
come from the layers' cases.py alone. A point whose device or library is missing is skipped, with the reason.
"""

import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from layers._cases import Case, Draw, cast, layer_of, load_package, results  # noqa: E402

LAYERS_DIR = Path(os.environ.get("LAYERS_DIR") or ROOT / "layers").resolve()
PACKAGE = load_package(LAYERS_DIR)
LAYERS = sorted({f.parent.name for name in ("*.cu", "__init__.py") for f in LAYERS_DIR.glob(f"*/{name}")})
DEVICES = ("cpu", "cuda")
# The engine's own tests are of no interest to somebody who tests a folder of layers.
collect_ignore_glob = (
    []
    if PACKAGE == "layers"
    else [
        "test_engine_*.py",
        "test_caffe_*.py",
        "test_port.py",
        "test_verify.py",
        "test_rewrite.py",
        "test_new_layer.py",
        "test_examples.py",
    ]
)


def cases_of(layer: str) -> list[Case]:
    """A layer's cases; none if its cases.py is missing or broken, which test_layer_says_its_cases reports."""
    try:
        return list(importlib.import_module(f"{PACKAGE}.{layer}.cases").CASES)
    except Exception:
        return []


def layer_object(layer: str):
    """The Layer that a layer's module made."""
    made = layer_of(importlib.import_module(f"{PACKAGE}.{layer}"))
    if made is None:
        raise LookupError(f"layer {layer}: its __init__.py says no `layer = Layer(__name__)`")
    return made


@dataclass(frozen=True)
class Point:
    """One case on one input, device and dtype."""

    layer: str
    case: Case
    input: str
    device: str
    dtype: torch.dtype
    kernels: bool = False  # of a Caffe layer, on CPU tensors, where its own CPU code would run

    def __str__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.layer}-{self.case.name}-{self.input}-{self.device}{'-kernels' * self.kernels}-{dtype}"

    def arguments(self, grad: bool = False, seed: int = 1701) -> tuple:
        """The input's arguments in the point's dtype, on its device."""
        return cast(self.case.inputs[self.input](Draw(seed)), self.dtype, self.device, grad)

    def call(self, *arguments):
        if self.case.is_caffe:
            self.case.function.mode = "gpu" if self.kernels else None
        return self.case.function(*arguments)

    def reference(self, *arguments, grad: bool = False):
        """(the arguments in double on the cpu, what the reference makes of them)."""
        arguments = cast(arguments, torch.float64, "cpu", grad)
        return arguments, self.case.reference(*arguments)

    def assert_close(self, result, reference):
        """Each of the result's tensors lies within the case's tolerance of the reference's."""
        relative, absolute = self.case.tolerance_for(self.dtype)
        for got, wanted in zip(results(result), results(reference), strict=True):
            got, wanted = got.detach().double().cpu(), wanted.detach().double().cpu()
            torch.testing.assert_close(got, wanted, rtol=relative, atol=absolute, equal_nan=True)

    @property
    def layer_object(self):
        return layer_object(self.layer)

    @property
    def reproduction(self) -> str:
        return (
            f"from {PACKAGE}._cases import Draw, cast\n"
            f"from {PACKAGE}.{self.layer}.cases import CASES\n"
            f"case = CASES[{cases_of(self.layer).index(self.case)}]  # {self.case.name}\n"
            f"arguments = cast(case.inputs[{self.input!r}](Draw()), {self.dtype}, {self.device!r})\n"
            f"print(case.function(*arguments), case.reference(*cast(arguments, torch.float64)), sep='\\n')"
        )


def differentiable(arguments) -> list[Tensor]:
    """Those of the arguments that a gradient can be asked for."""
    return [a for a in arguments if isinstance(a, Tensor) and a.is_floating_point()]


def random_like(tensors, seed: int = 7) -> list[Tensor]:
    """Seeded normal tensors, for use as top_diff."""
    draw = Draw(seed)
    return [draw.normal(*t.shape).to(t.device, t.dtype) for t in results(tensors)]


def same_bits(one, other) -> bool:
    """Equal in shape, dtype and every bit (so NaN equals NaN)."""
    pairs = list(zip(results(one), results(other), strict=True))
    return all(
        a.shape == b.shape and a.dtype == b.dtype and torch.equal(_bits(a), _bits(b)) for a, b in pairs
    )


def _bits(tensor: Tensor) -> Tensor:
    return (
        tensor.detach()
        .resolve_neg()
        .contiguous()
        .view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.dtype.itemsize])
    )


# --------------------------------------------------------------------------------------------- grids


def points(layers=LAYERS, *, every_input=False, devices=DEVICES, dtypes=(torch.float32,), kernels=False):
    """The points of a grid.

    Args:
        dtypes: those to take if the layer has them; None for all it has; its first if it has none of them.
        kernels: a Caffe layer's kernels on the host as well.
    """
    for layer in layers:
        for case in cases_of(layer):
            own = layer_object(layer).dtypes
            wanted = own if dtypes is None else [d for d in dtypes if d in own] or own[:1]
            names = list(case.inputs) if every_input else list(case.inputs)[:1]
            yield from (Point(layer, case, n, v, d) for n in names for v in devices for d in wanted)
            if kernels and case.is_caffe and "cpu" in devices:
                yield from (Point(layer, case, n, "cpu", d, kernels=True) for n in names for d in wanted)


GRIDS = {
    "point": dict(every_input=True, dtypes=None, kernels=True),
    "each_dtype": dict(dtypes=None),
    "each_device": dict(),
    "double": dict(every_input=True, dtypes=(torch.float64,)),
    "on_cpu": dict(devices=("cpu",)),
    "on_cuda": dict(devices=("cuda",)),
}


def pytest_configure(config):
    config.addinivalue_line("markers", "only(predicate): of a grid's points, those whose case fulfils it")


def pytest_generate_tests(metafunc):
    for grid in set(GRIDS) & set(metafunc.fixturenames):
        chosen = list(points(**GRIDS[grid]))
        for mark in metafunc.definition.iter_markers("only"):
            chosen = [point for point in chosen if mark.args[0](point.case)]
        metafunc.parametrize(grid, chosen, ids=str, indirect=True)


def skip_if_missing(device: str, layer=None):
    """Skip where the device, or the layer's library for it, does not exist."""
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    backend = "cuda" if device == "cuda" else "host"
    if layer is not None and backend not in layer.backends():
        pytest.skip(f"{layer.name} is not built for {backend}")


def _grid_fixture(name: str):
    @pytest.fixture(name=name)
    def give(request):
        skip_if_missing(request.param.device, request.param.layer_object)
        return request.param

    return give


for _name in GRIDS:
    globals()[f"_{_name}"] = _grid_fixture(_name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure at a point ends with the lines that reproduce the call."""
    report = yield
    point = next((v for v in getattr(item, "funcargs", {}).values() if isinstance(v, Point)), None)
    if report.failed and point:
        report.sections.append(("The call, to try by hand", point.reproduction))
    return report


# ------------------------------------------------------------------------------- the toolkit's own tools


@pytest.fixture(scope="session")
def runtime():
    """The _runtime that the tested layers use."""
    return importlib.import_module(f"{PACKAGE}._runtime")


def make(*arguments: str, timeout: float = 120, **environment) -> subprocess.CompletedProcess:
    """Run make in the toolkit's folder, with this Python."""
    command = ["make", "--no-print-directory", "-C", str(ROOT), f"PYTHON={sys.executable}", *arguments]
    # A make above this one (make test) would hand down its own options.
    above = {
        k: v
        for k, v in os.environ.items()
        if k not in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "LAYERS_DIR")
    }
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=above | environment)


@pytest.fixture(scope="session")
def nvcc() -> str:
    """The CUDA compiler that make finds; skips where there is none."""
    found = subprocess.run(
        [sys.executable, ROOT / "tools" / "find_nvcc.py"], capture_output=True, text=True
    ).stdout.strip()
    found = os.environ.get("NVCC", found)
    if not found:
        pytest.skip("no nvcc")
    return found


@pytest.fixture(scope="session")
def engine_kernels(tmp_path_factory):
    """tests/kernels, built outside of the tree: for the host and, where one can run, for this GPU."""
    folder = tmp_path_factory.mktemp("engine") / "kernels"
    shutil.copytree(ROOT / "tests" / "kernels", folder)
    settings = ["ARCH=native"] if torch.cuda.is_available() else ["NVCC="]
    done = make(f"LAYERS_DIR={folder}", *settings, "-k", "-j4", "libraries", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def kernels(engine_kernels):
    """By name, the Layer of each folder in tests/kernels."""
    package = load_package(engine_kernels, "engine_kernels")
    names = [cu.parent.name for cu in engine_kernels.glob("*/*.cu")]
    return {name: importlib.import_module(f"{package}.{name}").layer for name in names}


@pytest.fixture(params=DEVICES)
def device(request, kernels):
    skip_if_missing(request.param, next(iter(kernels.values())))
    return request.param


TINY = """#include "caffe_cuda_macro.h"

__global__ void {name}_kernel(const int64_t n, float* top) {{
  CUDA_KERNEL_LOOP(i, n) {{ top[i] = {value}; }}
}}

extern "C" int {name}_fill(float* top, int64_t count, void* stream) {{
  {name}_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}}
"""


class Workshop:
    """A folder of tiny layers to build in, for the host alone unless told otherwise."""

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

    def make(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        done = make(*self.settings(*(arguments or ("libraries",))), **options)
        done.output = done.stdout + done.stderr
        return done

    def build(self, *arguments: str) -> str:
        """make, which must succeed; its output."""
        done = self.make(*arguments)
        assert done.returncode == 0, done.output
        return done.output

    def fill(self, name: str) -> float:
        """What the built layer fills with, asked in a process of its own, which need not import torch."""
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
        """The same as a user would: by importing the layer. What is printed, an error's text included."""
        return self.python(f"""
import importlib, torch
layer = importlib.import_module("{self.folder.name}.{name}").layer
top = torch.zeros(5)
try:
    layer.{name}_fill(top, 5)
    print(*set(top.tolist()))
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
""")

    def python(self, script: str) -> str:
        command, folder = [sys.executable, "-c", script], self.folder.parent
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        }
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def workshop(tmp_path, engine_kernels):
    """Starts with the engine compiled, as it was for engine_kernels."""
    folder = tmp_path / "my_layers"
    shutil.copytree(engine_kernels / "build" / "engine", folder / "build" / "engine")
    for file in ("host.flags", "python.flags", "packages"):
        shutil.copy2(engine_kernels / "build" / file, folder / "build" / file)
    return Workshop(folder)
