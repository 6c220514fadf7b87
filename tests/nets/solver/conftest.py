"""Fixtures of this folder."""

import pytest
import torch
from support.solver import NET


@pytest.fixture
def net():
    from cuffi import caffe_net

    torch.manual_seed(5)
    return caffe_net(NET, train=True).double()
