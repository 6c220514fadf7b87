"""One library under the names of two packages."""

import importlib

import torch


def test_library_loads_under_two_package_names(kernels_folder, kernels):
    """Two folders may hold a layer of the same name; their libraries do not mix."""
    from cuffi.runtime.cases import load_package

    other = importlib.import_module(f"{load_package(kernels_folder, 'kernels_again')}.loops").layer
    assert other is not kernels["loops"] and other.library("host") is not kernels["loops"].library("host")
    top = torch.zeros(3)
    other.loops_fill(top, 3, 0)
    assert top.tolist() == [1, 2, 3]
