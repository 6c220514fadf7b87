"""ROIPooling and PSROIPooling."""

import numpy as np
import pytest
import torch
from support import known_reference as reference
from support.nets import draw, gradients_are_right, one_layer, same


def regions(count, width, height, outside=0.0, seed=0):
    """Rows (item of two, left, top, right, bottom)."""
    size = torch.tensor([width, height]).double()
    low, more = (
        torch.rand(count, 2, generator=torch.Generator().manual_seed(seed + i)) * size for i in range(2)
    )
    item = torch.arange(count).double()[:, None] % 2
    return torch.cat((item, low - outside, low + more + outside), 1)


REGIONS = {
    "inside": regions(7, 80, 70),
    "outside": regions(7, 170, 140, outside=60),
    "tiny": regions(7, 170, 140) * torch.tensor([1, 1, 1, 0.5, 0.5]),  # some end before they begin
    "none": regions(0, 1, 1),
}


@pytest.mark.parametrize("kind", REGIONS)
@pytest.mark.parametrize("pooled", [(3, 4), (7, 7)])
def test_roi_pooling(kind, pooled):
    x, boxes = draw(2, 3, 9, 11).relu(), REGIONS[kind]  # many maxima are 0, in several places
    text = 'type: "ROIPooling" roi_pooling_param {{ pooled_h: {} pooled_w: {} spatial_scale: 0.0625 }}'
    net = one_layer(text.format(*pooled), x.shape, boxes.shape)
    top, places = reference.roi_pooling(x.numpy(), boxes.numpy(), pooled, 1 / 16)
    x.requires_grad_()
    got = net(x, boxes)
    same(got, top, 0)
    gradient = draw(*top.shape, seed=5)
    got.backward(gradient)
    wanted = np.zeros(x.shape)
    for at, place in places.items():
        wanted[place] += gradient[at].item()
    same(x.grad, wanted, 1e-12)
    assert places or kind == "none"


@pytest.mark.parametrize("kind", REGIONS)
def test_psroi_pooling(kind):
    x, boxes = draw(2, 18, 9, 11), REGIONS[kind]
    text = 'type: "PSROIPooling" psroi_pooling_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 }'
    net = one_layer(text, x.shape, boxes.shape)
    same(net(x, boxes), reference.psroi_pooling(x.numpy(), boxes.numpy(), 2, 3, 1 / 16), 1e-12)
    if len(boxes):
        assert gradients_are_right(lambda x: net(x, boxes), x)


@pytest.mark.parametrize("layer", ["ROIPooling", "PSROIPooling"])
def test_halves_and_channels_last(layer):
    """Regions in half precision are exact as far as they say; the top has the bottom's dtype."""
    x, boxes = draw(2, 18, 9, 11), REGIONS["inside"].round()
    fields = {"ROIPooling": "pooled_h: 3 pooled_w: 3", "PSROIPooling": "output_dim: 2 group_size: 3"}[layer]
    name = {"ROIPooling": "roi_pooling_param", "PSROIPooling": "psroi_pooling_param"}[layer]
    net = one_layer(f'type: "{layer}" {name} {{ {fields} spatial_scale: 0.0625 }}', x.shape, boxes.shape)
    for dtype in (torch.half, torch.bfloat16):
        rounded = x.to(dtype)
        got = net(rounded.to(memory_format=torch.channels_last), boxes.to(dtype).double())
        assert got.dtype == dtype
        same(got.double(), net(rounded.double(), boxes.to(dtype).double()), 1e-2)
