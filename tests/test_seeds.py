"""The bugs of the systems that this project started from. Each test is named by what broke.

The systems were read one after the other, and their bugs numbered; one that came again has several numbers. What other
tests ask in general is asked here once more in the words of the one who ran into it.
"""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import DEVICES, ROOT, make, skip_if_missing
from support.workshop import WITH_KERNEL

import layers.elementwise_mult
import layers.round
import layers.sigmoid
from layers._runtime import backends_here
from layers.elementwise_mult import ElementwiseMult, elementwise_mult
from layers.round import Round, round_ste
from layers.sigmoid import Sigmoid, d_sigmoid, sigmoid
from tools.make import find_nvcc
from tools.make.settings import Settings

OURS = (layers.round, layers.sigmoid, layers.elementwise_mult)
SOURCES = [
    p for folder in ("layers", "src", "include", "tools") for p in (ROOT / folder).rglob("*") if p.is_file()
]
SOURCES = [p for p in SOURCES if p.suffix in (".py", ".h", ".cuh", ".cu", ".cpp")]
CODE = [p for p in SOURCES if p.suffix != ".py"]


@pytest.fixture(params=DEVICES)
def device(request):
    for module in OURS:
        skip_if_missing(request.param, module.layer)
    return request.param


def code_of(path: Path) -> str:
    """A C++ file without its comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", path.read_text(), flags=re.S)


def said_in_code(pattern: str) -> list[str]:
    return [f"{p.relative_to(ROOT)}: {m[0]}" for p in CODE for m in re.finditer(pattern, code_of(p))]


# -------------------------------------------------------------------------------------------- sonack


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_01_exactly_a_half_rounded_to_0(device, dtype):
    half = torch.tensor([0.5], dtype=dtype, device=device)
    beside = torch.cat([torch.nextafter(half, half * 0), half, torch.nextafter(half, half + 1)])
    assert round_ste(beside).tolist() == [0, 1, 1]


def test_02_backward_was_exported_but_never_used(device):
    x = torch.rand(100, device=device, requires_grad=True)
    top_diff = torch.randn(100, device=device)
    Round()(x).backward(top_diff)
    assert torch.equal(x.grad, top_diff)


def test_03_forward_wrote_into_its_input(device):
    """So it corrupted what the operation before had saved for its own backward."""
    x = torch.rand(100, device=device, requires_grad=True)
    before = x.exp()
    copied = before.detach().clone()
    round_ste(before).sum().backward()
    assert torch.equal(before, copied) and torch.equal(x.grad, copied)


def test_04_launch_error_was_printed_and_ignored(kernels):
    with pytest.raises(RuntimeError, match=r"failures_threads .*invalid configuration"):
        kernels["failures"].failures_threads(torch.zeros(1), 5000, 1)
    said = said_in_code(r"\bf?printf\s*\(|\bstd::c(out|err)\b|\bputs\s*\(")
    # glog's lines where no process takes them; what the race finder found, where nobody names a file for it
    reports = ("src/caffe/logging.cpp", "src/host/host_races.h")
    assert not [line for line in said if not line.startswith(reports)]


def test_05_20_loop_index_wrapped_from_2_30_elements_on(kernels):
    """test_positions_near_2_31 looks at the indices; here, that a count arrives whole or not at all."""
    declared = kernels["loops"].library("host").signatures["loops_fill"]
    parameters = declared["parameters"] if isinstance(declared, dict) else declared
    assert ["int64_t", "count"] in [list(p) for p in parameters]
    with pytest.raises((OverflowError, ValueError)):  # what C takes as an int is not cut down to one
        kernels["loops"].loops_fill_int(torch.zeros(4), 2**31, 0)


def test_06_20_31_empty_tensor_left_an_error_for_the_next_call(device):
    for function in (round_ste, sigmoid, lambda x: elementwise_mult(x, x)):
        for shape in ((0,), (3, 0, 2)):
            assert function(torch.empty(shape, device=device)).shape == shape
    assert torch.zeros(3, device=device).sum().item() == 0
    assert round_ste(torch.ones(3, device=device)).tolist() == [1, 1, 1]


def test_07_half_and_double_were_read_as_float(device):
    for dtype in (torch.float16, torch.float64, torch.bfloat16):
        assert round_ste(torch.tensor([0.9, 0.1, 0.6], dtype=dtype, device=device)).tolist() == [1, 0, 1]
    with pytest.raises(TypeError, match=r"round: bottom: expected .*float32.*got .*int64"):
        round_ste(torch.tensor([1, 2], device=device))


def test_07_transposed_tensor_was_silently_wrong(device):
    x = torch.rand(5, 7, device=device)
    assert torch.equal(round_ste(x.t()), round_ste(x).t())


def test_07_count_came_from_the_caller():
    assert list(inspect.signature(round_ste).parameters) == ["bottom"]


def test_08_second_gpu_was_read_from_the_first():
    skip_if_missing("cuda", layers.round.layer)
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    x = torch.rand(1000, device="cuda:1")
    assert torch.cuda.current_device() == 0
    assert torch.equal(round_ste(x).cpu(), round_ste(x.cpu()))


def test_09_every_make_built_everything(workshop):
    workshop.layer("one")
    workshop.build()
    assert "one/one.cu" not in workshop.build()


def test_09_kernels_were_not_optimised(tmp_path):
    flags = make("-n", "-p", "NVCC=/bin/true", f"BUILD={tmp_path}", "libraries").stdout
    assert re.search(r"^host_FLAGS = .* -O[23] ", flags, re.M) and re.search(
        r"^cuda_NATIVE := .* -O[23] ", flags, re.M
    )
    assert re.search(r"^cuda_native = .*\$\(cuda_NATIVE\).*\$\(cuda_FRONTS\)", flags, re.M)


def test_10_all_static_libraries_of_cuda_were_linked(tmp_path):
    flags = make("-n", "-p", "NVCC=/bin/true", f"BUILD={tmp_path}", "libraries").stdout
    linked = re.search(r"^cuda_LINK := (.*)$", flags, re.M)[1]
    assert set(re.findall(r"-l(\w+)", linked)) == {"cudart_static", "dl", "rt"} and ".a" not in linked


def test_11_build_needed_a_gpu(workshop, nvcc):
    """First without nvcc, then with it, and never a GPU to be seen."""
    workshop.layer("one", cu=WITH_KERNEL.format(name="one", value=1))
    workshop.build()
    done = workshop.make(f"NVCC={nvcc}", "ARCH=sm_80", "libraries", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.output
    assert (workshop.folder / "one" / "_cuda.abi3.so").exists()


@pytest.mark.parametrize("backend", [backend.name for backend in backends_here()])
def test_12_symbols_came_from_torch_being_loaded_globally(backend):
    """The library loads in a Python that has not imported torch, every symbol bound at once."""
    path = layers.round.layer.folder / f"_{backend}.abi3.so"
    if not path.exists():
        pytest.skip(f"round is not built for {backend}")
    script = (
        "import sys, ctypes, os; ctypes.CDLL(sys.argv[1], os.RTLD_NOW); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)


def test_13_includes_of_what_is_not_used():
    said = said_in_code(r"#\s*include\s*[<](curand|cublas|cudnn|THC|ATen|torch)[^>]*>")
    # The toolkit's own headers of these names, for extensions of torch.utils.ffi, include each other.
    assert not [line for line in said if not line.startswith(("include/TH", "include/ffi/"))]


def test_13_module_shadowed_a_builtin():
    exec(
        "import layers.round\nassert round(2.6) == 3\nfrom layers import round as layer\nassert layer.Round",
        {},
    )


# ----------------------------------------------------------------------------- chrischoy, extension-ffi


def test_14_launch_error_ended_the_process():
    assert not said_in_code(r"\b_?exit\s*\(|\babort\s*\(|\bassert\s*\(|\bstd::terminate\b")


def test_15_readme_showed_another_kernel_than_the_code():
    readme = ROOT / "README.md"
    if not readme.exists():
        pytest.skip("no README.md yet")
    code = " ".join(" ".join(path.read_text().split()) for path in CODE if path.suffix in (".cu", ".cuh"))
    blocks = re.findall(r"^```(?:cuda|cpp|c\+\+|c)?\n(.*?)^```", readme.read_text(), re.M | re.S)
    for name, kernel in re.findall(r"__global__ void (\w+)(.*?\n}\n)", "".join(blocks), re.S):
        if f"__global__ void {name}(" in code:
            assert f"void {name}" + " ".join(kernel.split()) in code, (
                f"README.md shows another {name} than the code"
            )


def test_16_product_of_two_ints_overflowed():
    """Counts are 64-bit in every declaration."""
    for module in OURS:
        header = module.layer.folder / f"{module.layer.name}.h"
        assert re.findall(r"(\w+) count\b", header.read_text()) and not re.search(
            r"\bint count\b", header.read_text()
        )


def test_17_backward_was_a_constant(device):
    """1 instead of top_diff, and one gradient for two inputs."""
    a, b = (torch.randn(50, device=device, requires_grad=True) for _ in range(2))
    top_diff = torch.randn(50, device=device)
    elementwise_mult(a, b).backward(top_diff)
    assert torch.equal(a.grad, top_diff * b) and torch.equal(b.grad, top_diff * a)


def test_18_size_mismatch_gave_an_empty_output(device):
    with pytest.raises(ValueError, match=r"elementwise_mult: b: expected the shape of a, \[4\], got .*\[1\]"):
        elementwise_mult(torch.rand(4, device=device), torch.rand(1, device=device))


def test_19_cuda_code_was_dropped_without_a_word(monkeypatch):
    """What is missing is said (tests/tools/make/test_report.py), what was not wanted is not."""
    monkeypatch.setattr(find_nvcc, "find", lambda cuda_home: "")
    assert [backend.name for backend in Settings({"NVCC": "search"}).missing] == ["cuda"]
    assert not Settings({"NVCC": ""}).missing


# ------------------------------------------------------------------------------------------ sniklaus


def test_21_four_dimensions_only(device):
    for shape in ((), (3,), (2, 3), (2, 3, 4, 5, 6)):
        a, b = torch.rand(shape, device=device), torch.rand(shape, device=device)
        assert torch.equal(elementwise_mult(a, b), a * b)


def test_21_both_gradients_were_always_computed(device):
    a, b = torch.rand(9, device=device, requires_grad=True), torch.rand(9, device=device)
    top = elementwise_mult(a, b)  # alive while its node is asked
    diffs = top.grad_fn.apply(torch.ones(9, device=device))
    assert torch.equal(diffs[0], b) and diffs[1] is None


def test_22_kernel_ran_on_another_stream_than_torch():
    skip_if_missing("cuda", layers.round.layer)
    x = torch.rand(1 << 20, device="cuda")
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(50_000_000)
        late.copy_(x)
        result = round_ste(late)
    torch.cuda.synchronize()
    assert torch.equal(result, (x >= 0.5).float())


def test_23_second_derivative_was_silently_disconnected(device):
    """A gradient penalty beside a loss: the penalty's part must not just be missing."""
    x = torch.randn(20, device=device, requires_grad=True)
    y = sigmoid(x)
    (diff,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative"):
        (y.sum() + diff.square().sum()).backward()


def test_24_gradcheck_could_only_be_had_in_float(device):
    x = torch.randn(12, dtype=torch.float64, device=device, requires_grad=True)
    y = torch.randn(12, dtype=torch.float64, device=device, requires_grad=True)
    assert torch.autograd.gradcheck(elementwise_mult, (x, y)) and torch.autograd.gradgradcheck(
        elementwise_mult, (x, y)
    )
    assert torch.autograd.gradcheck(sigmoid, (x,))


# ------------------------------------------------------------------------------------- HsLOL's sigmoid


@pytest.mark.parametrize("shape", [(2, 2), (64, 128), (1, 7), (7, 1)], ids=str)
def test_25_only_one_row_and_one_column_were_written(device, shape):
    x = torch.randn(shape, device=device)
    torch.testing.assert_close(sigmoid(x), torch.sigmoid(x))
    assert bool((sigmoid(x) != 0).all())


def test_26_rows_longer_than_65535_failed(device):
    for shape in ((2, 70_000), (70_000, 2), (5,), (2, 3, 4)):
        x = torch.randn(shape, device=device)
        torch.testing.assert_close(Sigmoid()(x), torch.sigmoid(x))


def test_27_float_kernel_computed_in_double():
    source = (layers.sigmoid.layer.folder / "sigmoid.cu").read_text()
    assert not re.search(r"\d\.\d*(?!\d*f)\b", re.sub(r"//.*", "", source)), "a double literal in the kernels"


def test_28_printed_its_tensors(device, capfd):
    x = torch.randn(4, device=device, requires_grad=True)
    for result in (sigmoid(x), round_ste(x), elementwise_mult(x, x)):
        result.sum().backward()
    d_sigmoid(torch.rand(4, device=device))
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------ elementwise mult


def test_29_listing_did_not_compile():
    """What is here is what is built: no library is older than its layer's sources."""
    for module in OURS:
        sources = [p for p in module.layer.folder.iterdir() if p.suffix in (".cu", ".cuh", ".h")]
        for library in module.layer.folder.glob("_*.abi3.so"):
            stale = [p.name for p in sources if p.stat().st_mtime > library.stat().st_mtime]
            assert not stale, f"{library} is older than {', '.join(stale)}: make"


def test_30_imported_under_another_name_than_built():
    """A layer is its folder: no name is written twice."""
    for module in OURS:
        assert module.__name__ == f"layers.{module.layer.folder.name}" == f"layers.{module.layer.name}"
        assert module.layer.backends()


def test_31_waited_for_the_gpu_after_each_call():
    # Blobs that a Caffe layer reads on the host must be waited for; nothing else.
    waits = (
        "include/host",
        "include/ffi/",
        "src/caffe/syncedmem.cpp",
        "src/caffe/host_services.cpp",
        "src/caffe/common.cpp",
    )
    said = said_in_code(r"cuda(Device|Stream)Synchronize\s*\(")
    assert not [line for line in said if not line.startswith(waits)]
    for path in (ROOT / "layers" / "_runtime").glob("*.py"):
        if path.name == "cases.py":  # compares results, and is on no call's way
            continue
        names = {
            node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)
        }
        assert "synchronize" not in names and "item" not in names


def test_32_tensors_on_two_devices():
    skip_if_missing("cuda", layers.elementwise_mult.layer)
    here, there = torch.rand(3), torch.rand(3, device="cuda")
    for a, b in ((here, there), (there, here)):
        with pytest.raises(TypeError, match=r"elementwise_mult: .*expected a tensor on"):
            ElementwiseMult()(a, b)


def test_32_tensors_on_two_gpus():
    skip_if_missing("cuda", layers.elementwise_mult.layer)
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    with pytest.raises(TypeError, match=r"elementwise_mult: .*expected a tensor on cuda:0"):
        elementwise_mult(torch.rand(3, device="cuda:0"), torch.rand(3, device="cuda:1"))
