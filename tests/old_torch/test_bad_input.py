"""What a user may give an extension by mistake is an error of Python with a reason, and the next call works."""

import subprocess
import sys
import types

import numpy as np
import pytest
import torch
from old_torch.conftest import SOURCES, builds
from support import python_with_torch

from cuffi.old_torch import cpp_extension


@pytest.fixture(scope="module")
def launching(session_cache):
    with builds(session_cache):
        return cpp_extension.load("launching", [SOURCES / "launching.cu"])


MISTAKES = [
    (lambda: (torch.ones(3).double(),), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: (torch.ones(3, device="meta"),), RuntimeError, r"must be a CUDA tensor \(.*launching.cu:11\)"),
    (lambda: (torch.eye(3).to_sparse(),), RuntimeError, "no memory of its own"),
    (lambda: (torch.ones(3)._neg_view(),), RuntimeError, "negative view: call resolve_neg"),
    (lambda: (torch.ones(3), 1, 2048), RuntimeError, r"twice\(\): .*2048 threads in a block, at most 1024"),
    (lambda: (torch.ones(3), 0, 32), RuntimeError, r"twice\(\): .*a grid of 0 x 1 x 1 blocks"),
    (lambda: (torch.ones(3), 1, -5), RuntimeError, r"twice\(\): .*threads in a block"),
    (lambda: (np.ones(3, np.float32),), TypeError, "argument 1 `x`: expected Tensor, got ndarray"),
    (lambda: (torch.ones(1).expand(99),), RuntimeError, r"share memory, .*contiguous\(\) \(sizes \[99\], stri"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_a_mistake_is_an_error_and_the_next_launch_is_right(launching, number):
    """An error between a launch's configuration and its kernel leaves nothing behind."""
    arguments, kind, text = MISTAKES[number]
    with pytest.raises(kind, match=text):
        launching.twice(*arguments())
    x = torch.arange(3.0)
    assert torch.equal(launching.twice(x), 2 * x)


@pytest.mark.gpu
def test_a_launch_that_a_gpu_refuses(session_cache, nvcc, monkeypatch):
    with builds(session_cache):
        monkeypatch.setenv("NVCC", nvcc)
        module = cpp_extension.load("launching", [SOURCES / "launching.cu"], backends=["cuda"])
    x = torch.arange(3.0, device="cuda")
    for blocks, threads in (1, 2048), (0, 32), (1, -5):
        with pytest.raises(RuntimeError, match=r"twice\(\): invalid (configuration )?argument"):
            module.twice(x, blocks, threads)
        assert torch.equal(module.twice(x), 2 * x)


def test_under_functorch(launching):
    x = torch.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match="no memory of its own"):
        torch.vmap(launching.twice)(x)
    assert torch.equal(launching.twice(x), 2 * x)


def test_elements_that_share_memory(launching):
    """Code that reads them by their strides is right; other code would leave the memory."""
    same, windows = torch.full((1,), 2.0).expand(1000), torch.arange(4.0).unfold(0, 2, 1)
    assert launching.strided_sum(same) == 2000
    for x in (same, windows):
        with pytest.raises(RuntimeError, match=r"pass contiguous\(\)"):
            launching.flat_sum(x)
        assert launching.flat_sum(x.contiguous()) == x.double().sum()
    assert launching.flat_sum(torch.arange(6.0).view(2, 3).t()) == 15  # dense, in another order
    for empty in (torch.ones(1).expand(0), torch.ones(9)[0:0:2], torch.ones(4, 9)[:0, :5]):
        assert launching.flat_sum(empty) == 0


def test_a_storage_begins_before_its_views(launching):
    assert launching.of_storage(torch.arange(3.0, 9.0)[2:]) == 3


def test_a_wild_address_is_an_error(values):
    """Outside of a kernel, in a library without kernels."""
    with pytest.raises(RuntimeError, match=r"fail\(\): used memory that is not there, at address"):
        values.fail(14)
    with pytest.raises(RuntimeError, match=r"fail\(\): needs more stack than this thread has"):
        values.fail(15)
    assert values.scaled(torch.ones(1)).item() == 2


def test_a_wild_address_in_a_thread(values):
    """All threads have ended before the error comes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for how in (20, 21, 20):
            with pytest.raises(RuntimeError, match="used memory that is not there, at address"):
                values.fail(how)
        assert values.parallel(1000) is not None
    finally:
        torch.set_num_threads(threads)


def test_errors_of_pybind11(values):
    """Each is Python's own; C++ can catch an error of Python."""
    for how, kind, text in (
        (16, KeyError, "a key"),
        (17, StopIteration, "an end"),
        (18, RuntimeError, "caught: RuntimeError: Trying to create tensor with negative dimension"),
        (19, RuntimeError, "a cast"),
        (22, ValueError, "torch's own: .*mat1 and mat2 shapes"),
    ):
        with pytest.raises(kind, match=text):
            values.fail(how)


@pytest.mark.parametrize(
    ("name", "fits", "too_large"),
    [
        ("int8", (-128, 127, 2.7), (128, -129, 127.5, float("nan"), float("inf"))),
        ("uint8", (0, 255), (256, -256)),
        ("int64", (-(2**63), 2**63 - 1, -(2.0**63)), (2.0**63, float("inf"))),
        ("float", (2**40, 2.0**100, float("inf")), (1e39,)),
        ("half", (65504, -65504.0), (65520.0, 70000)),
    ],
)
def test_a_number_that_does_not_fit_the_type_of_item(values, name, fits, too_large):
    """As torch has it: an error, where a cast would give another number."""
    item = getattr(values, f"item_{name}")
    for value in fits:
        x = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        assert item(x) == float(int(value) if "int" in name else value)
    for value in too_large:
        x = torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        with pytest.raises(RuntimeError, match="cannot be converted without overflow"):
            item(x)
    assert values.item_uint8(torch.tensor(-1)) == 255


def test_text_that_is_not_utf_8(values):
    """As pybind11 has it: an error, and no other text."""
    with pytest.raises(UnicodeDecodeError):
        values.bytes()


def test_an_argument_by_name_of_a_function_without_names(values):
    with pytest.raises(TypeError, match=r"expected 6 arguments, got 1, and none by its name"):
        values.kinds(y=1)


def test_a_list_that_is_in_itself(values):
    deep: list = []
    deep.append(deep)
    with pytest.raises(RecursionError):
        values.list(deep)


def test_other_kinds_of_arguments(values):
    """As pybind11 has them."""
    assert values.letter("a") == "b" and values.text(True) is None and values.text(False) == "text"
    assert values.kinds(np.bool_(True), 0, 0, "", range(3), np.array([4, 5])) == "1 0 0  [0, 1, 2] [4, 5]"
    assert values.kinds(torch.tensor(False), 0, 0, "", [], []).startswith("0")
    assert values.number(torch.tensor(2.5)) == 2.5 and values.number(torch.tensor(3)) == 3
    assert values.pair((1, torch.ones(2))) == 2
    for call, text in (
        (lambda: values.letter("ab"), "expected a str of one letter, got str"),
        (lambda: values.letter(65), "expected a str of one letter, got int"),
        (lambda: values.pair((1, None)), "argument 1: expected Tensor, got None"),
        (lambda: values.lengths({"a": None}), "argument 1: expected Tensor, got None"),
        (lambda: values.list(torch.ones(2, 2)), "argument 1: expected list, got Tensor"),
        (
            lambda: values.kinds(True, 0, 0, "", types.MappingProxyType({1: 2}), []),
            "expected list, got mappingproxy",
        ),
        (lambda: values.place(torch.device("mps")), "expected torch.device, got device"),
        (lambda: values.scaled(torch.ones(1), size=1), r"a name that no parameter has.*\['size'\]"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor"):
        values.kinds(torch.ones(2), 0, 0, "", [], [])
    assert values.place(torch.device("meta")) == "meta"


def test_a_leaf_is_not_modified_by_an_operation(values):
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        values.fill(x, 2)
    assert x.tolist() == [1, 1, 1]


def test_two_extensions_of_one_name(extensions):
    """Each keeps its own functions."""
    text = "int64_t which() { return %d; }"
    first, second = (cpp_extension.load_inline("same", text % i, functions=["which"]) for i in (1, 2))
    assert (first.which(), second.which()) == (1, 2)


def test_a_tensor_may_live_until_the_process_ends(launching, session_cache):
    program = f"""import importlib.util, torch
spec = importlib.util.spec_from_file_location("launching", {launching.__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.twice(torch.ones(2)).tolist())"""
    done: subprocess.CompletedProcess = python_with_torch.run([sys.executable, "-c", program])
    assert done.returncode == 0 and done.stdout.strip() == "[2.0, 2.0]", done.stderr


def test_checks_that_take_a_text_as_a_stream(extensions):
    """torch's headers define CHECK and CHECK_EQ as glog does."""
    checks = cpp_extension.load_inline("checks", """
void check(torch::Tensor x, int n) {
  if (n > 0) CHECK(x.dim() == 2) << "expected a matrix, got " << x.dim() << " axes"; else CHECK_EQ(n, 0) << "n";
  TORCH_CHECK_LT(x.size(0), 4);
}""", functions="check")  # fmt: skip
    checks.check(torch.zeros(3, 2), 1), checks.check(torch.zeros(3), 0)
    for x, n, text in (
        (torch.zeros(3), 1, r"Check failed: x.dim\(\) == 2 expected a matrix, got 1 axes"),
        (torch.zeros(3), -2, r"Check failed: n == 0 \(-2 vs. 0\) n"),
        (torch.zeros(4), 0, r"Check failed: x.size\(0\) < 4 \(4 vs. 4\)"),
    ):
        with pytest.raises(RuntimeError, match=text):
            checks.check(x, n)
