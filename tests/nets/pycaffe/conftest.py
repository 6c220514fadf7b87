"""Fixtures of this folder."""

import pytest
from support.pycaffe import TEXT

from cuffi import caffe


@pytest.fixture
def net():
    return caffe.Net(TEXT, caffe.TEST)
