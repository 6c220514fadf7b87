"""Kernels that are data, launched by a driver that keeps a log and computes on the processor."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.compiler import CXX
from support.typed import not_none

from cuffi.backends import HOST
from cuffi.loading import ptx
from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError, extension
from cuffi.runtime.kernels import KernelLibrary

DRIVER = Path(__file__).resolve().parents[1] / "support" / "fake_driver.cpp"
# caffe_launch (include/caffe_launch.h) as C lays it out.
FIELDS = """#include "caffe_launch.h"
#include <stddef.h>
#include <stdio.h>
#define SAY(field) printf("%s %zu\\n", #field, offsetof(caffe_launch, field))
int main() { SAY(kernel); SAY(problem); SAY(count); SAY(uploads); SAY(is_cooperative); SAY(grid); SAY(block);
  SAY(shared); SAY(text); SAY(value); SAY(upload); SAY(offsets); SAY(arguments); }
"""
FUNCTION = {
    "returns": "int", "extents": {"x": [["n"], []], "y": [["n"], []]}, "null": [], "alignments": {}, "indices": {},
    "elements": {},
    "parameters": [["int64_t", "n"], ["const float *", "x"], ["float *", "y"], ["float", "by"], ["int", "block"],
                   ["int", "shared_bytes"], ["const float *", "w"], ["void *", "stream"]],
}  # fmt: skip
# As if this were the greatest int.
MOST = 5000
KINDS = ("u64", "u64", "u64", "f32", "u32", "u32", "u64", "u64")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("driver")
    (place / "fields.cpp").write_text(FIELDS)
    include = Path(__file__).resolve().parents[2] / "include"
    subprocess.run([CXX, f"-I{include}", "fields.cpp", "-o", "fields"], cwd=place, check=True)
    subprocess.run([CXX, "-shared", "-fPIC", "-O1", str(DRIVER), "-o", "libfake.so"], cwd=place, check=True)
    return place


def launcher(fields: dict[str, int], number: int, cooperative: int) -> str:
    """The PTX of a launcher: for n above MOST it has a problem, and it fills `weights`."""

    def at(name: str, more: int = 0) -> int:
        return 0x10000 + fields[name] + more

    listed = ",\n".join(f"\t.param .{kind} run_param_{i}" for i, kind in enumerate(KINDS))
    stores = [
        ("u32", at("kernel"), str(number)), ("u32", at("is_cooperative"), str(cooperative)),
        ("u32", at("grid"), "%rd8"), ("u32", at("grid", 4), "1"), ("u32", at("grid", 8), "1"),
        ("u32", at("block"), "%r1"), ("u32", at("block", 4), "1"), ("u32", at("block", 8), "1"),
        ("u64", at("shared"), "%rd6"), ("u32", at("arguments"), "%rd1"), ("u64", at("arguments", 8), "%rd2"),
        ("u64", at("arguments", 16), "%rd3"), ("f32", at("arguments", 24), "%f1"), ("u32", at("offsets"), "0"),
        ("u32", at("offsets", 4), "8"), ("u32", at("offsets", 8), "16"), ("u32", at("offsets", 12), "24"),
        ("u32", at("count"), "4"), ("u64", at("upload"), "%rd9"), ("u64", at("upload", 8), "%rd7"),
        ("u64", at("upload", 16), "16"), ("u32", at("upload", 24), "0"), ("u32", at("uploads"), "1"),
    ]  # fmt: skip
    body = "".join(f"st.{kind} [{place}], {value};\n" for kind, place, value in stores)
    return f"""
.global .align 1 .b8 $str[2] = {{110, 0}};
.const .align 4 .b8 weights[16];
.visible .entry run(
{listed}
)
{{
ld.param.u64 %rd1, [run_param_0];
ld.param.u64 %rd2, [run_param_1];
ld.param.u64 %rd3, [run_param_2];
ld.param.f32 %f1, [run_param_3];
ld.param.u32 %r1, [run_param_4];
ld.param.s32 %r2, [run_param_5];
ld.param.u64 %rd7, [run_param_6];
cvt.s64.s32 %rd6, %r2;
add.s64 %rd8, %rd1, 255;
div.s64 %rd8, %rd8, 256;
mov.u64 %rd9, weights;
setp.le.s64 %p1, %rd1, {MOST};
@%p1 bra $L__BB0_1;
st.u32 [{at("problem")}], 1;
st.u64 [{at("text")}], $str;
st.u64 [{at("value")}], %rd1;
$L__BB0_1:
{body}ret;
}}
"""


def library(built: Path, folder: Path, number=1, cooperative=0, kernel="scale", images=None) -> KernelLibrary:
    said = subprocess.run([built / "fields"], capture_output=True, text=True, check=True).stdout
    fields = {name: int(at) for name, at in (line.split() for line in said.splitlines())}
    edge = extension.extension("scales")
    program = ptx.program_of(launcher(fields, number, cooperative), "run", edge).packed()
    (folder / "image").write_text("image of sm_90\0")
    (folder / "ptx").write_text("ptx of compute_80")
    described = {
        "edge": edge.EDGE, "file": "scales.cu", "targets": "sm_90", "functions": {"scales_run": FUNCTION},
        "images": images or [[90, False, "image"], [80, True, "ptx"]], "kernels": [[1, 7, kernel], [40, 9, "other"]],
        "programs": {"scales_run": program}, "codes": ["float32", "float64"],
    }  # fmt: skip
    (folder / HOST.kernels).write_text(json.dumps(described))
    return KernelLibrary("scales", folder, HOST.name)


@pytest.fixture
def driver(built):
    extension.extension("scales").driver(os.fsencode(built / "libfake.so"))
    fake = ctypes.CDLL(str(built / "libfake.so"))
    fake.fake_log.restype = ctypes.c_char_p
    fake.fake_clear()
    yield lambda: fake.fake_log().decode().splitlines()
    extension.extension("scales").driver(b"libcuda.so.1")


@pytest.fixture
def layer(built, driver, tmp_path):
    """A layer whose library for the processor is such kernels."""

    def make(**how):
        library(built, tmp_path, **how)
        (tmp_path / "__init__.py").write_text("from cuffi import Layer\nlayer = Layer(__name__)\n")
        import importlib.util

        name = f"scales_{tmp_path.name}"
        spec = importlib.util.spec_from_file_location(
            name, tmp_path / "__init__.py", submodule_search_locations=[]
        )
        module = importlib.util.module_from_spec(not_none(spec))
        sys.modules[name] = module
        not_none(not_none(spec).loader).exec_module(module)
        return module.layer

    return make


def tensors(count=1000):
    return torch.arange(count, dtype=torch.float32), torch.zeros(count), torch.tensor([1.0, 2.0, 3.0, 4.0])


def test_a_launch(layer, driver):
    run, (x, y, w) = layer().scales_run, tensors()
    for _ in range(3):
        run(1000, x, y, 0.5, 256, 100, w)
    assert torch.equal(y, x * 0.5 + w.repeat(250))
    launched = [line for line in driver() if line.startswith("launch")]
    assert launched == ["launch scale <<<4 1 1, 256 1 1, 100, (nil)>>>"] * 3
    assert driver().count("load image of sm_90") == 1 and driver().count("copy") == 3


def test_its_arguments_are_checked(layer):
    run, (x, y, w) = layer().scales_run, tensors()
    with pytest.raises(CaffeTypeError, match="x"):
        run(1000, x.double(), y, 0.5, 256, 0, w)
    with pytest.raises(CaffeValueError, match="1001"):
        run(1001, x, y, 0.5, 256, 0, w)


def test_a_plan_repeats_it(layer, driver):
    made, (x, _, w) = layer(), tensors()
    from cuffi import operator

    @operator(made)
    def scaled(x: torch.Tensor, w: torch.Tensor, by: float) -> torch.Tensor:
        y = torch.empty_like(x)
        made.scales_run(x.numel(), x, y, by, 256, 0, w)
        return y

    for by in (0.5, 0.5, 0.5, 2.0):
        assert torch.equal(scaled(x, w, by), x * by + w.repeat(250))
    assert scaled.operator.short.plans() >= 1
    assert len([line for line in driver() if line.startswith("launch")]) == 4


def test_a_cooperative_launch(layer, driver):
    run, (x, y, w) = layer(cooperative=1).scales_run, tensors()
    run(1000, x, y, 1.0, 128, 0, w)
    assert "cooperative scale <<<4 1 1, 128 1 1, 0, (nil)>>>" in driver()


def test_much_shared_memory_is_asked_for_once(layer, driver):
    run, (x, y, w) = layer().scales_run, tensors()
    for size in (1000, 48 << 10, 80000, 80000, 60000, 90000):
        run(1000, x, y, 1.0, 128, size, w)
    assert [line for line in driver() if line.startswith("attribute")] == [
        "attribute 8 80000",
        "attribute 8 90000",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [((256, 300000), "scales.cu:7: kernel launch: CUDA_ERROR_INVALID_VALUE: invalid argument: a block of this GPU has "
                     "at most 1024 threads and 232448 bytes of shared memory"),
     ((2048, 0), "scales.cu:7: kernel launch: CUDA_ERROR_INVALID_VALUE")],
)  # fmt: skip
def test_a_launch_that_fails(layer, given, said):
    run, (x, y, w) = layer().scales_run, tensors()
    with pytest.raises(CaffeRuntimeError) as raised:
        run(1000, x, y, 1.0, *given, w)
    assert said in str(raised.value)
    run(1000, x, y, 1.0, 256, 0, w)  # the next one is right
    assert torch.equal(y, x + w.repeat(250))


def test_a_launchers_problem(layer):
    run, (x, y, w) = layer().scales_run, tensors(MOST + 1)
    with pytest.raises(CaffeRuntimeError, match=f"n: {MOST + 1} does not fit the kernel's int"):
        run(MOST + 1, x, y, 1.0, 256, 0, w)


def test_a_kernel_that_the_image_lacks(layer):
    run, (x, y, w) = layer(kernel="missing").scales_run, tensors()
    with pytest.raises(CaffeRuntimeError, match=r"the kernel missing: CUDA_ERROR_NOT_FOUND"):
        run(1000, x, y, 1.0, 256, 0, w)


def test_a_number_that_no_kernel_has(layer):
    run, (x, y, w) = layer(number=5).scales_run, tensors()
    with pytest.raises(CaffeRuntimeError, match="its launcher names no kernel"):
        run(1000, x, y, 1.0, 256, 0, w)


@pytest.mark.parametrize(
    ("images", "said"),
    [([[90, False, "image"]], "load image of sm_90"),
     ([[80, True, "ptx"], [100, False, "image"]], "load ptx of compute_80"),
     ([[80, False, "image"]], None), ([[100, True, "ptx"]], None)],
)  # fmt: skip
def test_which_image_is_loaded(layer, driver, images, said):
    """The GPU is an sm_90."""
    run, (x, y, w) = layer(images=images).scales_run, tensors()
    if said:
        run(1000, x, y, 1.0, 256, 0, w)
        assert said in driver()
    else:
        with pytest.raises(CaffeRuntimeError, match="built for sm_90, this GPU is sm_90"):
            run(1000, x, y, 1.0, 256, 0, w)


def test_a_driver_older_than_the_ptx(layer, driver, monkeypatch):
    """It loads machine code for its GPU, and says of PTX that it is too new."""
    monkeypatch.setenv("FAKE_OLD", "1")
    (x, y, w), both = tensors(), [[90, False, "image"], [80, True, "ptx"]]
    layer(images=both).scales_run(1000, x, y, 1.0, 256, 0, w)
    assert torch.equal(y, x + w.repeat(250))
    with pytest.raises(CaffeRuntimeError, match=r"do not load on sm_90: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"):
        layer(images=both[1:]).scales_run(1000, x, y, 1.0, 256, 0, w)


def test_another_versions_kernels_are_refused(built, tmp_path):
    library(built, tmp_path)
    said = json.loads((tmp_path / HOST.kernels).read_text())
    (tmp_path / HOST.kernels).write_text(json.dumps(said | {"edge": "older"}))
    with pytest.raises(CaffeRuntimeError, match="was built by another version of the toolkit"):
        KernelLibrary("scales", tmp_path, HOST.name)


def test_a_machine_without_a_driver(built, tmp_path):
    library(built, tmp_path)
    code = f"""
import torch
from cuffi.runtime import extension
from cuffi.runtime.kernels import KernelLibrary
extension.extension("x").driver(b"libno-such-driver.so")
library = KernelLibrary("scales", __import__("pathlib").Path({str(tmp_path)!r}), "host")
assert library.runner("scales_run") == library.runner("scales_run")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # nothing is looked up before a launch
