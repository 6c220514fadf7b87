"""The operations that extensions call most give what torch gives in Python: values, dtypes and strides."""

import pytest
import torch
from old_torch.conftest import SOURCES, builds

from cuffi.old_torch import cpp_extension


@pytest.fixture(scope="module")
def operations(session_cache):
    with builds(session_cache):
        return cpp_extension.load("operations", [SOURCES / "operations.cpp"])


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, 6)


@pytest.fixture
def y(x):
    return torch.randn(4, 6)


def same(got, wanted):
    assert len(got) == len(wanted)
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        torch.testing.assert_close(a, b, msg=lambda text, number=number: f"{number}: {text}")
        assert a.stride() == b.stride(), number


def test_new_tensors(operations, x):
    got = operations.made(x)
    torch.manual_seed(3)
    wanted = [torch.zeros_like(x), torch.zeros_like(x, dtype=torch.long), torch.ones_like(x).double()]
    wanted += [torch.zeros(2, 3, dtype=torch.int32), torch.full((2, 2), 7), torch.full((2,), 1.5).half()]
    wanted += [torch.eye(3), torch.arange(0, 1, 0.25), torch.linspace(0, 1, 5), torch.rand(2, 2)]
    wanted += [torch.randn(3), torch.randint(0, 10, (4,)), torch.randperm(6), torch.tensor([1, 2, 3])]
    wanted += [torch.tensor(3.5), torch.tensor([1.5, 2.5]).double(), torch.tensor([4, 5]), torch.empty(0, 3)]
    wanted += [torch.tensor(2.5), torch.full_like(x, -1), torch.rand_like(x), x.new_zeros(2)]
    same(got, [*wanted, x.new_full((2,), 3), torch.empty_strided((2, 3), (1, 2)).zero_()])


def test_formats_of_memory(operations):
    """Before, a format within TensorOptions was dropped, and a kernel read the memory in another order."""
    x, last = torch.randn(2, 3, 4, 5).transpose(0, 1), torch.channels_last
    wanted = [torch.empty(x.shape, memory_format=last).fill_(1), torch.full(x.shape, 2.0)]
    wanted += [
        torch.zeros_like(x, memory_format=last),
        torch.ones_like(x),
        x.double().contiguous(memory_format=last),
    ]
    same(operations.formats(x), [*wanted, x.contiguous(memory_format=last), x.clone(memory_format=last)])
    with pytest.raises(
        RuntimeError, match="Cannot set memory_format both in TensorOptions and explicit argument"
    ):
        operations.two_formats(x)


def test_views_and_writes_to_them(operations, x):
    c, d, e, f, h = (x.clone() for _ in range(5))
    c[1:3], d[0, 2], d[1, 3], e[1:, 0], f[0, 1], h[:, 2:4] = 0, 9, 8, 5, 42, 1
    f[1] = f[2]
    wanted = [c, d, e, f, x.masked_fill(x > 0.5, -3), h, x[::2, 1:4], x[..., -1], x[None, 0], x[x > 0]]
    wanted += [x.view(-1), x.reshape(2, 12), x.view(2, 2, 6).permute(2, 0, 1), x.t(), x.transpose(-1, 0)]
    wanted += [
        x[..., None].expand(4, 6, 2),
        x.repeat(1, 2),
        x.flatten(),
        x,
        x[:, 2],
        x[1:3],
        x.chunk(3, 1)[1],
    ]
    wanted += [x[2:], x[:, 3], x.flip(0), x.roll(1, 0), x.diagonal(), x.tril(), x.triu(1)]
    same(operations.viewed(x), wanted)


def test_sums_choices_and_products(operations, x):
    i = torch.randint(0, 6, (4, 6))
    wanted = [
        *x.max(0),
        *x.sort(1, True),
        x.topk(2, 1)[0],
        *i.unique(return_inverse=True, return_counts=True),
    ]
    wanted += [
        x.sum(),
        x.sum(1),
        x.sum((0, 1), True),
        x.mean(0),
        x.prod(),
        x.argmax(1),
        x.cumsum(0),
        x.norm(),
    ]
    wanted += [x.norm(2, 1), x.amax(1), x.min(), x.softmax(-1), x.log_softmax(1), x.gather(1, i)]
    wanted += [torch.zeros_like(x).scatter_add_(1, i, torch.ones_like(x)), x[:, i[0]], x.abs()]
    wanted += [torch.cat((x, x), 1), torch.stack((x, x)), x @ x.t(), (x @ x.t())[None], x @ x.t() * 0.5]
    wanted += [
        torch.einsum("ij,kj->ik", x, x),
        x @ x.t(),
        torch.layer_norm(x, (6,)),
        x.median(),
        x.logsumexp(1),
    ]
    wanted += [x.clamp(-0.5, 0.5), x.nonzero(), x**2, 2**x, x.isnan()]
    same(operations.reduced(x, i), wanted)


def test_operators(operations, x, y):
    z = ((x + 1) * y - y) / 2
    wanted = [
        x + y,
        x + 1,
        1 + x,
        1 - x,
        x - 1,
        x * y,
        2 * x,
        x / 2,
        2 / x,
        -x,
        x == y,
        x != y,
        x < 0,
        x >= y,
    ]
    wanted += [(x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), (x > 0) ^ (y > 0), z, x.fmod(0.3), x % 0.3]
    wanted += [x // 0.3, x + 2 * y, x - 0.5 * y, x.exp(), x.half(), x.long(), x.double(), x, x.int(), x * x]
    same(operations.operators(x, y), [*wanted, x.sign()])


def test_what_a_tensor_says(operations, x):
    facts = operations.facts(x)
    assert facts.pop("item") == x[0, 0].item() and facts.pop("sum") == pytest.approx(x.sum().item())
    assert facts == {
        "text": "[4, 6]cpuFloat[1, 2]", "size": 6, "stride": 6, "nbytes": 96, "vec": [4, 6], "slice": [6], "back": 6,
        "dim": 4, "esize": 4, "offset": 6, "scalar": 5.5, "eq": True, "fl": True, "cl": True, "kind": True,
        "same": True, "layout": True, "alias": True, "req": True, "isint": True, "isfp": True,
        "defined": False, "opt": False, "contig": False, "grad": False,
    }  # fmt: skip
    assert operations.facts(x, y := torch.ones(1))["opt"] is True and y.item() == 1
    assert operations.undefined() is None


def test_accessors(operations, x):
    weights = torch.arange(1.0, 5)[:, None] * torch.arange(2.0, 8)
    assert operations.accessed(x, 0) == pytest.approx((x * weights).sum().item(), rel=1e-5)
    assert operations.accessed(x.t(), 3) == pytest.approx(x.t()[1, 2].item() + 1000 * 1 + 4, rel=1e-6)
    assert operations.accessed(x.t(), 4) == pytest.approx(x.t()[1, 2].item() + 1000 * 6 + 6, rel=1e-6)
    assert operations.accessed(x, 9) == pytest.approx(x[0, 1:4].sum().item(), rel=1e-5)


@pytest.mark.parametrize(
    ("which", "kind", "text"),
    [
        (1, RuntimeError, "TensorAccessor expected 3 dims but tensor has 2"),
        (2, RuntimeError, "expected scalar type Double but found Float"),
        (5, RuntimeError, "expected scalar type Int but found Float"),
        (6, IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 7\)"),
        (7, IndexError, "index 9 is out of bounds for dimension 0 with size 4"),
        (8, RuntimeError, "a Tensor with 24 elements cannot be converted to Scalar"),
        (10, RuntimeError, "an undefined tensor"),
        (11, RuntimeError, r"shape '\[5, 5\]' is invalid for input of size 24"),
        (12, IndexError, "index 11 out of range"),
    ],
)
def test_errors_are_torchs(operations, x, which, kind, text):
    with pytest.raises(kind, match=text):
        operations.accessed(x, which)


NAMES = ("all", "complex", "ints", "floats", "sw", "index", "fc")


@pytest.mark.parametrize(
    ("dtype", "takes"),
    [
        (torch.half, "all floats sw"), (torch.bfloat16, "all floats"), (torch.bool, "all"), (torch.uint8, "all ints"),
        (torch.int8, "all ints"), (torch.int16, "all ints"), (torch.int32, "all ints index"),
        (torch.int64, "all ints index"), (torch.float, "all floats sw fc"), (torch.double, "all floats fc"),
        (torch.complex64, "complex fc"), (torch.complex128, "complex fc"),
    ],
)  # fmt: skip
def test_dispatch(operations, dtype, takes):
    x = torch.tensor([0, 3 + 4j] if dtype.is_complex else [1, 2]).to(dtype)
    for which, name in enumerate(NAMES):
        if name not in takes.split():
            with pytest.raises(NotImplementedError, match=f'"{name}" not implemented for'):
                operations.kinds(x, which)
            continue
        size, value = map(float, operations.kinds(x, which).split())
        wanted = {"complex": 3 + 10 * 4 + 5, "fc": 5 if dtype.is_complex else 2}.get(name, x[1].item())
        assert value == (wanted if name != "sw" else 1 + (dtype == torch.half))
        if name != "sw":
            assert size == (4 if name == "floats" and dtype.itemsize == 2 else dtype.itemsize)
