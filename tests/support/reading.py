"""The two ways in which C reads tensors."""

import importlib

import pytest
import torch


def of(layer, module: str):
    """A module of the runtime that the layer has."""
    package = type(layer).__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.{module}")


@pytest.fixture(params=["exchange", "attributes"], autouse=True)
def reads(request, kernels):
    """C reads tensors by DLPack's exchange API, and as with a torch before 2.10."""
    extension = of(next(iter(kernels.values())), "extension")
    known = extension.of_torch()
    if request.param == "exchange":
        if known["exchange_api"] is None:
            pytest.skip(f"torch {torch.__version__} has no DLPack exchange API")
        yield
        return
    extension.usable().configure(known | {"exchange_api": None})
    yield
    extension.usable().configure(known)
