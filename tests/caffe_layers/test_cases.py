"""A Caffe layer's module as the function of a case."""

import pytest
import torch

from cuffi.caffe_layers.cases import CaffeFunction, caffe_case
from cuffi.runtime import cases


class Scaled(torch.nn.Module):
    """Stands for a Caffe layer's module: a mode, and a blob that is there after setup."""

    mode = None

    def setup(self, x):
        self.blob0 = torch.nn.Parameter(torch.ones(1))
        return self

    def forward(self, x):
        return x * self.blob0 if hasattr(self, "blob0") else x * (2 if self.mode == "gpu" else 1)


def test_a_bottom_that_is_left_out_is_one_of_the_last():
    """Otherwise a call would be compared with another one."""
    function = CaffeFunction("f", torch.nn.Identity, lambda x, inside=None, outside=None, blob0=None: x)
    assert function.bottoms_and_blobs((1, None, None, 4)) == ((1,), {"blob0": 4})
    assert function.bottoms_and_blobs((1, None, 3)) == ((1, None, 3), {})


def test_a_blob_that_is_given_is_the_modules():
    function = CaffeFunction("f", Scaled, lambda x, blob0: x * blob0)
    assert function(torch.tensor([3.0]), torch.tensor([5.0])).item() == 15


def test_a_case_calls_the_module_in_the_mode_that_is_asked_for():
    case = caffe_case("f", Scaled, lambda x: x, {"one": lambda draw: (torch.ones(1),)})
    assert case.has_modes and case.module is not None and isinstance(case.module(), Scaled)
    assert case.call(torch.ones(1), kernels=True).item() == 2 and case.call(torch.ones(1)).item() == 1


def test_a_cases_file_of_before_imports_it_from_the_runtime():
    assert vars(cases).get("caffe_case") is None and cases.caffe_case is caffe_case
    with pytest.raises(ImportError, match="cannot import name 'caffe_cases'"):
        exec("from cuffi.runtime.cases import caffe_cases")
