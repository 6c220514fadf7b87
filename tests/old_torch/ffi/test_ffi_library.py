"""Calls of the C functions of an extension of 2017 (tests/fixtures/ffi_extension); torch is the reference."""

from typing import Any

import pytest
import torch
from cffi import FFI
from support.typed import module_of
from torch.autograd import Function

import cuffi.ffi  # noqa: F401 (it is torch.utils.ffi)
from cuffi import CaffeRuntimeError, CaffeTypeError, CaffeValueError


@pytest.fixture(scope="module")
def old(extension):
    """The extension's package, as its own committed __init__.py imports it."""
    kept = {
        name: getattr(Function, name) for name in ("__init__", "__call__", "saved_tensors", "saved_variables")
    }
    yield module_of(extension / "_ext" / "old" / "__init__.py", "revived_old")
    for name, value in kept.items():
        setattr(Function, name, value)


def test_a_kernel_with_the_macros_of_make_sh_and_a_resized_result(old):
    x, top = torch.rand(3, 5), torch.empty(0)
    assert old.old_round(x, top) == 1
    torch.testing.assert_close(top, (x >= 0.5).float())


def test_dir_lists_the_functions_alone(old):
    assert dir(old._lib) == sorted(n for n in dir(old) if n.startswith("old_"))


def test_resize_reaches_the_tensor_and_a_storage_is_filled(old):
    out = torch.empty(0)
    alias = out.detach()
    old.old_fill(out, 2, 3, 1.5)
    torch.testing.assert_close(out, torch.full((2, 3), 1.5))
    assert alias.shape == (0,)


def test_resize_of_a_tensor_that_wants_a_gradient(old):
    out = torch.empty(0, requires_grad=True)
    old.old_fill(out, 2, 2, 3)
    assert out.requires_grad and out.tolist() == [[3, 3], [3, 3]]


def test_every_type(old):
    d, i, n = torch.zeros(2).double(), torch.zeros(3, dtype=torch.int32), torch.zeros(4, dtype=torch.int64)
    b, h = torch.zeros(5, dtype=torch.uint8), torch.zeros(6).half()
    assert old.old_types(d, i, n, b, h) == 2 + 3 + 4 + 1
    assert [t[0].item() for t in (d, i, n, b, h)] == [1.5, 2, 3, 4, 1]
    assert all(t[1:].eq(0).all() for t in (d, i, n, b, h))


def test_a_bool_tensor_serves_as_bytes(old):
    mask = torch.tensor([False, True])
    tensors = (
        torch.zeros(1).double(),
        torch.zeros(1).int(),
        torch.zeros(1).long(),
        mask,
        torch.zeros(1).half(),
    )
    old.old_types(*tensors)
    assert mask.view(torch.uint8).tolist() == [4, 1]


def test_a_number_is_a_row_of_one(old):
    d = torch.tensor(2.0).double()
    assert old.old_mean(d, True) == 4.0


def test_numbers_texts_and_memory(old):
    assert old.old_nothing() is None
    memory = torch.zeros(2, dtype=torch.int32)
    assert old.old_words("text", 200, memory) == 4 and memory.tolist() == [200, 0]
    assert old.old_words("", 0, None) == 0
    own = FFI().new("int *")  # as fxia22's spatial transformer hands over its device
    assert old.old_words("", 7, own) == 0 and own[0] == 7
    assert old.old_mean(torch.tensor([1.0, 2.0]).double(), True) == 2.5
    assert old.old_mean(torch.tensor([1.0, 2.0]).double(), False) == 1.5


def test_strides_reach_c_that_reads_them(old):
    x, out = torch.rand(4, 6).t(), torch.empty(0)
    old.old_transposed(x, out)
    torch.testing.assert_close(out, x.t())
    counts, places = torch.empty(0, dtype=torch.int32), torch.empty(0, dtype=torch.int64)
    matrix = torch.randn(5, 40)[:, ::3]
    old.old_rows(matrix, counts, places)
    assert counts.tolist() == (matrix > 0).sum(1).tolist() and places.tolist() == [0, 1, 2, 3, 4]


def test_c_that_reads_dense_memory_gets_dense_memory(old):
    x, out = torch.rand(4, 6).t(), torch.empty(0)
    old.old_scale(x, out, 2)
    torch.testing.assert_close(out, 2 * x)
    old.old_scale(torch.tensor(3.0).expand(2, 2), out, 2)
    torch.testing.assert_close(out, torch.full((2, 2), 6.0))


def test_a_view_that_is_written_to_gets_the_values(old):
    whole = torch.zeros(3, 4)
    assert old.old_scale(torch.ones(4, 3), whole.t(), 5) == 1
    torch.testing.assert_close(whole, torch.full((3, 4), 5.0))


def test_temporaries_and_a_freed_argument(old):
    order, out = torch.arange(6).view(3, 2), torch.empty(0, dtype=torch.int64)
    old.old_temporaries(order, out)
    assert out.tolist() == [10, 30, 50] and order.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("transposed", [0, 1])
def test_blas(old, transposed):
    a, b, c = torch.rand(3, 4), torch.rand(4, 5), torch.empty(0)
    old.old_matmul(a, b.t().contiguous() if transposed else b, c, transposed)
    torch.testing.assert_close(c, (a.double() @ b.double() + 1).float())


def test_a_copy_between_the_families(old):
    to = torch.empty(0, dtype=torch.int64)
    old.old_to_cpu(torch.arange(3), to)
    assert to.tolist() == [0, 1, 2]


def test_versions_of_written_tensors_rise_and_no_others(old):
    x, top = torch.rand(3), torch.rand(3)
    before = x._version, top._version
    old.old_round(x, top)  # written by a kernel, two functions further on
    assert x._version == before[0] and top._version > before[1]
    d = torch.ones(2).double()
    old.old_mean(d, True)
    assert d._version == 0


def test_a_stale_saved_tensor_is_an_error(old):
    a = torch.ones(3, requires_grad=True)
    saved = torch.ones(3)
    product = (a * saved).sum()
    old.old_round(torch.rand(3), saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (1, r"old: old_error: no such mode: 1"),
        (2, r"old: old_error: exit\(-1\) was called"),
        (3, r"old: old_error: dimension 7 of a tensor with 2 dimensions"),
        (4, r"old: old_error: resize: .*"),
        (5, r"old: old_error: a tensor of TH is NULL"),
    ],
)
def test_errors_leave_c(old, kind, text):
    with pytest.raises(CaffeRuntimeError, match=text):
        old.old_error(kind, torch.ones(2, 2))
    assert old.old_error(0, torch.ones(2, 2)) == 0


def test_exit_in_a_launcher_ends_the_call(old):
    with pytest.raises(CaffeRuntimeError, match=r"old: old_bad_index: exit\(-1\) was called"):
        old.old_bad_index(torch.ones(1))


def test_an_argument_check_names_the_argument(old):
    with pytest.raises(CaffeRuntimeError, match="old_mean: argument 1: a row is wanted, not 2 dimensions"):
        old.old_mean(torch.ones(2, 2).double(), False)


ONE, FREED = torch.ones(1), torch.ones(1)
FREED.untyped_storage().resize_(0)
WRONG = [
    ("old_round", (ONE,), CaffeTypeError, r"old_round: expected 2 arguments, got 1"),
    (
        "old_round", (ONE.double(), ONE), CaffeTypeError,
        r"old: old_round: bottom: expected a THCudaTensor \(cpu float32\), got cpu float64 \[1\]",
    ),
    ("old_round", (ONE, 3), CaffeTypeError, r"top: expected a THCudaTensor \(cpu float32\), got int 3"),
    ("old_round", (ONE, ONE.to_sparse()), CaffeTypeError, r"top: .* got sparse"),
    ("old_round", (ONE, ONE.to("meta")), CaffeTypeError, r"top: .* got meta"),
    ("old_round", (ONE, FREED), CaffeTypeError, r"top: .* got cpu"),
    ("old_round", (ONE, ONE.bfloat16()), CaffeTypeError, r"top: .* got cpu bfloat16"),
    ("old_scale", (ONE, ONE.long(), 1), CaffeTypeError, r"out: expected a THFloatTensor .* got cpu int64"),
    ("old_scale", (ONE, ONE, "x"), CaffeTypeError, r"by: expected float, got str 'x'"),
    ("old_words", ("", 256, None), CaffeValueError, r"small: expected unsigned char from 0 to 255, got 256"),
    ("old_words", (3, 1, None), CaffeTypeError, r"text: .* got int 3"),
    ("old_words", ("", 1, "a"), CaffeTypeError, r"memory: expected int \*, got str 'a'"),
    ("old_fill", (ONE, 2**70, 1, 1), CaffeValueError, r"rows: expected long from"),
    ("old_fill", (ONE, 1.5, 1, 1), CaffeTypeError, r"rows: expected long, got float 1.5"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "error", "text"), WRONG)
def test_wrong_arguments(old, name, arguments, error, text):
    with pytest.raises(error, match=text):
        getattr(old, name)(*arguments)


def test_a_changed_toolkit_is_an_error(old, extension, monkeypatch):
    from cuffi import edge as _edge
    from cuffi.old_torch.ffi.ffi_library import library

    monkeypatch.setattr(_edge, "digest", lambda folder, files: "other")
    with pytest.raises(CaffeRuntimeError, match="another version of the toolkit built"):
        library(str(extension / "_ext" / "old" / "_old.py"))


def test_without_the_exchange_api(old, extension, monkeypatch):
    """As with torch before 2.10: C reads the attributes of each tensor."""
    from cuffi.old_torch.ffi import ffi_library as module

    known = module.of_torch() | {"exchange_api": None}
    monkeypatch.setattr(module, "of_torch", lambda: known)
    lib: Any = module.library(str(extension / "_ext" / "old" / "_old.py"))[0]
    x, out = torch.rand(4, 6).t(), torch.empty(0)
    lib.old_transposed(x, out)
    torch.testing.assert_close(out, x.t())
    with pytest.raises(CaffeTypeError, match="old_round: top"):
        lib.old_round(x, x.double())
    monkeypatch.undo()
    module.library(str(extension / "_ext" / "old" / "_old.py"))


def test_threads_have_calls_of_their_own(old):
    from concurrent.futures import ThreadPoolExecutor

    def work(i):
        out = torch.empty(0)
        for n in range(1, 30):
            old.old_fill(out, n, 3, i)
            assert out.shape == (n, 3) and out.eq(i).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
