"""Make random calls of a layer from its cases, with other dtypes, layouts, sizes, kinds and parameters.

A call must be right or refused. It is right if it agrees with the case's reference in double. It is refused if it
raises the layer's own error, which names layer and argument. Anything else is a finding.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy
import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from cuffi import CaffeError
from cuffi.caffe_layers.cases import CaffeFunction
from cuffi.runtime.cases import TOLERANCE, Case, Draw, cast, differentiable, layer_of, results

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
    torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.uint16,
)  # fmt: skip
# Small, or so large that no memory suffices. Sizes between only cost time.
NUMBERS = (
    0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 1 << 70, 0.5, 2.5, -0.0, math.nan, math.inf, True,
    None, "3", b"3", (), (1,), (1, 2), (2, 1, 3), [1, 1], numpy.int64(2), numpy.float32(1.5), 1j, object,
)  # fmt: skip
NO_TENSORS = (None, 3, 0.5, "text", [1.0, 2.0], numpy.zeros(2), torch.float32, object)
SIZES = (0, 1, 2, 3, 5, 8)


class Finding(AssertionError):
    """A wrong outcome. The text has the call."""


class Labelled(Tensor):
    """A subclass that does nothing."""


def resized(x: Tensor, axis: int, size: int) -> Tensor:
    """A tensor with another size along an axis, repeated or cut."""
    if not x.dim():
        return x.expand(size)
    axis %= x.dim()
    if not x.shape[axis]:
        return x.new_zeros([size if i == axis else n for i, n in enumerate(x.shape)])
    return x.index_select(axis, torch.arange(size) % x.shape[axis])


def sliced(x: Tensor) -> Tensor:
    padded = torch.zeros((*x.shape, 3), dtype=x.dtype)
    padded[..., 1] = x
    return padded[..., 1]


def misaligned(x: Tensor) -> Tensor:
    return torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape)


# Other tensors with the same values, by name.
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1) if x.dim() else x,
    "sliced": sliced,
    "misaligned": misaligned,
    "expanded": lambda x: x[:1].expand_as(x).clone()[:1].expand_as(x) if x.dim() else x,
    "channels last": lambda x: x.to(memory_format=torch.channels_last) if x.dim() == 4 else x,
    "negated view": lambda x: torch._neg_view(-x) if x.is_floating_point() else x,
    "flipped": lambda x: x.flip(0).contiguous().flip(0) if x.dim() else x,
    "subclass": lambda x: x.as_subclass(Labelled),
    "parameter": lambda x: torch.nn.Parameter(x) if x.is_floating_point() else x,
}
# Other kinds of tensors, by name.
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "sparse": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "meta": lambda x: x.to("meta"),
    "zero tensor": lambda x: torch._efficientzerotensor(x.shape, dtype=x.dtype),
    "quantized": lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.quint8),
    "nested": lambda x: torch.nested.nested_tensor([x, x], layout=torch.strided),
}


# Kernels whose threads wait for each other take the host a millisecond for each block of them.
MOST_FOR_KERNELS = 10_000


@dataclass(repr=False)
class Call:
    """One call: the function, its arguments, and how each argument was made."""

    layer: str
    name: str
    function: Callable
    arguments: list
    words: list[str]
    grad: bool = False
    case: Case | None = None  # has the reference; None: the call must only not crash

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.words)}){'.backward()' * self.grad}"

    __repr__ = __str__


class Subjects:
    """The callables of a layer: the functions of its cases, and its operators in torch.ops."""

    def __init__(self, package: str, name: str):
        self.name = name
        module = importlib.import_module(f"{package}.{name}")
        self.layer = layer_of(module)
        self.error = CaffeError
        self.cases = list(importlib.import_module(f"{package}.{name}.cases").CASES)
        self.operators = list(self._operators(f"{package}_{name}".replace(".", "_")))

    def _operators(self, namespace: str):
        """(operator, arguments) of all operators that the cases call, with those for backward."""
        for case in self.cases:
            with _Record(namespace) as mode, contextlib.suppress(Exception):
                given = cast(
                    next(iter(case.inputs.values()))(Draw()),
                    self.layer.dtypes[0],
                    grad=case.gradient != "none",
                )
                tops = differentiable(results(case.function(*given)))
                if case.gradient != "none":
                    torch.autograd.backward(tops, [torch.ones_like(t) for t in tops])
            yield from mode.calls

    def calls(self) -> st.SearchStrategy[Call]:
        return calls_of(self)

    def attempt(self, call: Call) -> str:
        return try_call(call, self.error)


@st.composite
def calls_of(draw, subjects: Subjects) -> Call:
    """A call with none, one or two of its arguments changed."""
    if subjects.operators and draw(st.integers(0, 3)) == 0:
        operator, given = draw(st.sampled_from(subjects.operators))
        call = Call(subjects.name, f"torch.ops.{operator}", operator, list(given), [])
    else:
        case = draw(st.sampled_from(subjects.cases))
        label = draw(st.sampled_from(list(case.inputs)))
        dtype = draw(st.sampled_from(subjects.layer.dtypes))
        given = list(cast(case.inputs[label](Draw(draw(st.integers(1, 3)))), dtype))
        call = Call(subjects.name, case.name, case.function, given, [], case=case)
        call.grad = case.gradient != "none" and draw(st.booleans())
        if isinstance(case.function, CaffeFunction):
            case.function.mode = draw(st.sampled_from([None, "gpu"]))
    call.words = [described(a) for a in call.arguments]
    places = [i for i in range(len(call.arguments)) if i not in blobs_of(call)]
    for _ in range(draw(st.integers(0, 2)) if places else 0):
        place = draw(st.sampled_from(places))
        call.arguments[place], call.words[place] = draw(changed(call.arguments[place], call.words[place]))
    if isinstance(call.function, CaffeFunction) and any(numel(a) > MOST_FOR_KERNELS for a in call.arguments):
        call.function.mode = None
    return call


def numel(value) -> int:
    return value.numel() if isinstance(value, Tensor) and not value.is_nested else 0


def blobs_of(call: Call) -> list[int]:
    """Places of a Caffe layer's parameters: torch.nn looks after these."""
    if call.case is None or not call.case.has_modes:
        return []
    return [i for i, n in enumerate(inspect.signature(call.function).parameters) if n.startswith("blob")]


class _Record(TorchDispatchMode):
    def __init__(self, namespace: str):
        super().__init__()
        self.namespace, self.calls = namespace, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == self.namespace:
            self.calls.append((func, [a.detach().clone() if isinstance(a, Tensor) else a for a in args]))
        return func(*args, **(kwargs or {}))


def described(value) -> str:
    if not isinstance(value, Tensor):
        return repr(value)[:60]
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


@st.composite
def changed(draw, value, words: str):
    """(another value in its place, what was done)."""
    if not isinstance(value, Tensor) or type(value) is not Tensor:
        number = draw(st.sampled_from(NUMBERS))
        return number, repr(number)
    way = draw(st.sampled_from(("layout", "layout", "size", "size", "axes", "dtype", "kind", "no tensor")))
    try:
        if way == "layout":
            name = draw(st.sampled_from(list(LAYOUTS)))
            return LAYOUTS[name](value), f"{words} {name}"
        if way == "size":
            axis, size = draw(st.integers(0, max(value.dim() - 1, 0))), draw(st.sampled_from(SIZES))
            other = resized(value, axis, size)
            return other, described(other)
        if way == "axes":
            other = draw(st.sampled_from((value[None], value.flatten(), value.sum(), value[..., None])))
            return other, described(other)
        if way == "dtype":
            other = value.to(draw(st.sampled_from(DTYPES)))
            return other, described(other)
        if way == "kind":
            name = draw(st.sampled_from(list(KINDS)))
            return KINDS[name](value), f"{words} {name}"
    except (RuntimeError, TypeError, IndexError):  # there is no such tensor
        return value, words
    other = draw(st.sampled_from(NO_TENSORS))
    return other, repr(other)[:40]


# ---------------------------------------------------------------------------------------- what is right


def try_call(call: Call, error: type[Exception]) -> str:
    """'right', 'refused' or 'not compared'; Finding for all else."""
    if call.grad:
        call.arguments = [
            a.detach().requires_grad_() if type(a) is Tensor and a.is_floating_point() else a
            for a in call.arguments
        ]
    failure = None
    try:
        tops = results(call.function(*call.arguments))
        diffs = backward(call.arguments, tops) if call.grad else []
    except (MemoryError, torch.OutOfMemoryError):
        return "refused"
    except Exception as raised:
        failure = raised
    if (
        failure is not None
    ):  # not above, because with another context hypothesis would take the same finding for a new one
        return judged_error(call, failure, error)
    return judged_result(call, tops, diffs)


def backward(arguments, tops) -> list[Tensor | None]:
    wanted, tops = ([t for t in differentiable(some) if t.requires_grad] for some in (arguments, tops))
    if not wanted or not tops:
        return []
    return list(torch.autograd.grad(tops, wanted, [torch.ones_like(t) for t in tops], allow_unused=True))


def judged_error(call: Call, raised: Exception, error: type[Exception]) -> str:
    text = str(raised)
    if "can't allocate memory" in text:
        return "refused"  # torch's own, too: a parameter may ask for more than there is
    if isinstance(raised, error):
        if not text.startswith(f"{call.layer}"):
            raise Finding(f"an error that does not name the layer: {call}: {text[:200]}")
        return "refused"
    if call.case is None and isinstance(raised, RuntimeError | TypeError | ValueError):
        return "refused"  # torch's own, of what does not fit an operator's schema
    if any(type(a) is not Tensor and isinstance(a, Tensor) for a in call.arguments):
        return "refused"  # a subclass's own business
    raise Finding(f"not an error of the layer's own: {call}: {type(raised).__name__}: {text[:200]}")


def judged_result(call: Call, tops, diffs) -> str:
    """Compare with the case's reference, if there is one and it accepts the same arguments."""
    if (case := call.case) is None:
        return "not compared"
    try:
        doubled = cast(tuple(call.arguments), torch.float64, grad=call.grad)
        if case.has_modes:  # which computes with integers as with any other numbers
            doubled = [a.double() if isinstance(a, Tensor) else a for a in doubled]
        wanted = results(case.reference(*doubled))
        wanted_diffs = backward(doubled, wanted) if call.grad else []
    except Exception:
        return "not compared"  # taken, where torch would not: integers as labels, numpy's numbers
    if len(wanted_diffs) != len(diffs):
        return "not compared"
    # Indices have the reference's dtype, and all else one of those that layers compute in.
    dtypes, floating = {t.dtype for t in tops}, {t.dtype for t in differentiable(tops)}
    if not dtypes <= {*TOLERANCE, *(t.dtype for t in wanted)}:
        raise Finding(f"a result of {dtypes}: {call}")
    coarsest = max(floating or {torch.float64}, key=case.tolerance_for)
    pairs = [*zip(tops, wanted, strict=True), *zip(diffs, wanted_diffs, strict=True)]
    for got, right in pairs:
        if got is None or right is None:
            if (got is None) != (right is None):
                raise Finding(f"a gradient is missing: {call}")
            continue
        if got.shape == right.shape and not right.isfinite().all():
            continue
        if not (verdict := case.check(got, right, coarsest, loose=20)).right:
            raise Finding(f"silently wrong: {call}: {verdict.words}")
    return "right"
