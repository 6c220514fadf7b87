"""make verify: one layer object, called directly, with other values in its memory before."""

import importlib
import re

import torch

from cuffi.runtime.cases import load_package


def test_a_diff_that_is_added_to(verify, crooked):
    """Caffe does not clear diffs before Backward, and would add up gradients. Torch's gradient is right, and the
    table says so.
    """
    found = verify("SquareAdding")
    assert found.status == 0 and found.verdicts == {"right"}, found.text
    assert "with diffs that start at zero, as in torch" in re.sub(r"[│\s]+", " ", found.table)
    module = importlib.import_module(f"{load_package(crooked)}.caffe_crooked").SquareAdding()
    for _ in range(4):
        x = torch.randn(8, 8, requires_grad=True)
        y = module(x)
        torch.full_like(x, 7)  # what the memory to come may hold
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 2 * x.detach())


def test_a_top_that_is_added_to(verify, crooked):
    """In Caffe the top keeps the last call's values. Here it starts at zero, and the message says so."""
    found = verify("SquareKeeping")
    ways = found.table.count("right")
    assert found.status == 0 and found.text.count("Forward adds to its top") == ways > 0, found.text
    assert "Forward adds" not in verify("SquareRight").text
    module = importlib.import_module(f"{load_package(crooked)}.caffe_crooked").SquareKeeping()
    x = torch.randn(8, 8)
    for mode in ("cpu", "gpu"):
        module.mode = mode
        for _ in range(3):
            torch.full_like(x, 7)  # what the memory to come may hold
            torch.testing.assert_close(module(x), x * x)


def test_code_that_is_not_implemented_in_words(verify):
    found = verify("SquareInWords")
    assert found.status == 0 and found.verdicts == {"no code", "right"}, found.text
