"""C and Python read the same declaration: C accepts exactly the calls that Python neither converts nor refuses.

C checks each call, and computes the sizes that tensors need. Python words the error, and it alone sees tensors without
memory, which a graph is recorded with; so both have the other checks. Random calls, most of them wrong in one or two
arguments, compare the two.
"""

import random

import pytest
import torch
from cuffi.depthwise_conv import layer as depthwise_layer
from cuffi.sigmoid import layer as sigmoid_layer

from cuffi.runtime import CaffeError, CaffeRuntimeError

HALF = torch.float16


def misaligned(right):
    """Of the same size, at an address that no float has."""
    return torch.frombuffer(bytearray(4 * right.numel() + 1), dtype=torch.float32, offset=1).view(right.shape)


def wrong_tensors(right):
    """What may be given for a tensor."""
    plain = right if right is not None else torch.zeros(4)
    grown = torch.zeros(2 * plain.numel() + 3)
    yield from (None, 1, "x", [0.0], plain.double(), plain.to(HALF), plain.long(), plain.to(torch.bool))
    yield from (plain.flatten()[:-1], plain.flatten()[:0], grown, grown[1:], grown[::2][: plain.numel()])
    yield from (plain.clone().requires_grad_(), torch.nn.Parameter(plain.clone()), plain.to("meta"))
    yield from (plain.to_sparse(), torch._neg_view(plain), misaligned(plain))
    yield from (plain.expand(2, *plain.shape), plain.mT if plain.dim() > 1 else plain[None].mT)


WRONG_NUMBERS = (
    -1,
    0,
    1,
    2,
    10**6,
    2**31,
    2**63,
    2**65,
    True,
    1.0,
    1.5,
    "1",
    None,
    torch.tensor(3),
    float("nan"),
)


def cases():
    x, top = torch.rand(3, 8), torch.empty(3, 8)
    yield sigmoid_layer, "sigmoid_forward", (x, top, 24)
    yield sigmoid_layer, "sigmoid_backward", (x, x, top, 24)
    numbers = (1, 2, 5, 4, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0)
    maps, weight, bias = torch.rand(1, 2, 5, 4), torch.rand(2, 1, 3, 3), torch.rand(2)
    yield depthwise_layer, "depthwise_conv_forward", (maps, weight, bias, torch.empty(1, 2, 5, 4), *numbers)
    yield depthwise_layer, "depthwise_conv_forward", (maps, weight, None, torch.empty(1, 2, 5, 4), *numbers)
    sums = torch.rand(6)
    yield depthwise_layer, "depthwise_conv_activation_backward", (sums, torch.rand(6), 6, 3)


def agrees(launcher, arguments) -> str:
    """What both said of a call: accepted or not."""
    try:
        by_c = launcher.call.attempt(*arguments) is not NotImplemented
    except CaffeRuntimeError:
        by_c = True  # the function itself refused the numbers
    try:
        converted = launcher.conversion.converted(launcher.conversion.counted(arguments, {}))
        same = launcher.call.too_small(*converted) is None and all(
            a is b if isinstance(a, torch.Tensor) or a is None else type(a) is type(b) and a == b
            for a, b in zip(arguments, converted, strict=True)
        )
    except CaffeError:
        same = False
    # A bool is a number for C, and Python converts it.
    assert by_c == same or (by_c and any(isinstance(a, bool) for a in arguments)), arguments
    return "accepted" if by_c else "refused or converted"


@pytest.mark.parametrize("layer, function, right", list(cases()))
def test_c_and_python_agree(layer, function, right):
    launcher, draw = layer.launcher(function), random.Random(1)
    launcher.call(*right)  # C knows the library
    assert agrees(launcher, right) == "accepted"
    seen = set()
    for _ in range(1500):
        arguments = list(right)
        for at in draw.sample(range(len(right)), draw.choice((1, 1, 2))):
            is_tensor = launcher.signature.passed[at][0].endswith("*")
            arguments[at] = draw.choice(list(wrong_tensors(right[at])) if is_tensor else WRONG_NUMBERS)
        seen.add(agrees(launcher, tuple(arguments)))
    assert seen == {"accepted", "refused or converted"}
