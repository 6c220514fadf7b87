"""Fixtures of this folder."""

import pytest
import torch
from support.nets import NET

from cuffi import caffe_net


@pytest.fixture
def net():
    torch.manual_seed(0)
    return caffe_net(NET)
