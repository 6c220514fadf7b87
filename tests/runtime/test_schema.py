"""A function's annotations as torch's schema."""

import inspect

import pytest
import torch
from support.operators import Labelled, scaled
from torch import Tensor

from cuffi.runtime import operator

NONES = [
    (None, None),
    (torch.tensor(2.0), None),
    (None, torch.tensor(3.0)),
    (torch.tensor(2.0), torch.tensor(3.0)),
]


def test_a_torch_that_knows_sequences_by_typings_names_alone(layer, monkeypatch):
    new = torch.library.infer_schema

    def old(function, **options):
        signature = inspect.signature(function)
        if any("collections.abc" in str(p.annotation) for p in signature.parameters.values()):
            raise ValueError(f"unsupported type: {signature}")
        return new(function, **options)

    wanted = str(scaled(layer).operator.torch_op._schema)
    monkeypatch.setattr(torch.library, "infer_schema", old)
    assert str(scaled(layer).operator.torch_op._schema) == wanted
    assert "SymInt[] sizes" in wanted and "Tensor? factor" in wanted


@pytest.mark.parametrize("factor, shift", NONES)
def test_optional_tensors_without_a_default(layer, factor, shift):
    scale, x = scaled(layer), torch.randn(3)
    wanted = x * (1 if factor is None else factor) + (0 if shift is None else shift)
    assert torch.equal(scale(x, factor, shift, (1, 2)), wanted)
    assert torch.equal(scale(x.as_subclass(Labelled), factor, shift, (1, 2)), wanted)
    assert torch.equal(scale.operator.torch_op(x, factor, shift, (1, 2)), wanted)


def test_annotations_that_are_no_tensors(layer):
    with pytest.raises(TypeError, match="annotate the tensors"):
        operator(layer)(lambda x: x)

    def many(x: Tensor, others: list[Tensor]) -> Tensor:
        return x

    with pytest.raises(TypeError, match=r"takes Tensor or Tensor \| None, not list"):
        operator(layer)(many)
