"""torch's names of operators: one owner each."""

import pytest
import torch

from layers._runtime import CaffeValueError
from layers._runtime.named import name_and_library


def test_a_second_import_replaces_the_first():
    name, library = name_and_library("test_named.one", "f")
    assert name == "test_named_one::f"
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    _, again = name_and_library("test_named.one", "f")
    again.define("f(Tensor x) -> Tensor")
    again.impl("f", lambda x: x + 2, "CPU")
    assert torch.ops.test_named_one.f(torch.zeros(1)).item() == 2


def test_another_module_does_not():
    name_and_library("test_named.two", "f")
    with pytest.raises(CaffeValueError, match=r"^test_named_two: torch has test_named\.two's operator"):
        name_and_library("test_named_two", "f")
