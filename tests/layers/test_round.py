"""round_ste beyond its cases: exactly a half, empty tensors, streams and several GPUs."""

import inspect

import pytest
import torch
from conftest import DEVICES, skip_if_missing
from cuffi.elementwise_mult import elementwise_mult
from cuffi.round import layer, round_ste
from cuffi.sigmoid import d_sigmoid, sigmoid


@pytest.fixture(params=DEVICES)
def device(request):
    skip_if_missing(request.param, layer)
    return request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_exactly_a_half_is_rounded_to_1(device, dtype):
    half = torch.tensor([0.5], dtype=dtype, device=device)
    beside = torch.cat([torch.nextafter(half, half * 0), half, torch.nextafter(half, half + 1)])
    assert round_ste(beside).tolist() == [0, 1, 1]


def test_an_empty_tensor_leaves_no_error_for_the_next_call(device):
    for function in (round_ste, sigmoid, lambda x: elementwise_mult(x, x)):
        for shape in ((0,), (3, 0, 2)):
            assert function(torch.empty(shape, device=device)).shape == shape
    assert torch.zeros(3, device=device).sum().item() == 0
    assert round_ste(torch.ones(3, device=device)).tolist() == [1, 1, 1]


def test_the_count_is_the_tensors():
    assert list(inspect.signature(round_ste).parameters) == ["bottom"]


def test_a_tensor_on_the_second_gpu():
    skip_if_missing("cuda", layer)
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    x = torch.rand(1000, device="cuda:1")
    assert torch.cuda.current_device() == 0
    assert torch.equal(round_ste(x).cpu(), round_ste(x.cpu()))


def test_the_kernel_runs_on_torchs_stream():
    skip_if_missing("cuda", layer)
    x = torch.rand(1 << 20, device="cuda")
    late = torch.zeros_like(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda._sleep(50_000_000)
        late.copy_(x)
        result = round_ste(late)
    torch.cuda.synchronize()
    assert torch.equal(result, (x >= 0.5).float())


def test_nothing_is_printed(device, capfd):
    x = torch.randn(4, device=device, requires_grad=True)
    for result in (sigmoid(x), round_ste(x), elementwise_mult(x, x)):
        result.sum().backward()
    d_sigmoid(torch.rand(4, device=device))
    assert capfd.readouterr() == ("", "")
