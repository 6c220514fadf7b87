"""torch's names of operators: one owner each."""

import os
import sys
from pathlib import Path

import pytest
import torch
from support import python_with_torch

from cuffi.runtime import CaffeValueError
from cuffi.runtime.named import name_and_library, tell_caches

ROOT = str(Path(__file__).parents[2])


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


def function(number):
    def backward(ctx, top_diff):
        return top_diff * number if top_diff in {"a", "b", "c"} else [lambda x: x + 1]

    return backward


def test_torchs_caches_notice_another_backward():
    tags = {}
    for step in ("first", "again", "another", "first once more"):
        tell_caches("test_named::f", function(3 if step == "another" else 2), None)
        tags[step] = torch.compiler.config.cache_key_tag
    assert tags["first"] == tags["again"] == tags["first once more"] != tags["another"]


def test_a_users_tag_stays(monkeypatch):
    tell_caches("test_named::g", function(1))
    ours = torch.compiler.config.cache_key_tag
    monkeypatch.setattr(torch.compiler.config, "cache_key_tag", "mine" + ours)
    tell_caches("test_named::g", function(1))
    assert torch.compiler.config.cache_key_tag == "mine" + ours


COMPILED = """
import sys, types, torch
from torch import Tensor
from cuffi import Layer, operator
module = types.ModuleType("test_named_compiled")
module.__file__ = sys.argv[2]
sys.modules["test_named_compiled"] = module
@operator(Layer("test_named_compiled"))
def double(x: Tensor) -> Tensor:
    return x * 2
@double.backward
def _(ctx, top_diff):
    return top_diff * NUMBER
x = torch.ones(3, requires_grad=True)
torch.compile(double)(x).sum().backward()
print(x.grad.tolist()[0])
"""


def test_a_compiled_program_has_the_backward_of_now(tmp_path):
    """Another process with another backward uses the same cache."""
    for number in (3, 5):
        (tmp_path / "program.py").write_text(COMPILED.replace("NUMBER", str(number)))
        command = [sys.executable, str(tmp_path / "program.py"), "", str(tmp_path / "__init__.py")]
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ROOT}
        done = python_with_torch.run(command, env=environment)
        assert done.stdout.strip() == f"{number}.0", done.stderr
