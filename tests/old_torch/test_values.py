"""include/aten and src/aten_python.cpp: arguments, results and errors of an extension's functions."""

import gc
import math
import threading
import weakref

import numpy as np
import pytest
import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import FakeTensorMode


def test_arguments_by_place_and_by_name(values):
    x = torch.tensor([1.0, 2.0, 3.0])
    assert values.scaled(x).tolist() == [2, 4, 6]
    assert values.scaled(x, 1, 2).tolist() == [1, 4, 9]
    assert values.scaled(power=2, x=x, factor=0.5).tolist() == [0.5, 2, 4.5]
    assert values.scaled.__doc__ == "x^power factor"
    assert values.__doc__ == "values" and values.version == "1.0" and values.inner.two() == 2


def test_kinds_of_arguments(values):
    expected = "1 -3 1.5 text [4, 5] [6, 7]"
    assert values.kinds(True, -3, 1.5, "text", [4, 5], (6, 7)) == expected
    # As with pybind11: numbers of numpy and tensors of one element are numbers.
    assert values.kinds(1, np.int32(-3), np.float64(1.5), "text", [np.int64(4), 5], (6, 7)) == expected
    assert values.kinds(True, torch.tensor(-3), torch.tensor(1.5), "text", [4, 5], [6, 7]) == expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.bool])
def test_the_fields_of_a_tensor(values, dtype):
    names = {torch.float64: "double", torch.float16: "c10::Half", torch.bfloat16: "c10::BFloat16"}
    name, size = names.get(dtype, "signed char" if dtype == torch.int8 else "bool"), dtype.itemsize
    x = torch.zeros(3, 4, dtype=dtype)
    assert values.facts(x) == f"[3, 4] [4, 1] {name} cpu 12 1 2 {size}"
    assert values.facts(x.t()[1:]) == f"[3, 3] [1, 4] {name} cpu 9 0 2 {size}"
    assert values.facts(x[1, 2]) == f"[] [] {name} cpu 1 1 0 {size}"
    nine = torch.zeros(*range(1, 10), dtype=dtype)[:0]
    assert values.facts(nine).startswith("[0, 2, 3, 4, 5, 6, 7, 8, 9] [362880, 181440,")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_limits_of_a_dtype(values, dtype):
    info = torch.finfo(dtype)
    least = torch.nextafter(torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype)).item()
    digits, exponent = 1 - int(math.log2(info.eps)), math.frexp(info.max)[1]
    wanted = [info.min, info.max, info.eps, info.tiny, least, digits, exponent]
    assert values.limits(dtype) == wanted


def test_rounding_a_quotient_down(values):
    pairs = [(a, b) for a in range(-4, 5) for b in (-3, -1, 1, 3)]
    assert [values.div_rtn(a, b) for a, b in pairs] == [a // b for a, b in pairs]


def test_how_a_tensor_lies_in_memory(values):
    formats = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
    for shape in ((), (3,), (2, 3), (0, 2, 2, 2), (2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1), (2, 3, 4, 5, 6)):
        x = torch.zeros(shape)
        last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim())
        for y in (
            x,
            x.mT if x.dim() > 1 else x,
            x.expand(7, *shape),
            x.contiguous(memory_format=last) if last else x,
        ):
            for z in (y, y[..., ::2] if y.dim() else y, y[:1] if y.dim() else y):
                dense, suggested = values.layout(z)
                assert dense == torch.ops.aten.is_non_overlapping_and_dense(z), (z.shape, z.stride())
                if z.numel():
                    wanted = suggest_memory_format(z)
                    assert formats[suggested] == wanted, (z.shape, z.stride())


def test_results(values):
    y, count, numbers = values.several(torch.zeros(2))
    assert y.tolist() == [1, 1] and count == 2 and numbers == [0.5, 1.5]
    assert values.maybe(None) is None
    x = torch.ones(2)
    assert values.maybe(x) is x
    assert values.list([x, y]) == [y, x]
    assert values.made([2], torch.int32).dtype is torch.int32 and values.dtype(x) is torch.float32
    assert values.wider(values.Mode.PLAIN) == values.Mode.WIDE == 4
    assert values.Mode.__module__ == values.__name__
    assert values.lengths({"a": x, "b": y[:0]}) == {"a": 2, "b": 0}
    assert [values.overloaded(v) for v in (1, "a", x)] == [1, 2, 3]


def test_memory(values):
    x = torch.arange(6.0).view(2, 3)
    assert values.first(x[1]) == 3 and values.sum(x) == 15 and values.sum(x.t()) == 15
    assert values.sum(torch.ones(2, 1).expand(2, 5)) == 10  # overlapping, by its strides
    values.fill(x[:, 1], 9)
    assert x.tolist() == [[0, 9, 2], [3, 9, 5]]
    values.grow(y := torch.empty(0))
    assert y.shape == (4, 2)
    values.product(w := torch.empty(0), a := torch.randn(2, 3), b := torch.randn(3, 4))
    torch.testing.assert_close(w, a @ b)
    values.assign(z := torch.zeros(4, 2))
    assert z.tolist() == [[3, 3], [3, 0], [0, 7], [0, 7]]


def test_complex_numbers(values):
    z = torch.tensor([1 + 2j], dtype=torch.complex64)
    assert values.turned(3 + 4j, z) == -4 + 3j and z.tolist() == [-2 + 1j]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_each_result_in_half_is_rounded(values, dtype):
    """As c10::Half has it: x / 3 is rounded before 1 is added."""
    x = torch.randn(100).to(dtype)
    assert torch.equal(values.halves(x), x / 3 + 1)


def test_memory_without_its_values_is_refused(values):
    """torch's data_ptr would give the bytes, whose sign or conjugate is wrong."""
    negative = torch.tensor([1 + 2j]).conj().imag
    assert negative.is_neg()
    with pytest.raises(RuntimeError, match="negative view: call resolve_neg"):
        values.first(negative)
    assert values.scaled(negative, 1).tolist() == [-2]  # torch's operations know
    conjugate = torch.tensor([1 + 2j], dtype=torch.complex64).conj()
    with pytest.raises(RuntimeError, match="conjugate view: call resolve_conj"):
        values.turned(1j, conjugate)
    with pytest.raises(RuntimeError, match="no memory of its own"):
        values.first(torch.eye(2).to_sparse())
    with FakeTensorMode() as mode, pytest.raises(RuntimeError, match="no memory of its own"):
        values.first(mode.from_tensor(torch.ones(2)))


BAD = [
    (lambda v: v.scaled(3), TypeError, r"scaled\(\): argument 1 `x`: expected Tensor, got int"),
    (lambda v: v.div_rtn(2**70, 1), TypeError, r"argument 1.*: expected int, got int of more than 64 bits"),
    (lambda v: v.scaled(None), TypeError, r"scaled\(\): argument 1 `x`: expected Tensor, got None"),
    (lambda v: v.scaled(), TypeError, r"scaled\(\): expected 3 arguments, got 0: `x` is missing"),
    (
        lambda v: v.list(),
        TypeError,
        r"expected 1 argument, got 0: argument 1 is missing; it is list\(.*Tensor",
    ),
    (lambda v: v.scaled(torch.ones(1), 1, 1, 1), TypeError, r"expected 3 arguments, got 4"),
    (lambda v: v.scaled(torch.ones(1), size=1), TypeError, "an argument has a name that no parameter has"),
    (lambda v: v.scaled(torch.ones(1), "a"), TypeError, "argument 2 `factor`: expected float, got str"),
    (lambda v: v.list([None]), TypeError, r"list\(\): argument 1: expected Tensor, got None"),
    (lambda v: v.list([1]), TypeError, r"list\(\): argument 1: expected Tensor, got int"),
    (lambda v: v.kinds(True, 1 << 40, 0, "", [], []), TypeError, "argument 2: 1099511627776 does not fit"),
    (lambda v: v.kinds(True, 1 << 70, 0, "", [], []), TypeError, "argument 2: expected int, got int"),
    (lambda v: v.kinds(True, 1.5, 0, "", [], []), TypeError, "argument 2: expected int, got float"),
    (lambda v: v.kinds(object(), 1, 0, "", [], []), TypeError, "argument 1: expected bool, got object"),
    (lambda v: v.overloaded(1.5), TypeError, "overloaded.*expected int, got float(.|\n)*expected Tensor"),
    (
        lambda v: v.first(torch.ones(1).double()),
        RuntimeError,
        r"expected scalar type Float but found Double: .*tensor of shape \[1\].*pass it as .to\(torch.float\)",
    ),
    (lambda v: v.sum(torch.ones(1)), RuntimeError, "TensorAccessor expected 2 dims but tensor has 1"),
    (
        lambda v: v.halves(torch.ones(1).int()),
        RuntimeError,
        "\"halves\" not implemented for 'Int': .*x.float.*values.cpp:",
    ),
    (lambda v: v.fail(0), RuntimeError, r"how is 0 \(.*values.cpp:\d+\)"),
    (lambda v: v.fail(1), IndexError, "an index"),
    (lambda v: v.fail(2), ValueError, "a value"),
    (lambda v: v.fail(3), ValueError, "an argument"),
    (lambda v: v.fail(4), IndexError, "a range"),
    (lambda v: v.fail(5), RuntimeError, "not a std::exception"),
    (lambda v: v.fail(6), RuntimeError, r"fail\(\): exit\(3\) was called"),
    (lambda v: v.fail(7), RuntimeError, r"fail\(\): abort\(\) was called"),
    (lambda v: v.fail(8), RuntimeError, r"fail\(\): .*values.cpp:\d+: assertion `how != 8` failed"),
    (lambda v: v.fail(9), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
    (lambda v: v.fail(10), RuntimeError, "an undefined tensor is used"),
    (lambda v: v.fail(11), RuntimeError, "in a thread"),
    (lambda v: v.fail(12), RuntimeError, r"old style \(.*values.cpp:\d+\)"),
    (lambda v: v.fail(13), RuntimeError, "Expected false to be true"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_wrong_call_is_torchs_own_kind_of_error(values, number):
    call, kind, text = BAD[number]
    with pytest.raises(kind, match=text):
        call(values)
    assert values.scaled(torch.ones(1)).item() == 2  # the module works on


def test_pythons_own_errors_pass_through(values):
    class Strange(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError("of the subclass")

    with pytest.raises(KeyError, match="of the subclass"):
        values.scaled(torch.ones(2).as_subclass(Strange))


def test_gradients_flow_through_torchs_operations(values):
    x = torch.randn(3, requires_grad=True)
    values.scaled(x, 3, 2).sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())


def test_threads(values):
    assert values.parallel(1000) == 499500
    results = []
    threads = [threading.Thread(target=lambda: results.append(values.parallel(500))) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == [124750] * 4


def test_nothing_leaks(values):
    class Held(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Held)
    gone = weakref.ref(x)
    values.list([x, x])
    with pytest.raises(RuntimeError):
        values.sum(x)
    del x
    gc.collect()
    assert gone() is None
