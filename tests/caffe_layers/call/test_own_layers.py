"""The toolkit's Caffe layers beyond their cases: work in several parts, and extreme parameters."""

import pytest
import torch
from cuffi.correlation import Correlation
from cuffi.correlation.cases import reference
from cuffi.normalize import Normalize
from cuffi.psroi_pooling import PSROIPooling

from cuffi.runtime import CaffeRuntimeError


class Place:
    """Gives a module its mode and names its device: CPU code, kernels on the host, or a GPU."""

    def __init__(self, name: str):
        self.mode = {"cpu": "cpu", "kernels": "gpu", "cuda": None}[name]
        self.device, self.backend = ("cuda", "cuda") if name == "cuda" else ("cpu", "host")

    def __call__(self, module):
        if self.backend not in module.layer.backends():
            pytest.skip(f"{module.layer.name} is not built for {self.backend}")
        module.mode = self.mode
        return module


@pytest.fixture(params=["cpu", "kernels", "cuda"])
def place(request) -> Place:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    return Place(request.param)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["MULTIPLY", "SUBTRACT"])
def test_correlation_in_chunks(place, dtype, kind):
    """A block's shared memory holds 21 of these 23 displacements in float, 9 in double: Backward takes several turns.

    The images are wide enough for the outermost displacement to meet pixels of both.
    """
    parameter = dict(kernel_size=1, max_displacement=176, pad=176, stride_2=16, correlation_type=kind)
    module = place(Correlation(correlation_param=parameter))
    generator = torch.Generator().manual_seed(3)
    images = [torch.randn(1, 2, 2, 190, generator=generator, dtype=torch.float64) for _ in range(2)]
    given = [image.to(place.device, dtype).requires_grad_() for image in images]
    first, second = (image.requires_grad_() for image in images)
    moved = torch.nn.functional.pad(second, (176,) * 4).unfold(2, 2, 16).unfold(3, 190, 16)
    met = first[:, :, None, None] * moved if kind == "MULTIPLY" else (first[:, :, None, None] - moved).abs()
    top, expected = module(*given), met.mean(1).flatten(1, 2)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    torch.testing.assert_close(top.double().cpu(), expected, rtol=tolerance, atol=tolerance)
    diff = torch.randn(expected.shape, generator=generator, dtype=torch.float64)
    wanted = torch.autograd.grad(expected, images, diff)
    found = torch.autograd.grad(top, given, diff.to(top))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double().cpu(), other, rtol=tolerance, atol=tolerance)


FAR_OUT = [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**20 + 1, 2**30]


@pytest.mark.parametrize("name", ["pad", "kernel_size", "max_displacement", "stride_1", "stride_2"])
@pytest.mark.parametrize("value", FAR_OUT)
def test_correlation_far_out(place, name, value):
    parameter = {"kernel_size": 1, "max_displacement": 1, "pad": 1} | {name: value}
    module = place(Correlation(correlation_param=parameter))
    with pytest.raises(CaffeRuntimeError, match=f"correlation: .*{name}, in pixels"):
        module(*[torch.zeros(1, 1, 4, 4, device=place.device)] * 2)


@pytest.mark.parametrize(
    "parameter, words",
    [
        # Each fits, their products do not.
        ({"kernel_size": 2**17 + 1, "max_displacement": 0, "pad": 2**17}, "values of a patch"),
        ({"kernel_size": 1, "max_displacement": 2**16, "pad": 2**16}, "displacements"),
        ({"kernel_size": 1, "max_displacement": 20000, "pad": 20000}, "blob size exceeds INT_MAX"),
        ({"kernel_size": 1, "max_displacement": 0, "pad": 2**19}, "blob size exceeds INT_MAX"),
    ],
)
def test_correlation_of_far_out_products(place, parameter, words):
    module = place(Correlation(correlation_param=parameter))
    with pytest.raises(CaffeRuntimeError, match=f"correlation: .*{words}"):
        module(*[torch.zeros(1, 1, 4, 4, device=place.device)] * 2)


def test_correlation_with_wide_strides(place):
    """A stride beyond the image means one patch, or one displacement."""
    for stride in ("stride_1", "stride_2"):
        parameter = {"kernel_size": 1, "max_displacement": 1, "pad": 1, stride: 100}
        module = place(Correlation(correlation_param=parameter))
        first, second = (torch.randn(1, 2, 3, 3, device=place.device, requires_grad=True) for _ in range(2))
        top = module(first, second)
        expected = reference(**parameter)(first, second)
        torch.testing.assert_close(top, expected)
        grads = (torch.autograd.grad(y.sum(), (first, second)) for y in (top, expected))
        torch.testing.assert_close(*grads)


@pytest.mark.parametrize(
    "sizes", [(2**30, 2), (2**16, 2**8), (2, 2**15), (1, 2**16), (1, 2**31 - 1), (2**31 - 1, 1)]
)
def test_psroi_pooling_far_out(place, sizes):
    parameter = {"spatial_scale": 1.0, "output_dim": sizes[0], "group_size": sizes[1]}
    module = place(PSROIPooling(psroi_pooling_param=parameter))
    regions = torch.zeros(1, 5, device=place.device)
    with pytest.raises(CaffeRuntimeError, match=r"psroi_pooling: .*output_dim \* group_size\^2"):
        module(torch.zeros(1, 4, 2, 2, device=place.device), regions)


@pytest.mark.parametrize("across_spatial", [False, True])
def test_normalize_of_nothing_that_is_large(place, across_spatial):
    """A bottom without elements but with 2^32 positions is an error, because Caffe counts in int."""
    module = place(Normalize(norm_param={"across_spatial": across_spatial}))
    with pytest.raises(CaffeRuntimeError, match=r"normalize: .*INT_MAX"):
        module(torch.empty(0, 3, 2**16, 2**16, device=place.device))


@pytest.mark.parametrize("scale_filler, value", [(None, 1), ({"type": "constant", "value": 20}, 20)])
def test_normalize_fills_its_scale(scale_filler, value):
    parameter = {"scale_filler": scale_filler} if scale_filler else {}
    module = Normalize(norm_param={"channel_shared": False} | parameter).setup((1, 3, 2, 2))
    assert module.blob0.tolist() == [value] * 3
