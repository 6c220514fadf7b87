"""The parts of make fuzz's calls: a missing part would find less without an error."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cuffi.caffe_layers.cases import CaffeFunction
from cuffi.runtime import CaffeTypeError, CaffeValueError
from cuffi.runtime.cases import Case
from lab.fuzz import calls
from lab.fuzz.calls import (
    KINDS,
    LAYOUTS,
    NUMBERS,
    SIZES,
    Call,
    Finding,
    judged_error,
    judged_result,
    resized,
)

X = torch.arange(120.0).view(2, 3, 4, 5)


class Drawn:
    """Replaces hypothesis: returns the given values in turn."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def __call__(self, strategy):
        return self.answers.pop(0)


def call(*arguments, name="f", case=None, grad=False, layer="some"):
    return Call(layer, name, print, list(arguments), [repr(a) for a in arguments], grad, case)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_the_same_values(name):
    changes = {"expanded": lambda x: x[:1].expand_as(x)}.get(name, lambda x: x)
    for x in (X, X[0], torch.tensor(3.0)):
        made = LAYOUTS[name](x)
        assert torch.equal(made.detach().as_subclass(torch.Tensor), changes(x) if x.dim() else x)
    made = LAYOUTS[name](X)
    strange = {
        "transposed": made.stride() == (1, 8, 2, 24),
        "sliced": made.stride(-1) == 3,
        "misaligned": made.storage_offset() == 1,
        "expanded": made.stride(0) == 0,
        "channels last": made.stride(1) == 1,
        "negated view": made.is_neg(),
        "flipped": made.is_contiguous(),
        "subclass": type(made) is calls.Labelled,
        "parameter": type(made) is torch.nn.Parameter,
    }
    assert strange[name]
    # What a layout asks more of a tensor than this has leaves it alone.
    assert LAYOUTS[name](torch.tensor([True])).dtype == torch.bool


@pytest.mark.filterwarnings("ignore")  # of what torch calls beta
@pytest.mark.parametrize(
    "name, looks",
    [
        ("sparse", lambda x: x.layout == torch.sparse_coo),
        ("csr", lambda x: x.layout == torch.sparse_csr),
        ("meta", lambda x: x.is_meta),
        ("zero tensor", lambda x: x._is_zerotensor()),
        ("quantized", lambda x: x.is_quantized),
        ("nested", lambda x: x.is_nested and x.layout == torch.strided and x.size(0) == 2),
    ],
)
def test_a_kind_is_one(name, looks):
    x = torch.ones(2, 3)
    assert looks(KINDS[name](x)) and x.sum() == 6 and len(KINDS) == 6


def test_numbers_and_sizes_have_the_boundaries():
    wanted = [0, 1, -1, 2, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, 0.5, math.inf]
    assert not [n for n in wanted if not any(type(m) is type(n) and m == n for m in NUMBERS)]
    assert any(n != n for n in NUMBERS if isinstance(n, float)) and {0, 1} <= set(SIZES)
    assert any(n is None for n in NUMBERS) and any(n is True for n in NUMBERS) and "3" in NUMBERS


def test_resized_repeats_or_cuts():
    x = torch.arange(6).view(2, 3)
    assert torch.equal(resized(x, 1, 5), x[:, [0, 1, 2, 0, 1]]) and torch.equal(resized(x, 0, 1), x[:1])
    assert torch.equal(resized(x, 3, 2), x[:, :2]) and resized(x, 1, 0).shape == (2, 0)
    assert resized(torch.zeros(2, 0), 1, 3).tolist() == [[0, 0, 0]] * 2
    assert (
        resized(torch.zeros(0, 2), 1, 3).shape == (0, 3)
        and resized(torch.tensor(4), 0, 3).tolist() == [4] * 3
    )


CHANGES = [
    (("layout", "sliced"), lambda x: x.stride(-1) == 3, "float32[2, 3, 4, 5] sliced"),
    (("size", 3, 8), lambda x: x.shape == (2, 3, 4, 8), "float32[2, 3, 4, 8]"),
    (("axes", X[None]), lambda x: x.shape == (1, 2, 3, 4, 5), "float32[1, 2, 3, 4, 5]"),
    (("dtype", torch.int8), lambda x: x.dtype == torch.int8, "int8[2, 3, 4, 5]"),
    (("kind", "meta"), lambda x: x.is_meta, "float32[2, 3, 4, 5] meta"),
    (("no tensor", None), lambda x: x is None, "None"),
    (("no tensor", "y" * 50), lambda x: x == "y" * 50, "'" + "y" * 39),
    (("kind", "csr"), lambda x: x is ONE, "float32[]"),  # there is no such tensor
]
ONE = torch.tensor(1.0)


@pytest.mark.parametrize("answers, looks, words", CHANGES)
def test_a_change_and_its_words(answers, looks, words):
    given = ONE if answers == ("kind", "csr") else X
    value, said = drawn_by(calls.changed, answers, given, calls.described(given))
    assert looks(value) and said == words


def test_a_change_of_what_is_no_tensor():
    assert drawn_by(calls.changed, (7,), 3, "3") == (7, "7")


@pytest.mark.parametrize("caffe", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_which_arguments_of_a_call_are_changed(caffe, large):
    """A Caffe layer's parameters are torch.nn's. Its kernels wait at barriers, which on large inputs takes too long."""
    shape = (calls.MOST_FOR_KERNELS + large,)
    given = (torch.ones(shape), torch.zeros(2), torch.ones(3))
    caffes = CaffeFunction("some", torch.nn.Identity, lambda x, label, blob0: x)
    function: Any = caffes if caffe else torch.square
    case = Case(function=function, reference=torch.square, inputs={"some": lambda draw: given})
    subject = object.__new__(calls.Subjects)
    subject.name, subject.operators, subject.cases = "some", [], [case]
    subject.layer = SimpleNamespace(dtypes=(torch.float32,))
    asked = []
    answers = [case, "some", torch.float64, 2, True, *(["gpu"] if caffe else []), 1, 1, ("other", "words")]

    def draw(strategy):
        asked.append(repr(strategy))
        return answers.pop(0)

    strategy: Any = calls.Subjects.calls(subject)
    call = strategy.wrapped_strategy.definition(draw, subject)
    assert not answers and call.grad and call.arguments[1] == "other" and call.words[1] == "words"
    assert call.arguments[0].dtype == torch.float64 and call.words[0] == f"float64[{shape[0]}]"
    places = [0, 1] if caffe else [0, 1, 2]
    assert asked[-3:-1] == ["integers(min_value=0, max_value=2)", f"sampled_from({places})"]
    assert function.mode == (None if large else "gpu") if caffe else not hasattr(function, "mode")


def drawn_by(composite, answers, *arguments):
    """The value of a composite strategy for these draws."""
    return composite(*arguments).wrapped_strategy.definition(Drawn(*answers), *arguments)


def test_words_of_a_value():
    assert calls.described(X.half()) == "float16[2, 3, 4, 5]" and calls.described("y" * 99) == "'" + "y" * 59
    assert calls.numel(X) == 120 and calls.numel(3) == 0 and calls.numel(KINDS["nested"](X)) == 0
    assert str(call(1, 2)) == "f(1, 2)" == repr(call(1, 2)) and str(call(1, grad=True)) == "f(1).backward()"


def test_whose_error_it_is():
    case = Case(function=torch.square, reference=torch.square, inputs={})
    own = CaffeTypeError
    assert judged_error(call(X, case=case), CaffeTypeError("some: x"), own) == "refused"
    assert judged_error(call(X, case=case), RuntimeError("x can't allocate memory"), own) == "refused"
    assert judged_error(call(calls.Labelled(), case=case), KeyError("x"), own) == "refused"
    for error in (RuntimeError("x"), TypeError("x"), ValueError("x")):
        assert judged_error(call(X), error, own) == "refused"  # torch's own, of an operator's schema
        with pytest.raises(Finding, match="not an error of the layer's own"):
            judged_error(call(X, case=case), error, own)
    with pytest.raises(Finding, match="not an error of the layer's own"):
        judged_error(call(X), KeyError("x"), own)
    with pytest.raises(Finding, match="does not name the layer"):
        judged_error(call(X), CaffeTypeError("x: some"), own)
    assert judged_error(call(X), CaffeValueError("x: some"), own) == "refused"


def test_what_a_result_is_compared_with():
    case = Case(function=torch.square, reference=torch.square, inputs={})
    x = torch.ones(3, requires_grad=True)
    assert judged_result(call(x, case=case), [x * x], []) == "right"
    assert judged_result(call(x, case=case, grad=True), [x * x], [2 * x]) == "right"
    assert judged_result(call(x, case=case, grad=True), [x * x], []) == "not compared"
    with pytest.raises(Finding, match="a gradient is missing"):
        judged_result(call(x, case=case, grad=True), [x * x], [None])
    with pytest.raises(Finding, match="3 instead of 2 at"):
        judged_result(call(x, case=case, grad=True), [x * x], [3 * x])
    with pytest.raises(Finding, match=r"shape \[2\] instead of \[3\]"):
        judged_result(call(x, case=case), [torch.ones(2)], [])
    with pytest.raises(Finding, match=r"a result of .*int64"):
        judged_result(call(x, case=case), [torch.ones(3, dtype=torch.int64)], [])
    relative, absolute = case.tolerance_for(torch.float32)
    much = 20 * (absolute + relative)
    assert judged_result(call(x, case=case), [x * x + 0.9 * much], []) == "right"
    with pytest.raises(Finding, match="silently wrong"):
        judged_result(call(x, case=case), [x * x + 1.2 * much], [])
    infinite = torch.full((3,), math.inf)
    assert (
        judged_result(call(infinite, case=case), [infinite * 0], []) == "right"
    )  # finite inputs alone are promised
